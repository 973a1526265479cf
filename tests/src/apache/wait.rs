//! Waiting for what other processes do, which can only be asked for again and again.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::error::HarnessError;

/// One look at what is waited for.
pub(crate) enum Look {
    /// It is there.
    Done,
    /// It is not; this was seen instead.
    NotYet(String),
}

/// Looks until it is done, and gives up when `limit` has passed.
pub(crate) fn wait_until(
    what: impl FnOnce() -> String,
    limit: Duration,
    mut look: impl FnMut() -> Result<Look, HarnessError>,
) -> Result<(), HarnessError> {
    let started = Instant::now();
    loop {
        match look()? {
            Look::Done => return Ok(()),
            Look::NotYet(seen) if started.elapsed() >= limit => {
                return Err(HarnessError::NotInTime { what: what(), limit, seen });
            }
            Look::NotYet(_) => thread::sleep(PAUSE),
        }
    }
}

const PAUSE: Duration = Duration::from_millis(100);
