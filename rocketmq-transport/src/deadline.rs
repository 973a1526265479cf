//! The one instant at which a request ends.

use std::time::Duration;

use tokio::time::Instant;

/// One absolute monotonic instant, and the budget it came from.
///
/// It is frozen once, where a request enters the library, and handed down by value through every stage.
/// It can be [capped](Self::capped), never extended. A budget of [`Duration::MAX`] (or one that the clock
/// cannot represent) means never; a budget of zero means already.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use rocketmq_transport::RequestDeadline;
///
/// let deadline = RequestDeadline::after(Duration::from_secs(3));
/// assert!(deadline.capped(Duration::from_secs(1)).at() < deadline.at());
/// assert_eq!(deadline.capped(Duration::from_secs(9)), deadline);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDeadline {
    at: Option<Instant>,
    budget: Duration,
}

impl RequestDeadline {
    /// The instant `budget` from now.
    #[must_use]
    pub fn after(budget: Duration) -> Self {
        Self::from(Instant::now(), budget)
    }

    /// The instant `budget` after `start`, for callers that have read the clock already.
    #[must_use]
    #[inline]
    pub fn from(start: Instant, budget: Duration) -> Self {
        let at = if budget == Duration::MAX { None } else { start.checked_add(budget) };
        Self { at, budget }
    }

    /// A deadline that never comes.
    #[must_use]
    pub const fn never() -> Self {
        Self { at: None, budget: Duration::MAX }
    }

    /// The instant itself; `None` means never.
    #[must_use]
    #[inline]
    pub const fn at(&self) -> Option<Instant> {
        self.at
    }

    /// The budget this deadline came from, as the caller gave it. Capping does not change it.
    #[must_use]
    pub const fn budget(&self) -> Duration {
        self.budget
    }

    /// Whether the deadline has come at `now`.
    #[must_use]
    #[inline]
    pub fn is_expired(&self, now: Instant) -> bool {
        self.at.is_some_and(|at| at <= now)
    }

    /// What is left at `now`: zero once expired, [`Duration::MAX`] for never.
    #[must_use]
    pub fn remaining(&self, now: Instant) -> Duration {
        self.at.map_or(Duration::MAX, |at| at.saturating_duration_since(now))
    }

    /// This deadline, or `limit` from now where that is earlier.
    #[must_use]
    pub fn capped(self, limit: Duration) -> Self {
        match Self::after(limit).at {
            Some(limit) => self.capped_at(limit),
            None => self,
        }
    }

    /// This deadline, or `limit` where that is earlier.
    #[must_use]
    pub fn capped_at(self, limit: Instant) -> Self {
        Self { at: Some(self.at.map_or(limit, |at| at.min(limit))), budget: self.budget }
    }

    /// This deadline, or `limit` where there is one and it is earlier.
    pub(crate) fn capped_by(self, limit: Option<Instant>) -> Self {
        limit.map_or(self, |limit| self.capped_at(limit))
    }
}

#[cfg(all(test, not(rocketmq_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_duration_means_never_and_zero_means_already() {
        let now = Instant::now();
        let never = RequestDeadline::from(now, Duration::MAX);
        assert_eq!(never, RequestDeadline::never());
        assert!(!never.is_expired(now + Duration::from_secs(1 << 32)));
        assert_eq!(never.remaining(now), Duration::MAX);
        let already = RequestDeadline::from(now, Duration::ZERO);
        assert!(already.is_expired(now));
        assert_eq!(already.remaining(now), Duration::ZERO);
    }

    #[test]
    fn a_budget_beyond_the_clock_means_never() {
        let beyond = RequestDeadline::from(Instant::now(), Duration::from_secs(u64::MAX));
        assert_eq!(beyond.at(), None);
    }

    proptest! {
        #[test]
        fn capping_only_shortens_and_copies_never_move(budget in 0u64..1 << 40, limit in 0u64..1 << 40) {
            let start = Instant::now();
            let deadline = RequestDeadline::from(start, Duration::from_nanos(budget));
            let copy = deadline;
            let capped = copy.capped_at(start + Duration::from_nanos(limit));
            prop_assert_eq!(deadline, RequestDeadline::from(start, Duration::from_nanos(budget)));
            prop_assert_eq!(capped.at(), Some(start + Duration::from_nanos(budget.min(limit))));
            prop_assert_eq!(capped.budget(), deadline.budget());
        }
    }
}
