//! Memory of requests that have left, for those that come.

use std::fmt;

use crossbeam_queue::ArrayQueue;

/// Buffers of heads, given back by writers and taken by callers, who are mostly not of the same thread: an allocator has
/// to take locks for that.
pub(crate) struct SpareHeads(ArrayQueue<Vec<u8>>);

impl SpareHeads {
    /// One that was used before, with what was in it, or an empty one.
    #[inline]
    pub(crate) fn take(&self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps `head` for the next, unless it is large or there are enough.
    #[inline]
    pub(crate) fn give(&self, head: Vec<u8>) {
        if head.capacity() <= MAX_SPARE_BYTES {
            // One that finds no place is dropped.
            let _ = self.0.push(head);
        }
    }
}

impl Default for SpareHeads {
    fn default() -> Self {
        Self(ArrayQueue::new(MAX_SPARE))
    }
}

impl fmt::Debug for SpareHeads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SpareHeads").field(&self.0.len()).finish()
    }
}

/// What one peer may keep: a batch of heads, 256 KiB in all at most and half of that mostly.
const MAX_SPARE: usize = 256;
const MAX_SPARE_BYTES: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_serves_again_unless_it_is_large_or_there_are_enough() {
        let spares = SpareHeads::default();
        spares.give(Vec::with_capacity(MAX_SPARE_BYTES + 1));
        assert_eq!(spares.take().capacity(), 0);
        for _ in 0..=MAX_SPARE {
            spares.give(Vec::with_capacity(100));
        }
        for _ in 0..MAX_SPARE {
            assert_eq!(spares.take().capacity(), 100);
        }
        assert_eq!(spares.take().capacity(), 0);
    }
}
