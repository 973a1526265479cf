//! The instants at which the requests of one generation end at the latest, earliest first.

use std::{cmp::Reverse, collections::BinaryHeap};

use tokio::time::Instant;

/// Limits of pending requests, by opaque. One watcher ends what is due, so that a request which is answered in time
/// costs no timer of its own: its limit stays behind until it comes up or is swept.
#[derive(Debug, Default)]
pub(super) struct Limits {
    heap: BinaryHeap<Reverse<(Instant, i32)>>,
    /// When the watcher looks again without being told; `None` while it does not.
    armed: Option<Instant>,
}

/// What a new limit means to the watcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// It looks in time.
    InTime,
    /// It has to be told, since it would look too late.
    ToTell,
}

impl Limits {
    /// Adds the limit of `opaque`.
    pub(super) fn add(&mut self, at: Instant, opaque: i32) -> Watch {
        self.heap.push(Reverse((at, opaque)));
        if self.armed.is_some_and(|armed| armed <= at) {
            return Watch::InTime;
        }
        self.armed = Some(at);
        Watch::ToTell
    }

    /// Drops what is not `pending`, where that is most of it; `most` are.
    pub(super) fn sweep(&mut self, most: usize, pending: impl Fn(i32) -> bool) {
        if self.heap.len() > 2 * most + KEPT {
            self.heap.retain(|Reverse((_, opaque))| pending(*opaque));
        }
    }

    /// The earliest limit of what is `pending`, if that has come at `now`; else the watcher is armed with it.
    pub(super) fn next_due(&mut self, now: Instant, pending: impl Fn(i32) -> bool) -> Option<i32> {
        while let Some(&Reverse((at, opaque))) = self.heap.peek() {
            let is_pending = pending(opaque);
            if is_pending && at > now {
                break;
            }
            self.heap.pop();
            if is_pending {
                return Some(opaque);
            }
        }
        self.armed = self.heap.peek().map(|Reverse((at, _))| *at);
        None
    }

    /// When the watcher looks again without being told.
    pub(super) const fn armed(&self) -> Option<Instant> {
        self.armed
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

/// So many limits are kept however few requests are pending, so that a sweep is paid by many.
const KEPT: usize = 64;

#[cfg(all(test, not(rocketmq_loom)))]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_watcher_is_told_of_a_limit_before_the_one_it_waits_for() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut limits = Limits::default();
        assert_eq!(limits.add(at(20), 1), Watch::ToTell);
        assert_eq!(limits.add(at(20), 2), Watch::InTime);
        assert_eq!(limits.add(at(30), 3), Watch::InTime);
        assert_eq!(limits.add(at(10), 4), Watch::ToTell);
        assert_eq!(limits.armed(), Some(at(10)));
    }

    #[test]
    fn limits_of_what_has_ended_do_not_pile_up() {
        let start = Instant::now();
        let mut limits = Limits::default();
        for opaque in 0..100_000 {
            limits.add(start + Duration::from_secs(30), opaque);
            limits.sweep(1, |pending| pending == opaque);
            assert!(limits.len() <= 2 + KEPT);
        }
    }

    proptest! {
        /// What is pending and due comes up, earliest first, and the watcher is armed with the earliest of the rest.
        #[test]
        fn limits_agree_with_a_sorted_map(
            added in proptest::collection::vec((0u64..100, any::<bool>()), 0..200),
            now in 0u64..100,
        ) {
            let start = Instant::now();
            let at = |ms| start + Duration::from_millis(ms);
            let mut limits = Limits::default();
            let mut model = BTreeSet::new();
            for (opaque, (ms, pending)) in (0..).zip(added) {
                limits.add(at(ms), opaque);
                if pending {
                    model.insert((at(ms), opaque));
                }
            }
            let pending = |opaque: i32| model.iter().any(|key| key.1 == opaque);
            limits.sweep(model.len(), pending);
            let due = std::iter::from_fn(|| limits.next_due(at(now), pending)).collect::<Vec<_>>();
            let (expected, rest): (Vec<(Instant, i32)>, Vec<_>) =
                model.iter().copied().partition(|key| key.0 <= at(now));
            prop_assert_eq!(due, expected.iter().map(|key| key.1).collect::<Vec<_>>());
            prop_assert_eq!(limits.armed(), rest.first().map(|key| key.0));
        }
    }
}
