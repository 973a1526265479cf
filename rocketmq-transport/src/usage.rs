//! What a transport has in use.

/// What one level has in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Requests.
    pub requests: u64,
    /// Retained bytes.
    pub bytes: u64,
}

/// Counts and bytes in use, per level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Data and long polls of all peers together.
    pub client: Used,
}
