//! The producer: sends messages, each under one budget.

mod builder;
mod late;
mod place;
mod receipt;
mod resolve;
mod select;
mod sending;

use std::{
    fmt,
    num::NonZeroU32,
    sync::{Arc, OnceLock},
    time::Duration,
};

use rocketmq_transport::{InFlight, RequestDeadline, Transport, Usage};
use tokio::{sync::OnceCell, time::timeout_at};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use self::sending::{Acknowledged, Oneway, Sending};
pub use self::{
    builder::{BuildError, ProducerBuilder},
    late::LateOutcome,
    place::{MessagePlace, StoredCopy},
    receipt::{OnewayReceipt, SendReceipt, ShutdownReport},
    resolve::{BrokerError, BrokerFailure, Resolution, ResolveError, ResolveErrorKind, UnknownMessage},
};
use crate::{
    error::SendError,
    failure_log::FailureLines,
    heartbeat::Registration,
    message::{Message, MessageLimits, UniqueKeys},
    queue::MessageQueue,
    retry::{Backoff, Duplicates},
    routes::{RouteError, Routes},
    tasks::Tasks,
};

/// Sends messages. A cheap-to-clone handle; the drop of the last one ends everything it started.
///
/// Each send has one budget for the route lookup, all attempts and the pauses between them. What fails before
/// the broker can have the message, or is refused, is tried at another broker; what may have been stored is
/// tried again only as [`Duplicates`] allows.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use rocketmq_client::{Message, Producer};
///
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let producer = Producer::builder("orders").namesrv("127.0.0.1:9876").build()?;
/// let receipt = producer.send(Message::new("orders", "two apples")).await?;
/// println!("{} is at {}", receipt.message_id(), receipt.queue());
/// producer.shutdown(Duration::from_secs(3)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Producer(Arc<Shared>);

struct Shared {
    transport: Transport,
    routes: Routes,
    registration: Registration,
    log: FailureLines,
    keys: UniqueKeys,
    policy: Policy,
    tasks: Tasks,
    /// Whether the heartbeat task was started.
    started: OnceLock<()>,
    /// Counts the sends in progress; closed once no more are taken.
    sends: TaskTracker,
    /// Ends what sends wait for outside the transport.
    abandon: CancellationToken,
    shutdown: OnceCell<ShutdownReport>,
    _stop_on_drop: DropGuard,
}

/// The settings that each send looks at.
struct Policy {
    group: Arc<str>,
    topics: Vec<Arc<str>>,
    timeout: Duration,
    attempts: u32,
    duplicates: Duplicates,
    limits: MessageLimits,
    backoff: Backoff,
}

/// How one send differs from the producer's settings.
///
/// # Examples
///
/// ```
/// use rocketmq_client::{MessageQueue, SendOptions};
///
/// let mut options = SendOptions::default();
/// options.queue = Some(MessageQueue::new("orders", "broker-a", 3));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SendOptions {
    /// When the send ends at the latest. Default the producer's `timeout` from its start.
    pub deadline: Option<RequestDeadline>,
    /// The queue it is for. Default the next in turn; a send to one queue asks only that queue's broker.
    pub queue: Option<MessageQueue>,
    /// Whether it may be repeated when its outcome is unknown. Default the producer's setting.
    pub duplicates: Option<Duplicates>,
    /// How many requests it may make at most. Default the producer's setting.
    pub attempts: Option<NonZeroU32>,
}

/// Why a producer could not be started.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The route of a configured topic was not found.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The producer's `timeout` passed before the route of `topic` was there.
    #[error("deadline expired while the route of {topic} was looked up")]
    DeadlineExpired {
        /// The topic.
        topic: Arc<str>,
    },
    /// The producer was shut down.
    #[error("the producer was shut down")]
    Closed,
}

impl Producer {
    /// Settings of a producer of `group`, which names all producers that do the same work: 1 to 120 of the
    /// characters letter, digit, `%`, `|`, `_`, `-` (ASCII).
    pub fn builder(group: impl Into<String>) -> ProducerBuilder {
        ProducerBuilder::new(group.into())
    }

    /// Looks up the routes of the configured topics, within the producer's `timeout`, and begins to send
    /// heartbeats.
    ///
    /// A first send does the same for its own topic, so this is only needed to learn early what does not
    /// work.
    ///
    /// # Errors
    ///
    /// The first topic whose route was not found.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the lookups running for whoever needs them; it can be called again.
    pub async fn start(&self) -> Result<(), StartError> {
        self.start_heartbeats();
        let deadline = RequestDeadline::after(self.0.policy.timeout);
        for topic in &self.0.policy.topics {
            if self.0.sends.is_closed() {
                return Err(StartError::Closed);
            }
            let route = within(deadline, self.0.routes.publish(topic)).await;
            route.ok_or_else(|| StartError::DeadlineExpired { topic: topic.clone() })??;
        }
        Ok(())
    }

