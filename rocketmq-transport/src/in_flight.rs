//! A look at what is in flight.

use std::{fmt, time::Duration};

use crate::{Code, Opaque, Peer, PendingRequestOwner, Stage};

/// What was in flight at one moment, each request as it was when it was looked at.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InFlight {
    /// The requests, by peer and connection; within a connection in no order.
    pub requests: Vec<InFlightRequest>,
    /// How many more there were than the look was limited to.
    pub omitted: u64,
}

/// One request in flight, or the tombstone of one that was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InFlightRequest {
    /// Where it was sent.
    pub peer: Peer,
    /// On which connection.
    pub generation: PendingRequestOwner,
    /// Under which number.
    pub opaque: Opaque,
    /// The operation asked for.
    pub code: Code,
    /// Where it is; `None` for the tombstone of a request that has ended.
    pub stage: Option<Stage>,
    /// The time since its start.
    pub age: Duration,
    /// What is left until its deadline; zero for a tombstone, [`Duration::MAX`] for never.
    pub budget_left: Duration,
    /// The bytes it was charged with.
    pub bytes: u64,
}

impl fmt::Display for InFlightRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "request {} opaque {} on {}#{}: {} for {} ms, ",
            self.code,
            self.opaque,
            self.peer,
            self.generation,
            self.stage.map_or("Tombstone", Stage::as_str),
            self.age.as_millis(),
        )?;
        match self.budget_left {
            Duration::MAX => f.write_str("no limit")?,
            left => write!(f, "{} ms left", left.as_millis())?,
        }
        write!(f, ", {} bytes", self.bytes)
    }
}
