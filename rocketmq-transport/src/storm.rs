//! Folding of repeated log lines: the first few pass, the rest are counted.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Decides, for events of one kind, which get a line of their own and which are folded into one.
///
/// Of the events with one key, [`LINES`](Self::LINES) pass in each window of a second. The others are counted, and the
/// last of them kept as a sample, until the window has ended and [`folds`](Self::folds) hands them out. The count is
/// exact: each event passes or is folded, once.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use rocketmq_transport::{Storm, Verdict};
/// use tokio::time::Instant;
///
/// let storm = Storm::new();
/// let now = Instant::now();
/// let passed = (0..1_000).filter(|event| matches!(storm.note("timeout", *event, now), Verdict::Pass(_))).count();
/// assert_eq!(passed, Storm::<&str, i32>::LINES);
///
/// let (folds, due) = storm.folds(now + Storm::<&str, i32>::WINDOW);
/// assert_eq!((folds[0].count, folds[0].sample, due), (997, 999, None));
/// # }
/// ```
#[derive(Debug)]
pub struct Storm<K, S> {
    windows: Mutex<HashMap<K, Window<S>>>,
}

#[derive(Debug)]
struct Window<S> {
    ends: Instant,
    passed: usize,
    folded: u64,
    sample: Option<S>,
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<S> {
    /// It gets a line of its own.
    Pass(S),
    /// It is folded, as the first of its window: [`Storm::folds`] has to be asked at this instant.
    Opened(Instant),
    /// It is folded with others.
    Folded,
}

/// Events that were folded into one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fold<K, S> {
    /// What they have in common.
    pub key: K,
    /// How many they were.
    pub count: u64,
    /// The last of them.
    pub sample: S,
}

impl<K: Clone + Eq + Hash, S> Storm<K, S> {
    /// So many events of one key pass in a window.
    pub const LINES: usize = 3;
    /// The length of a window.
    pub const WINDOW: Duration = Duration::from_secs(1);

    /// Nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        Self { windows: Mutex::default() }
    }

    /// An event happened at `now`.
    pub fn note(&self, key: K, sample: S, now: Instant) -> Verdict<S> {
        let mut windows = self.windows();
        let fresh = || Window { ends: now + Self::WINDOW, passed: 0, folded: 0, sample: None };
        let window = windows.entry(key).or_insert_with(fresh);
        // What was folded before is handed out first: a window with folds stays open until then.
        if window.ends <= now && window.folded == 0 {
            *window = fresh();
        }
        if window.passed < Self::LINES {
            window.passed += 1;
            return Verdict::Pass(sample);
        }
        window.folded += 1;
        let replaced = window.sample.replace(sample);
        let (first, ends) = (window.folded == 1, window.ends);
        drop(windows);
        drop(replaced);
        if first { Verdict::Opened(ends) } else { Verdict::Folded }
    }

    /// Hands out what was folded in the windows that have ended at `now`, and says when the next one ends that has
    /// folded something.
    pub fn folds(&self, now: Instant) -> (Vec<Fold<K, S>>, Option<Instant>) {
        let mut next = None::<Instant>;
        let mut folds = Vec::new();
        self.windows().retain(|key, window| {
            if window.ends > now {
                if window.folded > 0 {
                    next = Some(next.map_or(window.ends, |next| next.min(window.ends)));
                }
                return true;
            }
            folds.extend(window.sample.take().map(|sample| Fold {
                key: key.clone(),
                count: window.folded,
                sample,
            }));
            false
        });
        (folds, next)
    }

    /// Hands out everything that was folded, for the end of the log's owner.
    pub fn drain(&self) -> Vec<Fold<K, S>> {
        let windows = std::mem::take(&mut *self.windows());
        let fold =
            |(key, window): (K, Window<S>)| Some(Fold { key, count: window.folded, sample: window.sample? });
        windows.into_iter().filter_map(fold).collect()
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<K, Window<S>>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, S> Default for Storm<K, S> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_passes_or_is_folded_once_over_many_windows() {
        let storm = Storm::new();
        let start = Instant::now();
        let (mut passed, mut folded) = (0, 0);
        for event in 0..100_000u64 {
            let now = start + Duration::from_micros(event * 50);
            if let Verdict::Pass(_) = storm.note(event % 2, event, now) {
                passed += 1;
            }
            if event % 1_000 == 0 {
                folded += storm.folds(now).0.iter().map(|fold| fold.count).sum::<u64>();
            }
        }
        folded += storm.drain().iter().map(|fold| fold.count).sum::<u64>();
        assert_eq!(passed + folded, 100_000);
        assert!(passed <= 2 * 6 * 3, "two keys, five seconds and a bit: {passed}");
    }

    #[test]
    fn a_window_that_folded_nothing_gives_way_to_the_next() {
        let storm = Storm::new();
        let start = Instant::now();
        for second in 0..10 {
            let now = start + Duration::from_secs(second);
            assert_eq!(storm.note((), second, now), Verdict::Pass(second));
            assert_eq!(storm.folds(now), (Vec::new(), None));
        }
    }

    #[test]
    fn the_first_fold_says_when_it_is_due() {
        let storm = Storm::new();
        let start = Instant::now();
        for event in 0..3 {
            assert_eq!(storm.note((), event, start), Verdict::Pass(event));
        }
        let due = start + Duration::from_secs(1);
        assert_eq!(storm.note((), 3, start), Verdict::Opened(due));
        assert_eq!(storm.note((), 4, start), Verdict::Folded);
        assert_eq!(storm.folds(start), (Vec::new(), Some(due)));
        assert_eq!(storm.folds(due), (vec![Fold { key: (), count: 2, sample: 4 }], None));
    }
}
