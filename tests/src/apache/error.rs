//! What can go wrong around the broker, as opposed to with it.

use std::{io, process::ExitStatus, time::Duration};

/// Why the harness could not do its part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// A program is missing on this machine.
    #[error(
        "cannot find {program}: install a JDK (11 or later) and Maven, in Debian default-jdk-headless and maven"
    )]
    NoTool {
        /// Its name.
        program: String,
    },
    /// A program ended when it should not have, or not well.
    #[error("{what} ended with {status}; it printed:\n{output}")]
    Ended {
        /// Which program.
        what: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed.
        output: String,
    },
    /// Something that was waited for did not happen in time.
    #[error("{what}: not within {limit:?}; last seen:\n{seen}")]
    NotInTime {
        /// What was waited for.
        what: String,
        /// For how long.
        limit: Duration,
        /// The last that was seen of it.
        seen: String,
    },
    /// The ports that were free when they were chosen were taken by others, each time.
    #[error("the ports were taken by others at each of {starts} starts")]
    NoPort {
        /// How often it was tried.
        starts: u32,
    },
    /// A name server or broker answered a request of the harness with a failure.
    #[error("{peer} answered request {request} with {code}: {remark}")]
    Refused {
        /// Its address.
        peer: String,
        /// The request.
        request: i32,
        /// The status of the answer.
        code: i32,
        /// Its remark.
        remark: String,
    },
    /// An operation on a file, folder or socket failed.
    #[error("cannot {what}")]
    Io {
        /// The operation.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// What came back is not the JSON that was expected.
    #[error("{what} is not as expected: {text}")]
    Json {
        /// What was read.
        what: &'static str,
        /// The text, or its beginning.
        text: String,
        /// What the parser said.
        source: serde_json::Error,
    },
}

impl HarnessError {
    /// For `map_err` on an operation that is described only when it has failed.
    pub(crate) fn io<W: Into<String>>(what: impl FnOnce() -> W) -> impl FnOnce(io::Error) -> Self {
        |source| Self::Io { what: what().into(), source }
    }
}
