//! What brokers and name servers understand: codes, typed headers and bodies.
//!
//! Each is usable from both sides. What only the answering side needs is compiled with the feature
//! `embedded-broker` and in tests.

pub(crate) mod code;
pub(crate) mod heartbeat;
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) mod offset;
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) mod pull;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod send;
pub(crate) mod stored;
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) mod topic;

#[cfg(test)]
mod tests;
