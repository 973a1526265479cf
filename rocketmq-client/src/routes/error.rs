//! Why a route was not found: what each name server said.

use std::{error::Error, fmt, sync::Arc};

use rocketmq_transport::{Code, Peer, TransportError};

use crate::error::Causes;

/// A topic whose route was not found. Cheap to clone: one lookup serves many senders.
#[derive(Clone)]
pub struct RouteError(Arc<Report>);

#[derive(Debug)]
struct Report {
    kind: RouteErrorKind,
    topic: Arc<str>,
    failures: Vec<NameServerFailure>,
}

impl RouteError {
    pub(crate) fn new(kind: RouteErrorKind, topic: Arc<str>, failures: Vec<NameServerFailure>) -> Self {
        Self(Arc::new(Report { kind, topic, failures }))
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> RouteErrorKind {
        self.0.kind
    }

    /// The stable identifier of the kind, as in `docs/errors.md`.
    #[must_use]
    pub fn code_id(&self) -> &'static str {
        self.0.kind.code_id()
    }

    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// The name servers that were asked, each with what it said, in the order they ended.
    #[must_use]
    pub fn failures(&self) -> &[NameServerFailure] {
        &self.0.failures
    }

    /// The failures as text that goes on a line.
    pub(crate) fn listed(&self) -> Listed<'_> {
        Listed(&self.0.failures)
    }
}

/// The name servers' failures, each with its causes.
pub(crate) struct Listed<'a>(&'a [NameServerFailure]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, failure) in self.0.iter().enumerate() {
            let lead = if index == 0 { "; name servers:" } else { "," };
            write!(f, "{lead} {failure}{}", Causes(failure.source()))?;
        }
        Ok(())
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: topic {}{}", self.code_id(), self.kind(), self.topic(), self.listed())
    }
}

impl fmt::Debug for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for RouteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.failures.last().map(|failure| failure as _)
    }
}

/// What kept a route from being found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum RouteErrorKind {
    /// Every name server that answered says that there is no route to the topic, nor to the topic whose
    /// settings new topics inherit.
    #[error("topic not found")]
    TopicNotFound,
    /// The topic has a route, but no broker in it has both a master and a writable queue.
    #[error("no writable broker")]
    NoUsableBroker,
    /// No name server gave an answer that could be used.
    #[error("no name server answered")]
    Unavailable,
}

impl RouteErrorKind {
    /// Every identifier that [`code_id`](Self::code_id) gives, as `docs/errors.md` explains them.
    pub const CODE_IDS: [&'static str; 3] = ["RMQ-C03", "RMQ-C04", "RMQ-C05"];

    /// The stable identifier of the kind.
    #[must_use]
    pub const fn code_id(self) -> &'static str {
        // By its place in the list, so that none is given that is not listed.
        Self::CODE_IDS[match self {
            Self::TopicNotFound => 0,
            Self::NoUsableBroker => 1,
            Self::Unavailable => 2,
        }]
    }
}

/// What one name server said to a lookup that failed.
#[derive(Clone, Debug)]
pub struct NameServerFailure {
    pub(crate) peer: Peer,
    pub(crate) error: NameServerError,
}

impl NameServerFailure {
    /// The name server.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// What it said.
    #[must_use]
    pub const fn error(&self) -> &NameServerError {
        &self.error
    }
}

impl fmt::Display for NameServerFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.peer, self.error)
    }
}

impl Error for NameServerFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.error {
            NameServerError::Transport(error) => error.source(),
            NameServerError::UnreadableRoute(error) => Some(&**error),
            NameServerError::Answer { .. } => None,
        }
    }
}

/// What a name server said to a lookup that failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NameServerError {
    /// The transport failed.
    #[error("{} {}", .0.code_id(), .0.kind())]
    Transport(TransportError),
    /// It answered that it has no route (code 17), or that it failed.
    #[error("answered {code}{}{remark}", if remark.is_empty() { "" } else { ": " })]
    Answer {
        /// The status.
        code: Code,
        /// Its text, shortened.
        remark: Arc<str>,
    },
    /// It answered with a route that cannot be read.
    #[error("answered an unreadable route")]
    UnreadableRoute(Arc<dyn Error + Send + Sync>),
}

/// The text of a peer, shortened to what an error may hold.
pub(crate) fn shortened(remark: &str) -> &str {
    remark.char_indices().nth(MAX_REMARK).map_or(remark, |(end, _)| &remark[..end])
}

/// An error keeps so many characters of a peer's text.
const MAX_REMARK: usize = 500;
