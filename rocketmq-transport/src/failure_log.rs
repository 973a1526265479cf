//! The one function that makes the line of a failed request.

use std::{
    fmt::{self, Display},
    time::Duration,
};

use crate::{
    Certainty, Fold, Opaque, Peer, PendingRequestOwner, Refusal, Stage, StageClock, TransportError,
    TransportErrorKind,
};

/// What the log says of a failed request: one `warn` line, target `rocketmq::request`.
///
/// Each line about a failed request is made of one of these, by the layer nearest the application. What is `None` is
/// not in the line. Bodies, field values, keys and secrets have no place in it.
///
/// # Examples
///
/// ```no_run
/// # fn doc(error: &rocketmq_transport::TransportError) {
/// use rocketmq_transport::FailureLine;
///
/// let mut line = FailureLine::of(error);
/// line.topic = Some("orders");
/// line.log(&"heartbeat failed");
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FailureLine<'a> {
    /// The stable identifier of the failure kind.
    pub code_id: &'static str,
    /// Where the request stopped.
    pub stage: Stage,
    /// What may be assumed of the peer.
    pub certainty: Certainty,
    /// Where the time went.
    pub clock: &'a StageClock,
    /// The budget the deadline came from; [`Duration::MAX`] is not in the line.
    pub budget: Duration,
    /// The bytes the request was charged with.
    pub bytes: u64,
    /// The failure of the transport, if it was one: peer, generation, opaque, code, admission, last heard.
    pub transport: Option<&'a TransportError>,
    /// How many requests were in flight at the peer.
    pub in_flight: Option<u64>,
    /// The peer, where no failure of the transport says it.
    pub peer: Option<&'a Peer>,
    /// The connection, where no failure of the transport says it.
    pub generation: Option<PendingRequestOwner>,
    /// The correlation number, where no failure of the transport says it.
    pub opaque: Option<Opaque>,
    /// The operation, where no failure of the transport says it.
    pub request: Option<i32>,
    /// The admission limit that was reached, where no failure of the transport says it.
    pub admission: Option<Refusal>,
    /// The broker's name.
    pub broker: Option<&'a str>,
    /// The topic.
    pub topic: Option<&'a str>,
    /// The queue.
    pub queue_id: Option<i32>,
    /// Which attempt it was, from 1.
    pub attempt: Option<u32>,
    /// How many more requests failed like this one, for which there is no line.
    pub folded: Option<u64>,
}

impl<'a> FailureLine<'a> {
    /// The line of a failure that is known by these alone.
    #[must_use]
    pub const fn new(
        code_id: &'static str,
        stage: Stage,
        certainty: Certainty,
        clock: &'a StageClock,
    ) -> Self {
        Self {
            code_id,
            stage,
            certainty,
            clock,
            budget: Duration::MAX,
            bytes: 0,
            transport: None,
            in_flight: None,
            peer: None,
            generation: None,
            opaque: None,
            request: None,
            admission: None,
            broker: None,
            topic: None,
            queue_id: None,
            attempt: None,
            folded: None,
        }
    }

    /// The line of a failure of the transport.
    #[must_use]
    pub fn of(error: &'a TransportError) -> Self {
        Self {
            budget: error.budget(),
            bytes: error.bytes(),
            transport: Some(error),
            ..Self::new(error.code_id(), error.stage(), error.certainty(), error.stage_clock())
        }
    }

    /// Writes the line; `message` says in words what failed.
    pub fn log(&self, message: &dyn Display) {
        let spent = |stage| self.clock.spent(stage).map(millis);
        let transport = self.transport;
        let peer = transport.map(TransportError::peer).or(self.peer);
        let generation = transport.and_then(TransportError::generation).or(self.generation);
        let opaque = transport.and_then(TransportError::opaque).or(self.opaque);
        tracing::warn!(
            target: "rocketmq::request",
            code_id = self.code_id,
            stage = self.stage.as_str(),
            certainty = self.certainty.as_str(),
            peer = peer.map(Peer::as_str),
            generation = generation.map(|generation| generation.get()),
            opaque = opaque.map(|opaque| opaque.0),
            request = transport.map(|error| error.code().0).or(self.request),
            budget_ms = (self.budget != Duration::MAX).then(|| millis(self.budget)),
            elapsed_ms = millis(self.clock.elapsed()),
            route_ms = spent(Stage::Route),
            admission_ms = spent(Stage::Admission),
            connect_ms = spent(Stage::Connect),
            signing_ms = spent(Stage::Signing),
            before_write_ms = spent(Stage::BeforeWrite),
            writing_ms = spent(Stage::Writing),
            awaiting_response_ms = spent(Stage::AwaitingResponse),
            pause_ms = self.clock.paused().map(millis),
            bytes = self.bytes,
            in_flight = self.in_flight,
            admission = transport.and_then(admission).or(self.admission).map(tracing::field::display),
            last_heard_ms = transport.and_then(TransportError::last_heard).map(millis),
            client_stalled_ms = transport.and_then(TransportError::client_stalled).map(millis),
            broker = self.broker,
            topic = self.topic,
            queue_id = self.queue_id,
            attempt = self.attempt,
            folded = self.folded,
            "{message}",
        );
    }
}

/// Writes the line of a failed request; `in_flight` requests were pending at its peer.
pub(crate) fn log_failure(error: &TransportError, in_flight: u64) {
    let line = FailureLine { in_flight: Some(in_flight), ..FailureLine::of(error) };
    line.log(&format_args!("request failed: {}", Chain(error.kind())));
}

/// Writes the line that stands for failures which had none of their own.
pub(crate) fn log_folded<K>(fold: &Fold<K, TransportError>) {
    let line = FailureLine { folded: Some(fold.count), ..FailureLine::of(&fold.sample) };
    line.log(&format_args!(
        "{} more requests failed like this one: {}",
        fold.count,
        Chain(fold.sample.kind())
    ));
}

/// The admission limit that was reached.
fn admission(error: &TransportError) -> Option<Refusal> {
    match error.kind() {
        TransportErrorKind::QueueSaturated(refusal) | TransportErrorKind::TooLarge(refusal) => Some(*refusal),
        _ => None,
    }
}

/// A failure and its causes, in one line.
struct Chain<'a>(&'a TransportErrorKind);

impl Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        let mut cause = self.0.cause();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
