//! What transitions leave for when no lock is held.

use std::task::Waker;

use super::Frame;
use crate::{Command, Permit, budget::Returning};

/// What a request that has ended leaves to be given back and woken outside every lock. The permit goes first, so that
/// whoever is woken finds it given back.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Freed {
    pub(super) permit: Option<Permit>,
    pub(super) waker: Option<Waker>,
}

impl Freed {
    /// Lets the permit go back together with others.
    #[inline]
    pub(crate) fn permit_to(&mut self, returning: &mut Returning) {
        if let Some(permit) = self.permit.take() {
            returning.add(permit);
        }
    }
}

impl Drop for Freed {
    fn drop(&mut self) {
        self.permit = None;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// What a transition leaves to be dropped and woken outside every lock, in this order.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Leftover {
    pub(super) frame: Option<Frame>,
    pub(super) response: Option<Command>,
    pub(super) freed: Freed,
}
