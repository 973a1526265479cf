//! Which physical connection a request belongs to.

use std::{fmt, num::NonZeroU64};

/// The number of one physical connection, never reused in a transport: the owner half of the key
/// under which a pending request is found.
///
/// Responses of one generation complete only requests of that generation, whatever their opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PendingRequestOwner(NonZeroU64);

impl PendingRequestOwner {
    pub(crate) const fn new(number: NonZeroU64) -> Self {
        Self(number)
    }

    /// The number itself, counting from 1 in the order the connections were opened.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for PendingRequestOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
