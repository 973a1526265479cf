//! Admission: what may be in flight, in requests and in retained bytes, at client, peer and class.

use std::fmt;

/// An admission limit in both dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Requests at the same time.
    pub requests: u64,
    /// Bytes retained at the same time: bodies, a bound of the encoded header, and a fixed overhead each.
    pub bytes: u64,
}

/// What kind of work a request is; each kind has its own budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// Heartbeats, unregistering, ends of transactions: written before data.
    Control,
    /// Everything else.
    #[default]
    Data,
    /// Requests that the peer holds back on purpose; written among data.
    LongPoll,
}

/// The level of an admission limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// All peers together.
    Client,
    /// One peer.
    Peer,
    /// One class at one peer.
    Class(Class),
}

/// The dimension of an admission limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Requests at the same time.
    Requests,
    /// Retained bytes.
    Bytes,
}

/// An admission refusal: which limit, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{level} is saturated in {dimension}: limit {limit}, in use {in_use}, asked {asked}")]
pub struct Refusal {
    /// The level that is full.
    pub level: Level,
    /// The dimension it is full in.
    pub dimension: Dimension,
    /// Its limit.
    pub limit: u64,
    /// What is in use of it.
    pub in_use: u64,
    /// What was asked for.
    pub asked: u64,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control",
            Self::Data => "data",
            Self::LongPoll => "long poll",
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.write_str("client"),
            Self::Peer => f.write_str("peer"),
            Self::Class(class) => write!(f, "class {class}"),
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
        })
    }
}

/// A claim on all levels of the budget, given back exactly once, by its drop.
#[derive(Debug)]
#[must_use]
pub struct Permit {}
