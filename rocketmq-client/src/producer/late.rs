//! The late outcome of a send that ended without one.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rocketmq_transport::{Certainty, Code, LateAnswer, RequestDeadline};

use crate::{
    attempt::{Attempt, Failure},
    error::{SendError, SendErrorKind},
    producer::{place::MessagePlace, sending, within},
    protocol::send::SendStatus,
    queue::MessageQueue,
};

/// What late answers say of a send that had ended as [`Certainty::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LateOutcome {
    /// A broker has stored the message. Where several attempts were unknown, another broker may have stored it too.
    Stored {
        /// How it is stored; in each case it is stored.
        status: SendStatus,
        /// Where it is.
        place: MessagePlace,
    },
    /// Nobody has stored the message: every attempt that was unknown was refused after all. This is the latest such
    /// answer.
    Refused {
        /// The name of the broker that gave it.
        broker: Arc<str>,
        /// The status.
        code: Code,
        /// The broker's text, shortened.
        remark: Arc<str>,
    },
    /// It remains as unknown as it was: an answer is missing, or leaves the doubt. So is a send that was never unknown.
    NotSettled,
}

impl SendError {
    /// Waits up to `window`, from now on, for the late answers to the attempts whose certainty is
    /// [`Certainty::Unknown`].
    ///
    /// A broker that was only slow still answers, and the answer is told apart for as long as the connection remembers
    /// the request: the transport's `late_window` (60 s), or `max_drain` once the connection was retired. The answers to
    /// several attempts are awaited together. The future ends early when no answer can come any more: with the
    /// connection, and with the producer's shutdown. An answer that has come is kept with the error, so that it is found
    /// later, too. [`Duration::MAX`] means no limit but those.
    ///
    /// [`Producer::resolve_unknown`](crate::Producer::resolve_unknown) asks the brokers instead of waiting for them.
    ///
    /// # Cancel safety
    ///
    /// The future can be dropped, and the outcome asked for again, also by several at once: all get it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use rocketmq_client::{LateOutcome, Message, Producer};
    ///
    /// # async fn doc(producer: Producer) {
    /// if let Err(error) = producer.send(Message::new("orders", "two apples")).await {
    ///     match error.late_outcome(Duration::from_secs(10)).await {
    ///         LateOutcome::Stored { place, .. } => println!("stored after all, in {}", place.queue()),
    ///         LateOutcome::Refused { code, .. } => println!("not stored: the broker answered {code}"),
    ///         _ => println!("still {}", error.certainty()),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn late_outcome(&self, window: Duration) -> impl Future<Output = LateOutcome> + Send + use<> {
        let deadline = RequestDeadline::after(window);
        let unknown =
            self.attempts().iter().filter(|attempt| attempt.certainty() == Some(Certainty::Unknown));
        let mut settling = Settling { attempts: unknown.map(settle).collect(), ended: None };
        if self.is_abridged() {
            // One of those that were forgotten may have been unknown as well.
            settling.ended = Some(LateOutcome::NotSettled);
        }
        async move {
            let outcome = poll_fn(|context| settling.poll(context));
            within(deadline, outcome).await.unwrap_or(LateOutcome::NotSettled)
        }
    }
}

/// Attempts whose late answers are awaited together.
struct Settling {
    attempts: Vec<Pin<Box<dyn Future<Output = LateOutcome> + Send>>>,
    /// The outcome of those that have ended.
    ended: Option<LateOutcome>,
}

impl Settling {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<LateOutcome> {
        let ended = &mut self.ended;
        self.attempts.retain_mut(|attempt| {
            let Poll::Ready(outcome) = attempt.as_mut().poll(context) else { return true };
            *ended = Some(together(ended.take(), outcome));
            false
        });
        if self.attempts.is_empty() || matches!(ended, Some(LateOutcome::Stored { .. })) {
            Poll::Ready(ended.take().unwrap_or(LateOutcome::NotSettled))
        } else {
            Poll::Pending
        }
    }
}

/// The outcome of several attempts: one that stored the message is enough, and every one must have been refused.
fn together(before: Option<LateOutcome>, outcome: LateOutcome) -> LateOutcome {
    match (before, outcome) {
        (None, outcome) => outcome,
        (Some(stored @ LateOutcome::Stored { .. }), _) | (Some(_), stored @ LateOutcome::Stored { .. }) => {
            stored
        }
        (Some(LateOutcome::Refused { .. }), refused @ LateOutcome::Refused { .. }) => refused,
        (Some(LateOutcome::NotSettled), _) | (Some(_), LateOutcome::NotSettled) => LateOutcome::NotSettled,
    }
}

/// The late outcome of one attempt.
fn settle(attempt: &Attempt) -> Pin<Box<dyn Future<Output = LateOutcome> + Send>> {
    let answer = attempt.transport_error().and_then(|error| error.late_answer()).cloned();
    let queue = attempt.queue().clone();
    Box::pin(async move {
        match answer {
            Some(answer) => read(&answer, queue).await,
            None => LateOutcome::NotSettled,
        }
    })
}

async fn read(answer: &LateAnswer, queue: MessageQueue) -> LateOutcome {
    let Some(response) = answer.wait().await else { return LateOutcome::NotSettled };
    match sending::read(&response) {
        Ok((status, stored)) => LateOutcome::Stored { status, place: MessagePlace::new(queue, stored) },
        Err(Failure { kind: SendErrorKind::Answer { code, remark }, certainty: Certainty::Refused }) => {
            LateOutcome::Refused { broker: queue.broker().into(), code, remark }
        }
        Err(_) => LateOutcome::NotSettled,
    }
}
