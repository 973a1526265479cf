//! Why a send failed: every attempt, where the time went, and what the brokers may have.

mod kind;

use std::{error::Error, fmt, sync::Arc, time::Duration};

use rocketmq_transport::{Certainty, Stage, StageClock};

pub(crate) use self::kind::Explained;
pub use self::kind::SendErrorKind;
use crate::{
    attempt::{Attempt, Attempts},
    message::UniqueKey,
};

/// A message that was not stored as far as is known. One pointer wide and cheap to clone.
///
/// [`certainty`](Self::certainty) covers all attempts: where one of them may have been carried out it is
/// `Unknown`, else `Refused` where a broker or a local limit said no, else `NotSent`.
#[derive(Clone)]
pub struct SendError(Arc<SendReport>);

/// Everything that is known of a failed send.
#[derive(Debug)]
pub(crate) struct SendReport {
    pub(crate) kind: SendErrorKind,
    pub(crate) topic: Arc<str>,
    pub(crate) message_id: UniqueKey,
    pub(crate) bytes: usize,
    pub(crate) attempts: Attempts,
    pub(crate) clock: StageClock,
    pub(crate) budget: Duration,
}

impl SendError {
    pub(crate) fn new(report: SendReport) -> Self {
        Self(Arc::new(report))
    }

    /// What ended the send: the failure of the last attempt, or what kept a first one from being made.
    #[must_use]
    pub fn kind(&self) -> &SendErrorKind {
        &self.0.kind
    }

    /// The stable identifier of the failure kind, as in `docs/errors.md`.
    #[must_use]
    pub fn code_id(&self) -> &'static str {
        self.0.kind.code_id()
    }

    /// How far the send got when it ended.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.0.attempts.last() {
            Some(last) => last.stage(),
            None if matches!(self.kind(), SendErrorKind::QueueSaturated(_)) => Stage::Admission,
            None => Stage::Route,
        }
    }

    /// What may be assumed of the brokers, over all attempts.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.0.attempts.certainty().unwrap_or_else(|| self.0.kind.certainty())
    }

    /// The attempts in order, the first eight and the last eight where there were more than sixteen.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        self.0.attempts.list()
    }

    /// The topic of the message.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// The id that the client gave the message, the same in all attempts: 32 hexadecimal digits. Where a broker has
    /// the message after all, it has it under this id.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.0.message_id.as_str()
    }

    /// Whether some attempts were forgotten since there were too many.
    pub(crate) fn is_abridged(&self) -> bool {
        self.attempts().last().is_some_and(|last| last.number() as usize > self.attempts().len())
    }

    /// The topic, to be kept.
    pub(crate) fn shared_topic(&self) -> &Arc<str> {
        &self.0.topic
    }

    /// The bytes of the message's body.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Where the time went, over all attempts and the pauses between them.
    #[must_use]
    pub fn stage_clock(&self) -> &StageClock {
        &self.0.clock
    }

    /// The time from the start of the send to its end.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.clock.elapsed()
    }

    /// The budget of the whole send; [`Duration::MAX`] means no limit.
    #[must_use]
    pub fn budget(&self) -> Duration {
        self.0.budget
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &*self.0;
        write!(f, "{} {}: message to {} ended in ", self.code_id(), report.kind, report.topic)?;
        write!(f, "{} ({}) after {} ms of ", self.stage(), self.certainty(), self.elapsed().as_millis())?;
        match report.budget {
            Duration::MAX => f.write_str("no limit")?,
            budget => write!(f, "{} ms", budget.as_millis())?,
        }
        if let SendErrorKind::Route(error) = &report.kind {
            write!(f, "{}", error.listed())?;
        }
        for (index, attempt) in report.attempts.list().iter().enumerate() {
            write!(f, "{} {attempt}", if index == 0 { "; attempts:" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Debug for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for SendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.kind.cause()
    }
}

/// The causes behind an error, each after a colon: for lines and lists that no chain of sources continues.
pub(crate) struct Causes<'a>(pub(crate) Option<&'a (dyn Error + 'static)>);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut next = self.0;
        while let Some(cause) = next {
            write!(f, ": {cause}")?;
            next = cause.source();
        }
        Ok(())
    }
}
