//! Which physical connection a request belongs to.

use std::fmt;

/// The number of one physical connection, never reused in a transport: the owner half of the key
/// under which a pending request is found.
///
/// Responses of one generation complete only requests of that generation, whatever their opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PendingRequestOwner {
    number: u64,
    /// Of the table that issued it.
    tag: u64,
}

impl PendingRequestOwner {
    pub(crate) const fn new(tag: u64, number: u64) -> Self {
        Self { number, tag }
    }

    /// Whether the table with this tag issued it.
    pub(crate) const fn is_of(self, tag: u64) -> bool {
        self.tag == tag
    }

    /// The number itself, counting from 1 in the order the connections were opened.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.number
    }
}

impl fmt::Display for PendingRequestOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}
