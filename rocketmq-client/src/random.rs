//! Randomness for starting points and jitter, not for secrets.

use std::hash::{BuildHasher, RandomState};

/// A number that differs with each call and each process.
pub(crate) fn number() -> u64 {
    // Each state has keys of its own, seeded by the operating system.
    RandomState::new().hash_one(())
}

/// A number in 0..1.
pub(crate) fn fraction() -> f64 {
    f64::from(u32::try_from(number() >> 32).unwrap_or(u32::MAX)) / (f64::from(u32::MAX) + 1.0)
}