    /// Sends `message` and waits until a broker has stored it, as the producer's settings say.
    ///
    /// # Errors
    ///
    /// [`SendError`] says what ended the send, where its time went, and what may be assumed of the brokers.
    /// An invalid message is refused before anything is sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws an attempt that is still queued. One whose first byte has left is
    /// finished, so the broker may store the message. No other attempt follows.
    pub fn send(&self, message: Message) -> impl Future<Output = Result<SendReceipt, SendError>> + Send {
        self.send_with(message, SendOptions::default())
    }

    /// Sends `message` as [`send`](Self::send) does, with `options`.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub fn send_with(
        &self,
        message: Message,
        options: SendOptions,
    ) -> impl Future<Output = Result<SendReceipt, SendError>> + Send {
        Sending::<Acknowledged>::run(self, message, options)
    }

    /// Sends `message` without asking for an answer: success says that a socket has accepted its last byte,
    /// and no more. It is never repeated once a byte of it has left.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](Self::send).
    pub fn send_oneway(
        &self,
        message: Message,
    ) -> impl Future<Output = Result<OnewayReceipt, SendError>> + Send {
        let options = SendOptions { duplicates: Some(Duplicates::Forbid), ..SendOptions::default() };
        Sending::<Oneway>::run(self, message, options)
    }

    /// Asks the brokers whether they have a message, after a send that ended as
    /// [`Certainty::Unknown`](rocketmq_transport::Certainty::Unknown).
    ///
    /// Of a [`SendError`], the brokers of its unknown attempts are asked; of a topic and a message id
    /// ([`UnknownMessage::new`]), the masters of all brokers in the topic's route. They are asked by the message's
    /// unique key, at the same time, all within `budget`: how long this may take, the route lookup included.
    /// [`Duration::MAX`] means no limit. The first copy that is found ends it.
    ///
    /// A broker builds its index after it has stored a message, so one that does not find it is asked again for up to a
    /// second before it is believed, less where the budget is shorter. One that cannot be reached, is busy or loses its
    /// connection is asked again as long as the budget lasts: to ask changes nothing there.
    ///
    /// [`SendError::late_outcome`] waits for the late answer instead, and asks nobody.
    ///
    /// # Errors
    ///
    /// [`ResolveErrorKind::Unanswered`] where no copy was found and not every broker has answered; it names each of
    /// those that have not, with what happened there. A send that is not unknown asks nobody.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the questions.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use rocketmq_client::{Message, Producer, Resolution, transport::Certainty};
    ///
    /// # async fn doc(producer: Producer) -> Result<(), Box<dyn std::error::Error>> {
    /// match producer.send(Message::new("orders", "two apples")).await {
    ///     Err(error) if error.certainty() == Certainty::Unknown => {
    ///         match producer.resolve_unknown(&error, Duration::from_secs(5)).await? {
    ///             Resolution::Stored(copy) => println!("stored in {}", copy.place().queue()),
    ///             _ => println!("not there, as far as the brokers know by now"),
    ///         }
    ///     }
    ///     _ => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resolve_unknown(
        &self,
        message: impl Into<UnknownMessage>,
        budget: Duration,
    ) -> Result<Resolution, ResolveError> {
        resolve::resolve(&self.0, message.into(), RequestDeadline::after(budget)).await
    }

    /// Ends the producer: takes no more sends, waits up to `bound` for those in progress, tells the brokers,
    /// and closes the connections. Sends that are still in progress then end with an error of their own.
    ///
    /// Sends that come later fail at once as closed. A second call gets the report of the first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the producer taking no more sends; another call goes on with the shutdown.
    pub async fn shutdown(&self, bound: Duration) -> ShutdownReport {
        *self.0.shutdown.get_or_init(|| self.0.shut_down(RequestDeadline::after(bound))).await
    }

    /// What the producer's requests and the bodies kept for repetitions have in use.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.0.transport.usage()
    }

    /// A look at the producer's requests in flight and the tombstones of those that have ended without their answer,
    /// of at most `most` of them. Each is as it was when it was looked at.
    #[must_use]
    pub fn in_flight(&self, most: usize) -> InFlight {
        self.0.transport.in_flight(most)
    }

    fn start_heartbeats(&self) {
        let shared = &*self.0;
        shared.started.get_or_init(|| shared.tasks.spawn(shared.registration.clone().keep_up()));
    }
}

impl Shared {
    async fn shut_down(&self, deadline: RequestDeadline) -> ShutdownReport {
        self.sends.close();
        let in_progress = self.sends.len();
        let drained = within(deadline, self.sends.wait()).await;
        let unfinished = if drained.is_some() { 0 } else { self.sends.len() };
        self.abandon.cancel();
        let unregistered = self.registration.unregister(deadline).await;
        self.tasks.stop().await;
        let transport = self.transport.close(deadline.remaining(tokio::time::Instant::now())).await;
        self.log.flush();
        ShutdownReport {
            finished: in_progress.saturating_sub(unfinished),
            unfinished,
            unregistered,
            transport,
        }
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("group", &self.0.policy.group).finish_non_exhaustive()
    }
}

/// The value of `future`, or `None` where `deadline` comes first.
async fn within<F: Future>(deadline: RequestDeadline, future: F) -> Option<F::Output> {
    match deadline.at() {
        Some(at) => timeout_at(at, future).await.ok(),
        None => Some(future.await),
    }
}
