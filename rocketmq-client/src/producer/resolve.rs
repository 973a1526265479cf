//! Asking the brokers whether they have a message whose send ended as unknown.

mod error;
mod inquiry;

use std::sync::Arc;

use rocketmq_transport::{Certainty, Peer, RequestDeadline};
use tokio::{
    task::{JoinError, JoinSet},
    time::Instant,
};

pub use self::error::{BrokerError, BrokerFailure, ResolveError, ResolveErrorKind};
use self::{
    error::ResolveReport,
    inquiry::{Answered, Inquiry},
};
use crate::{
    attempt::Attempt,
    error::SendError,
    message::validate,
    producer::{Shared, StoredCopy, within},
};

/// A message of which it is not known whether it is stored: what
/// [`Producer::resolve_unknown`](crate::Producer::resolve_unknown) asks for.
///
/// Made from a [`SendError`], or from what was kept of it.
///
/// # Examples
///
/// ```
/// use rocketmq_client::UnknownMessage;
///
/// let kept = UnknownMessage::new("orders", "0A0000011A2B3C4D5E6F708192A3B4C5");
/// ```
#[derive(Clone, Debug)]
pub struct UnknownMessage {
    topic: Arc<str>,
    message_id: Arc<str>,
    asked: Asked,
}

/// Who is asked for a message.
#[derive(Clone, Debug)]
enum Asked {
    Brokers(Vec<Broker>),
    /// The master of each broker of the topic.
    Masters,
}

/// One broker, by its name and its master's address.
#[derive(Clone, Debug)]
struct Broker {
    name: Arc<str>,
    peer: Peer,
}

impl UnknownMessage {
    /// The message that was sent to `topic` under `message_id`, which is [`SendError::message_id`]. It may be at any
    /// broker of the topic.
    pub fn new(topic: impl Into<Arc<str>>, message_id: impl Into<Arc<str>>) -> Self {
        Self { topic: topic.into(), message_id: message_id.into(), asked: Asked::Masters }
    }
}

impl From<&SendError> for UnknownMessage {
    /// The message of a send that failed, which may be at the brokers of the unknown attempts only.
    fn from(error: &SendError) -> Self {
        let mut brokers: Vec<Broker> = Vec::new();
        let is_unknown = |attempt: &&Attempt| attempt.certainty() == Some(Certainty::Unknown);
        for attempt in error.attempts().iter().filter(is_unknown) {
            if brokers.iter().all(|broker| broker.peer != *attempt.peer()) {
                brokers.push(Broker { name: attempt.broker().into(), peer: attempt.peer().clone() });
            }
        }
        // Of very many attempts some were forgotten, and with them where the message may be.
        let forgotten = error.is_abridged() && error.certainty() == Certainty::Unknown;
        Self {
            topic: error.shared_topic().clone(),
            message_id: error.message_id().into(),
            asked: if forgotten { Asked::Masters } else { Asked::Brokers(brokers) },
        }
    }
}

/// What the brokers say of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resolution {
    /// A broker has it; another one may have it as well.
    Stored(StoredCopy),
    /// Every broker that was asked has answered that it does not know the message.
    ///
    /// This is no proof that it is not stored, or will not be: a broker that was frozen may still carry out what its
    /// socket holds, one that takes longer to build its index does not know the message yet, and one that has lost
    /// its disk knows nothing.
    NotFound {
        /// The names of the brokers.
        brokers: Vec<Arc<str>>,
    },
}

/// Asks the brokers for `message`, until `deadline`.
pub(super) async fn resolve(
    shared: &Shared,
    message: UnknownMessage,
    deadline: RequestDeadline,
) -> Result<Resolution, ResolveError> {
    let started = Instant::now();
    let resolving = Resolving { shared, message: &message, deadline };
    // What is begun outside of a send has to end with the producer as well.
    let outcome = tokio::select! {
        biased;
        outcome = resolving.run() => outcome,
        () = shared.abandon.cancelled() => Err(ResolveErrorKind::Closed),
    };
    outcome.map_err(|kind| {
        let UnknownMessage { topic, message_id, .. } = message;
        let (elapsed, budget) = (started.elapsed(), deadline.budget());
        ResolveError::new(ResolveReport { kind, topic, message_id, elapsed, budget })
    })
}

struct Resolving<'r> {
    shared: &'r Shared,
    message: &'r UnknownMessage,
    deadline: RequestDeadline,
}

impl Resolving<'_> {
    async fn run(&self) -> Result<Resolution, ResolveErrorKind> {
        self.check()?;
        let mut inquiries = JoinSet::new();
        for broker in self.brokers().await? {
            let inquiry = Inquiry {
                transport: self.shared.transport.clone(),
                topic: self.message.topic.clone(),
                message_id: self.message.message_id.clone(),
                deadline: self.deadline,
                broker,
            };
            inquiries.spawn(inquiry.run());
        }
        let (mut brokers, mut failures) = (Vec::new(), Vec::new());
        while let Some(ended) = inquiries.join_next().await {
            match answered(ended) {
                Some((_, Ok(Some(copy)))) => return Ok(Resolution::Stored(copy)),
                Some((broker, Ok(None))) => brokers.push(broker.name),
                Some((broker, Err(error))) => {
                    failures.push(BrokerFailure { broker: broker.name, peer: broker.peer, error });
                }
                None => {}
            }
        }
        if failures.is_empty() {
            return Ok(Resolution::NotFound { brokers });
        }
        for failure in &failures {
            if let BrokerError::Transport(error) = failure.error() {
                self.shared.log.request(error);
            }
        }
        Err(ResolveErrorKind::Unanswered { failures, not_found: brokers })
    }

    /// Everything that can be refused without asking anybody.
    fn check(&self) -> Result<(), ResolveErrorKind> {
        if self.shared.sends.is_closed() {
            return Err(ResolveErrorKind::Closed);
        }
        if matches!(&self.message.asked, Asked::Brokers(brokers) if brokers.is_empty()) {
            return Err(ResolveErrorKind::NotUnknown);
        }
        validate::topic(&self.message.topic).map_err(ResolveErrorKind::InvalidTopic)?;
        if validate::is_blank(&self.message.message_id) {
            return Err(ResolveErrorKind::BlankMessageId);
        }
        if self.deadline.is_expired(Instant::now()) {
            return Err(ResolveErrorKind::DeadlineExpired);
        }
        Ok(())
    }

    async fn brokers(&self) -> Result<Vec<Broker>, ResolveErrorKind> {
        if let Asked::Brokers(brokers) = &self.message.asked {
            return Ok(brokers.clone());
        }
        let route = within(self.deadline, self.shared.routes.publish(&self.message.topic)).await;
        let route = route.ok_or(ResolveErrorKind::DeadlineExpired)?.map_err(ResolveErrorKind::Route)?;
        let masters = route.brokers().iter();
        Ok(masters
            .map(|broker| Broker { name: broker.name().clone(), peer: broker.master.clone() })
            .collect())
    }
}

/// What one inquiry found; a panic in it goes on here, and none is aborted while it is awaited.
fn answered(ended: Result<Answered, JoinError>) -> Option<Answered> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(answered) => Some(answered),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}
