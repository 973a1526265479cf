//! What the suites share.

pub mod apache;
