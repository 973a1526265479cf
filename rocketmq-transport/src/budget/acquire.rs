//! Waiting for room, in turn.

use std::task::{Context, Poll};

use tokio::time::Instant;

use super::{Ask, Class, Deferred, PeerBudget, Permit, Refusal, Refused};
use crate::RequestDeadline;

/// A wait for a permit, bounded by a deadline; made by [`PeerBudget::acquire`].
///
/// It reads no clock and sets no timer: whoever polls it tells the time and polls it again at the deadline at
/// the latest. Dropping it leaves the queue and passes on a wake-up that it may have been given.
#[derive(Debug)]
#[must_use]
pub(crate) struct Acquire<'a> {
    budget: &'a PeerBudget,
    class: Class,
    ask: Ask,
    deadline: RequestDeadline,
    /// Its entry, once it has joined the queue.
    waiter: Option<u32>,
}

/// Why a wait for a permit ended without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcquireError {
    /// The deadline passed.
    Expired,
    /// The ask alone is larger than a whole limit, so that it was not queued.
    TooLarge(Refusal),
}

impl<'a> Acquire<'a> {
    pub(super) const fn new(
        budget: &'a PeerBudget,
        class: Class,
        ask: Ask,
        deadline: RequestDeadline,
    ) -> Self {
        Self { budget, class, ask, deadline, waiter: None }
    }

    /// Takes a permit where it is this waiter's turn and there is room; otherwise `cx` is woken when that may
    /// have changed. Not to be polled again once ready.
    pub(crate) fn poll_acquire(
        &mut self,
        cx: &Context<'_>,
        now: Instant,
    ) -> Poll<Result<Permit, AcquireError>> {
        if self.waiter.is_none() {
            if self.deadline.is_expired(now) {
                return Poll::Ready(Err(AcquireError::Expired));
            }
            match self.budget.try_acquire(self.class, self.ask, now) {
                Ok(permit) => return Poll::Ready(Ok(permit)),
                Err(Refused::TooLarge(refusal)) => return Poll::Ready(Err(AcquireError::TooLarge(refusal))),
                Err(Refused::Saturated(_)) => {}
            }
        }
        // A waker is foreign code, so it is cloned before the lock is taken.
        let deferred = Deferred::with_sleeper(cx.waker().clone());
        let leaf = self.budget.leaf(self.class);
        let taken = self.budget.shared.update(deferred, |ledger, deferred| {
            let waiter = *self.waiter.get_or_insert_with(|| ledger.join(leaf, self.ask, self.deadline));
            ledger.poll(waiter, now, deferred)
        });
        taken.map(|taken| {
            self.waiter = None;
            if taken { Ok(self.budget.permit(self.class, self.ask)) } else { Err(AcquireError::Expired) }
        })
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.budget.shared.update(Deferred::default(), |ledger, deferred| ledger.leave(waiter, deferred));
        }
    }
}
