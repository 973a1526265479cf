//! Why it could not be said whether a message is stored.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use rocketmq_transport::{Code, Peer, TransportError};

use crate::{error::Causes, message::MessageError, routes::RouteError};

/// A message of which the brokers could not say whether they have it. One pointer wide and cheap to clone.
#[derive(Clone)]
pub struct ResolveError(Arc<ResolveReport>);

/// Everything that is known of a resolution that failed.
#[derive(Debug)]
pub(super) struct ResolveReport {
    pub(super) kind: ResolveErrorKind,
    pub(super) topic: Arc<str>,
    pub(super) message_id: Arc<str>,
    pub(super) elapsed: Duration,
    pub(super) budget: Duration,
}

impl ResolveError {
    pub(super) fn new(report: ResolveReport) -> Self {
        Self(Arc::new(report))
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &ResolveErrorKind {
        &self.0.kind
    }

    /// The stable identifier of the failure kind, as in `docs/errors.md`.
    #[must_use]
    pub fn code_id(&self) -> &'static str {
        self.0.kind.code_id()
    }

    /// The topic of the message.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// The id of the message.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.0.message_id
    }

    /// The time from the start to the end.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// The budget; [`Duration::MAX`] means no limit.
    #[must_use]
    pub fn budget(&self) -> Duration {
        self.0.budget
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ResolveReport { kind, topic, message_id, elapsed, budget } = &*self.0;
        write!(f, "{} {kind}: message {message_id} of {topic}, ", kind.code_id())?;
        write!(f, "after {} ms of ", elapsed.as_millis())?;
        match *budget {
            Duration::MAX => f.write_str("no limit")?,
            budget => write!(f, "{} ms", budget.as_millis())?,
        }
        match kind {
            ResolveErrorKind::Route(error) => write!(f, "{}", error.listed())?,
            ResolveErrorKind::Unanswered { failures, not_found } => {
                for (index, failure) in failures.iter().enumerate() {
                    write!(f, "{} {failure}", if index == 0 { "; brokers:" } else { "," })?;
                    write!(f, "{}", Causes(failure.source()))?;
                }
                not_found.iter().try_for_each(|broker| write!(f, ", {broker} not found"))?;
            }
            ResolveErrorKind::InvalidTopic(_)
            | ResolveErrorKind::BlankMessageId
            | ResolveErrorKind::NotUnknown
            | ResolveErrorKind::DeadlineExpired
            | ResolveErrorKind::Closed => {}
        }
        Ok(())
    }
}

impl fmt::Debug for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for ResolveError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0.kind {
            ResolveErrorKind::Route(error) => error.source(),
            ResolveErrorKind::Unanswered { failures, .. } => failures.last().map(|failure| failure as _),
            ResolveErrorKind::InvalidTopic(_)
            | ResolveErrorKind::BlankMessageId
            | ResolveErrorKind::NotUnknown
            | ResolveErrorKind::DeadlineExpired
            | ResolveErrorKind::Closed => None,
        }
    }
}

/// What kept the brokers from saying whether they have a message.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveErrorKind {
    /// The topic breaks a rule; nobody was asked.
    #[error(transparent)]
    InvalidTopic(MessageError),
    /// The message id is blank; nobody was asked.
    #[error("the message id is blank")]
    BlankMessageId,
    /// No attempt of the send is unknown: [`SendError::certainty`](crate::SendError::certainty) says what is known.
    /// Nobody was asked.
    #[error("no attempt is unknown")]
    NotUnknown,
    /// The budget was used up before a broker could be asked.
    #[error("deadline expired")]
    DeadlineExpired,
    /// No route to the topic was found, which says where the message may be.
    #[error("{}", .0.kind())]
    Route(RouteError),
    /// No broker that has answered has the message, and some have not answered.
    #[error("{} of {} brokers did not say", failures.len(), failures.len() + not_found.len())]
    Unanswered {
        /// Those that have not, each with what happened, in the order they ended.
        failures: Vec<BrokerFailure>,
        /// The names of those that do not know the message.
        not_found: Vec<Arc<str>>,
    },
    /// The producer was shut down.
    #[error("the producer was shut down")]
    Closed,
}

impl ResolveErrorKind {
    /// Every identifier that only [`code_id`](Self::code_id) gives, as `docs/errors.md` explains them. The others are those
    /// of a send.
    pub const CODE_IDS: [&'static str; 2] = ["RMQ-C11", "RMQ-C12"];

    /// The stable identifier of the kind.
    #[must_use]
    pub fn code_id(&self) -> &'static str {
        match self {
            Self::InvalidTopic(_) | Self::BlankMessageId => "RMQ-C01",
            Self::DeadlineExpired => "RMQ-C02",
            Self::Route(error) => error.code_id(),
            Self::Closed => "RMQ-C10",
            Self::NotUnknown => Self::CODE_IDS[0],
            Self::Unanswered { .. } => Self::CODE_IDS[1],
        }
    }
}

/// A broker that did not say whether it has a message.
#[derive(Clone, Debug)]
pub struct BrokerFailure {
    pub(super) broker: Arc<str>,
    pub(super) peer: Peer,
    pub(super) error: BrokerError,
}

impl BrokerFailure {
    /// Its name.
    #[must_use]
    pub fn broker(&self) -> &str {
        &self.broker
    }

    /// The address that was asked.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// What happened when it was last asked.
    #[must_use]
    pub const fn error(&self) -> &BrokerError {
        &self.error
    }
}

impl fmt::Display for BrokerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.broker, self.peer, self.error)
    }
}

impl Error for BrokerFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.error {
            BrokerError::Transport(error) => error.source(),
            BrokerError::UnreadableRecord(error) => Some(&**error),
            BrokerError::Answer { .. } => None,
        }
    }
}

/// What happened when a broker was asked for a message.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The transport failed.
    #[error("{} {}", .0.code_id(), .0.kind())]
    Transport(TransportError),
    /// It answered that it failed.
    #[error("answered {code}{}{remark}", if remark.is_empty() { "" } else { ": " })]
    Answer {
        /// The status.
        code: Code,
        /// Its text, shortened.
        remark: Arc<str>,
    },
    /// It answered with a record that cannot be read, and none that can is the message.
    #[error("answered an unreadable record")]
    UnreadableRecord(Arc<dyn Error + Send + Sync>),
}
