//! What responses came to, until it can be seen to.

use super::Vacancy;
use crate::{
    Command, Completion,
    budget::Returning,
    request::{Freed, RequestRecord},
    sync::Arc,
};

/// What responses came to, for whoever sees to it when no lock is held.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    /// By opaque, what did more than end its request.
    notable: Vec<(i32, Completion)>,
    returning: Returning,
    pub(super) freed: Vec<Freed>,
    /// What is to be dropped outside the lock.
    pub(super) removed: Vec<Arc<RequestRecord>>,
    pub(super) strays: Vec<Command>,
}

impl Completed {
    #[inline]
    pub(crate) fn note(&mut self, opaque: i32, completion: Completion) {
        if completion != (Completion::Completed { vacancy: Vacancy::None }) {
            self.notable.push((opaque, completion));
        }
    }

    /// Gives back what the ended requests held, and then wakes their callers.
    pub(crate) fn release(&mut self) {
        for freed in &mut self.freed {
            freed.permit_to(&mut self.returning);
        }
        self.returning.give_back();
        self.freed.clear();
        self.removed.clear();
        self.strays.clear();
    }

    /// Takes out what did more than end its request.
    pub(crate) fn notable(&mut self) -> impl Iterator<Item = (i32, Completion)> {
        self.notable.drain(..)
    }
}
