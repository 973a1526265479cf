//! Eight bytes at a time, in the registers that every processor has.

/// The next bytes of a text, the first one lowest.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) bits: u64,
    /// How many bytes there were, at most eight. All above them are blanks.
    pub(super) len: usize,
}

impl Word {
    /// The first bytes of `text`: eight, or all where there are fewer.
    #[inline(always)]
    pub(super) fn first_of(text: &[u8]) -> Self {
        match text.first_chunk() {
            Some(bytes) => Self::whole(*bytes),
            None => Self::short(text),
        }
    }

    /// Eight bytes.
    #[inline(always)]
    pub(super) fn whole(bytes: [u8; LEN]) -> Self {
        Self { bits: u64::from_le_bytes(bytes), len: LEN }
    }

    /// The last `len` bytes, less than eight, of a text that has at least eight.
    #[inline(always)]
    pub(super) fn end_of(text: &[u8], len: usize) -> Self {
        let last = text.last_chunk().copied().map_or(0, u64::from_le_bytes);
        // The bytes before the last ones go, and blanks come from above. Two shifts, since all may go.
        let bits = last >> 8 >> (8 * (7 - len));
        Self { bits: bits | BLANKS << (8 * len), len }
    }

    /// All bytes of a text that has less than eight.
    #[inline(always)]
    pub(super) fn short(text: &[u8]) -> Self {
        let len = text.len();
        let bits = match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
            // Those in the middle are in both.
            (Some(&first), Some(&last)) => {
                u64::from(u32::from_le_bytes(first)) | u64::from(u32::from_le_bytes(last)) << (8 * (len & 3))
            }
            _ => match *text {
                [first] => u64::from(first),
                [first, second] => u64::from(u16::from_le_bytes([first, second])),
                [first, second, third] => u64::from(u32::from_le_bytes([first, second, third, 0])),
                _ => 0,
            },
        };
        Self { bits: bits | BLANKS << (8 * (len & 7)), len }
    }
}

/// The bytes of a word.
pub(super) const LEN: usize = 8;
/// A byte times this is a word of that byte.
pub(super) const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte.
pub(super) const HIGHEST: u64 = ONES << 7;
const BLANKS: u64 = ONES * b' ' as u64;
