//! Waiting for what other processes do, which can only be asked for again and again.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::error::HarnessError;

/// Why a look did not find what is waited for.
pub(crate) enum Missing {
    /// It may still come; this was seen instead.
    Yet(String),
    /// It will not come.
    ForGood(HarnessError),
}

impl From<String> for Missing {
    fn from(seen: String) -> Self {
        Self::Yet(seen)
    }
}

impl From<HarnessError> for Missing {
    fn from(error: HarnessError) -> Self {
        Self::ForGood(error)
    }
}

/// Looks until it is there, and gives up when `limit` has passed; `look` says what it sees instead. It blocks.
///
/// # Errors
///
/// [`HarnessError::NotInTime`], with what was seen last.
pub fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, HarnessError> {
    wait_until(|| what.to_owned(), limit, || Ok(look()?))
}

/// Looks until it is there, and gives up when `limit` has passed.
pub(crate) fn wait_until<T>(
    what: impl FnOnce() -> String,
    limit: Duration,
    mut look: impl FnMut() -> Result<T, Missing>,
) -> Result<T, HarnessError> {
    let started = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(Missing::ForGood(error)) => return Err(error),
            Err(Missing::Yet(seen)) if started.elapsed() >= limit => {
                return Err(HarnessError::NotInTime { what: what(), limit, seen });
            }
            Err(Missing::Yet(_)) => thread::sleep(PAUSE),
        }
    }
}

const PAUSE: Duration = Duration::from_millis(100);
