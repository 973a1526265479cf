//! What ended an attempt or a send.

use std::{error::Error, fmt, sync::Arc};

use rocketmq_transport::{Certainty, Code, FieldError, Refusal, TransportError};

use crate::{error::Causes, message::MessageError, queue::MessageQueue, routes::RouteError};

/// What ended an attempt or a send.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// The message breaks a rule; nothing was sent.
    #[error(transparent)]
    InvalidMessage(MessageError),
    /// The budget was used up before an attempt could begin.
    #[error("deadline expired")]
    DeadlineExpired,
    /// No route to the topic was found.
    #[error("{}", .0.kind())]
    Route(RouteError),
    /// The queue asked for is not among those of the topic that can be written.
    #[error("no such queue: {0}")]
    NoSuchQueue(MessageQueue),
    /// The limit of bytes that are kept for a repetition was reached; nothing was sent.
    #[error(transparent)]
    QueueSaturated(Refusal),
    /// The broker answered that it failed.
    #[error("the broker answered {code}{}{remark}", if remark.is_empty() { "" } else { ": " })]
    Answer {
        /// The status.
        code: Code,
        /// The broker's text, shortened.
        remark: Arc<str>,
    },
    /// The broker answered that it has stored the message, but not where, or not in a form we can read.
    #[error("unreadable answer: {0}")]
    UnreadableAnswer(FieldError),
    /// The transport failed; the error has its own kind, stage and certainty.
    #[error("{}", .0.kind())]
    Transport(TransportError),
    /// The producer was shut down.
    #[error("the producer was shut down")]
    Closed,
}

impl SendErrorKind {
    /// Every identifier of this enum's own that [`code_id`](Self::code_id) gives, as `docs/errors.md` explains them.
    /// The others are [`RouteErrorKind::CODE_IDS`](crate::RouteErrorKind::CODE_IDS) and those of the transport.
    pub const CODE_IDS: [&'static str; 7] =
        ["RMQ-C01", "RMQ-C02", "RMQ-C06", "RMQ-C07", "RMQ-C08", "RMQ-C09", "RMQ-C10"];

    /// The stable identifier of the kind; that of the transport where the transport failed.
    #[must_use]
    pub fn code_id(&self) -> &'static str {
        // By its place in the list, so that none is given that is not listed.
        Self::CODE_IDS[match self {
            Self::Route(error) => return error.code_id(),
            Self::Transport(error) => return error.code_id(),
            Self::InvalidMessage(_) => 0,
            Self::DeadlineExpired => 1,
            Self::NoSuchQueue(_) => 2,
            Self::QueueSaturated(_) => 3,
            Self::Answer { .. } => 4,
            Self::UnreadableAnswer(_) => 5,
            Self::Closed => 6,
        }]
    }

    /// The certainty of a send that this ended before its first attempt.
    pub(super) const fn certainty(&self) -> Certainty {
        match self {
            Self::InvalidMessage(_) | Self::QueueSaturated(_) | Self::NoSuchQueue(_) => Certainty::Refused,
            Self::DeadlineExpired | Self::Route(_) | Self::Closed => Certainty::NotSent,
            // Only attempts end so, and they carry their own certainty.
            Self::Answer { .. } | Self::UnreadableAnswer(_) | Self::Transport(_) => Certainty::Unknown,
        }
    }

    pub(super) fn cause(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Route(error) => error.source(),
            Self::Transport(error) => error.source(),
            Self::InvalidMessage(_)
            | Self::UnreadableAnswer(_)
            | Self::DeadlineExpired
            | Self::NoSuchQueue(_)
            | Self::QueueSaturated(_)
            | Self::Answer { .. }
            | Self::Closed => None,
        }
    }
}

/// A kind with its causes, for lines and lists that no chain of sources continues.
pub(crate) struct Explained<'a>(pub(crate) &'a SendErrorKind);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SendErrorKind::Route(error) => write!(f, "{}{}", error.kind(), error.listed()),
            kind => write!(f, "{kind}{}", Causes(kind.cause())),
        }
    }
}
