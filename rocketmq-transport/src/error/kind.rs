//! What can happen to a request, and to a connection.

use std::{error::Error, io, sync::Arc, time::Duration};

use crate::{
    Certainty, EncodeError, FrameError, Stage,
    budget::Refusal,
    stage::{FrameFate, certainty},
};

/// What happened to a request that did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The deadline came.
    #[error("deadline expired")]
    DeadlineExpired,
    /// The caller's start-by instant came before a byte of the frame had left.
    #[error("not started in time")]
    NotStarted,
    /// An admission limit was reached; nothing was sent.
    #[error(transparent)]
    QueueSaturated(#[from] Refusal),
    /// The request alone is larger than a whole admission limit; it can never be sent under these settings.
    #[error("larger than the whole limit: {0}")]
    TooLarge(Refusal),
    /// The request cannot be written as a frame.
    #[error("request cannot be encoded")]
    InvalidRequest(#[source] EncodeError),
    /// The dial failed.
    #[error("connection failed")]
    ConnectFailed(#[source] Arc<io::Error>),
    /// An earlier dial failed, or an earlier connection ended before its first response, and the pause after
    /// it has not ended; this is its cause.
    #[error("backing off for another {} ms after a failure", remaining.as_millis())]
    BackingOff {
        /// How long the pause still lasts.
        remaining: Duration,
        /// Why there is a pause.
        source: Arc<io::Error>,
    },
    /// The signer failed.
    #[error("signing failed")]
    SigningFailed(#[source] Arc<dyn Error + Send + Sync>),
    /// The connection ended before the response.
    #[error("connection lost")]
    ConnectionLost(#[source] CloseCause),
    /// The transport or channel was closed by its owner.
    #[error("closed by its owner")]
    Closed,
}

impl TransportErrorKind {
    /// Every identifier that [`code_id`](Self::code_id) gives, as `docs/errors.md` explains them.
    pub const CODE_IDS: [&'static str; 10] = [
        "RMQ-T01", "RMQ-T02", "RMQ-T03", "RMQ-T04", "RMQ-T05", "RMQ-T06", "RMQ-T07", "RMQ-T08", "RMQ-T09",
        "RMQ-T10",
    ];

    /// The stable identifier of the kind.
    #[must_use]
    pub const fn code_id(&self) -> &'static str {
        // By its place in the list, so that none is given that is not listed.
        Self::CODE_IDS[match self {
            Self::DeadlineExpired => 0,
            Self::NotStarted => 1,
            Self::QueueSaturated(_) => 2,
            Self::TooLarge(_) => 3,
            Self::InvalidRequest(_) => 4,
            Self::ConnectFailed(_) => 5,
            Self::BackingOff { .. } => 6,
            Self::SigningFailed(_) => 7,
            Self::ConnectionLost(_) => 8,
            Self::Closed => 9,
        }]
    }

    /// The certainty of this kind of failure in `stage`: refusals are refusals, the rest follows the stage.
    pub(crate) const fn certainty(&self, stage: Stage, fate: FrameFate) -> Certainty {
        match self {
            Self::QueueSaturated(_) | Self::TooLarge(_) | Self::InvalidRequest(_) => Certainty::Refused,
            Self::DeadlineExpired
            | Self::NotStarted
            | Self::ConnectFailed(_)
            | Self::BackingOff { .. }
            | Self::SigningFailed(_)
            | Self::ConnectionLost(_)
            | Self::Closed => certainty(stage, fate),
        }
    }

    pub(crate) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::InvalidRequest(error) => Some(error),
            Self::ConnectFailed(error) | Self::BackingOff { source: error, .. } => Some(&**error),
            Self::SigningFailed(error) => Some(&**error),
            Self::ConnectionLost(cause) => Some(cause),
            Self::DeadlineExpired
            | Self::NotStarted
            | Self::QueueSaturated(_)
            | Self::TooLarge(_)
            | Self::Closed => None,
        }
    }
}

/// Why a connection ended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CloseCause {
    /// The peer ended the stream.
    #[error("the peer closed the connection")]
    EndOfStream,
    /// Reading or writing failed.
    #[error("the socket failed: {0}")]
    Io(Arc<io::Error>),
    /// The peer sent bytes that are not the protocol's.
    #[error("malformed frame: {0}")]
    Malformed(FrameError),
    /// A frame from the peer stayed incomplete for longer than `max_frame_read`.
    #[error("a frame stayed incomplete for {} ms on its way in", limit.as_millis())]
    FrameReadTimeout {
        /// The setting that was exceeded.
        limit: Duration,
    },
    /// One frame of ours took longer than `max_frame_write`.
    #[error("a frame took longer than {} ms to write", limit.as_millis())]
    FrameWriteTimeout {
        /// The setting that was exceeded.
        limit: Duration,
    },
    /// The socket accepted nothing for `max_write_stall`.
    #[error("the socket accepted nothing for {} ms", limit.as_millis())]
    WriteStalled {
        /// The setting that was exceeded.
        limit: Duration,
    },
    /// A task of the connection panicked.
    #[error("a task of the connection panicked")]
    Panicked,
    /// The runtime ended a task of the connection.
    #[error("a task of the connection was aborted")]
    Aborted,
    /// It was retired and has finished what was in flight, or `max_drain` has passed.
    #[error("the connection was retired ({0})")]
    Retired(RetireReason),
    /// Its owner closed it.
    #[error("closed by its owner")]
    Closed,
}

impl CloseCause {
    /// What an [`io::Error`] made of it says, so that causes are told apart there too.
    pub(crate) fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::EndOfStream => io::ErrorKind::UnexpectedEof,
            Self::Io(error) => error.kind(),
            Self::Malformed(_) => io::ErrorKind::InvalidData,
            Self::FrameReadTimeout { .. } | Self::FrameWriteTimeout { .. } | Self::WriteStalled { .. } => {
                io::ErrorKind::TimedOut
            }
            Self::Panicked | Self::Aborted | Self::Retired(_) | Self::Closed => io::ErrorKind::Other,
        }
    }
}

/// Why a connection takes no more requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RetireReason {
    /// A response was due and none was read for `min_silence`.
    #[error("silent")]
    Silence,
    /// A response timed out, under [`RetirePolicy::OnTimeout`](crate::RetirePolicy::OnTimeout).
    #[error("response timeout")]
    Timeout,
    /// It remembered more abandoned requests than `max_tombstones`.
    #[error("too many tombstones")]
    Tombstones,
    /// Its opaques were used up.
    #[error("opaques used up")]
    Opaques,
    /// It was unused for longer than `max_idle`.
    #[error("idle")]
    Idle,
    /// Its socket failed or its owner closed it.
    #[error("closed")]
    Closed,
}
