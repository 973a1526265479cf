//! The instants at which the requests of one generation end at the latest, earliest first.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

use tokio::time::Instant;

/// Limits of pending requests, by opaque. One watcher ends what is due, so that a request which is answered in time
/// costs no timer of its own: its limit stays behind until it comes to the front, comes up or is swept.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Limits that came in order, as those of one budget do.
    in_order: VecDeque<(Instant, i32)>,
    others: BinaryHeap<Reverse<(Instant, i32)>>,
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
    /// Adds the limit of `opaque`, one of `most` at most that are `pending`.
    #[inline]
    pub(super) fn add(
        &mut self,
        at: Instant,
        opaque: i32,
        most: usize,
        pending: impl Fn(i32) -> bool,
    ) -> Watch {
        while self.in_order.pop_front_if(|(_, first)| !pending(*first)).is_some() {}
        if self.in_order.len() + self.others.len() > 2 * most + KEPT {
            self.sweep(pending);
        }
        match self.in_order.back() {
            Some((last, _)) if at < *last => self.others.push(Reverse((at, opaque))),
            _ => self.in_order.push_back((at, opaque)),
        }
        if self.armed.is_some_and(|armed| armed <= at) {
            return Watch::InTime;
        }
        self.armed = Some(at);
        Watch::ToTell
    }

    /// Drops what is not `pending`.
    #[cold]
    fn sweep(&mut self, pending: impl Fn(i32) -> bool) {
        self.in_order.retain(|(_, opaque)| pending(*opaque));
        self.others.retain(|Reverse((_, opaque))| pending(*opaque));
    }

    /// Takes out the earliest limit of what is `pending`, if that has come at `now`; else the watcher is armed with it.
    pub(super) fn next_due(&mut self, now: Instant, pending: impl Fn(i32) -> bool) -> Option<i32> {
        while let Some((at, opaque)) = self.first() {
            let is_pending = pending(opaque);
            if is_pending && at > now {
                self.armed = Some(at);
                return None;
            }
            self.drop_first();
            if is_pending {
                return Some(opaque);
            }
        }
        self.armed = None;
        None
    }

    fn first(&self) -> Option<(Instant, i32)> {
        let other = self.others.peek().map(|Reverse(limit)| *limit);
        let limits = self.in_order.front().copied().into_iter().chain(other);
        limits.min()
    }

    fn drop_first(&mut self) {
        if self.first() == self.in_order.front().copied() {
            self.in_order.pop_front();
        } else {
            self.others.pop();
        }
    }

    /// When the watcher looks again without being told.
    pub(super) const fn armed(&self) -> Option<Instant> {
        self.armed
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.in_order.len() + self.others.len()
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
        let mut add = |ms, opaque| limits.add(at(ms), opaque, 4, |_| true);
        assert_eq!(add(20, 1), Watch::ToTell);
        assert_eq!(add(20, 2), Watch::InTime);
        assert_eq!(add(30, 3), Watch::InTime);
        assert_eq!(add(10, 4), Watch::ToTell);
        assert_eq!(limits.armed(), Some(at(10)));
    }

    #[test]
    fn limits_of_what_has_ended_do_not_pile_up() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut limits = Limits::default();
        // The first one stays, and what comes behind it is in order or not.
        for opaque in 0..100_000 {
            let at = start + if opaque % 3 == 0 { second } else { 2 * second };
            limits.add(at, opaque, 2, |pending| pending == 0 || pending == opaque);
            assert!(limits.len() <= 5 + KEPT);
        }
        assert_eq!(limits.next_due(start + second, |pending| pending == 0), Some(0));
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
                if pending {
                    model.insert((at(ms), opaque));
                }
                limits.add(at(ms), opaque, model.len(), |opaque| model.iter().any(|key| key.1 == opaque));
            }
            let pending = |opaque: i32| model.iter().any(|key| key.1 == opaque);
            let due = std::iter::from_fn(|| limits.next_due(at(now), pending)).collect::<Vec<_>>();
            let (expected, rest): (Vec<(Instant, i32)>, Vec<_>) =
                model.iter().copied().partition(|key| key.0 <= at(now));
            prop_assert_eq!(due, expected.iter().map(|key| key.1).collect::<Vec<_>>());
            prop_assert_eq!(limits.armed(), rest.first().map(|key| key.0));
        }
    }
}
