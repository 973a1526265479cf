//! The lines that failed requests leave in the log: one each, or one for many. Bodies, properties, keys and secrets
//! are not known here.

use std::{error::Error, fmt, sync::Arc};

use rocketmq_transport::{
    Certainty, FailureLine, Fold, Peer, Stage, Storm, Transport, TransportError, Verdict,
};
use tokio::time::{Instant, sleep_until};

use crate::{
    attempt::Attempt,
    error::{Causes, Explained, SendError, SendErrorKind},
    protocol::code,
    tasks::Tasks,
};

/// Logs the failed requests of one client: the first few of a second and [`Key`] with a line each, the rest with one
/// line that has their count and the last of them as a sample.
///
/// That line comes when the second is over, or with [`flush`](Self::flush), or with the drop of the last handle. Cheap to
/// clone.
#[derive(Clone, Debug)]
pub(crate) struct FailureLines(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    storm: Storm<Key, Failed>,
    transport: Transport,
    tasks: Tasks,
}

/// At which peer a request failed, if it came to that, in which stage, with what certainty and of what kind: the line
/// that stands for many has to be true of each.
type Key = (Option<Peer>, Stage, Certainty, &'static str);

/// A request that failed.
#[derive(Debug)]
enum Failed {
    Send(SendError),
    /// A request of the client's own, such as a heartbeat.
    Request(TransportError),
}

impl FailureLines {
    /// Nothing has failed yet. What is folded is written by one of `tasks`; the requests are those of `transport`.
    pub(crate) fn new(transport: Transport, tasks: Tasks) -> Self {
        Self(Arc::new(Shared { storm: Storm::new(), transport, tasks }))
    }

    /// Logs a send that failed.
    pub(crate) fn send(&self, error: &SendError) {
        let peer = error.attempts().last().map(|attempt| attempt.peer().clone());
        let key = (peer, error.stage(), error.certainty(), error.code_id());
        self.note(key, Failed::Send(error.clone()));
    }

    /// Logs a request of the client's own that failed.
    pub(crate) fn request(&self, error: &TransportError) {
        let key = (Some(error.peer().clone()), error.stage(), error.certainty(), error.code_id());
        self.note(key, Failed::Request(error.clone()));
    }

    /// Writes the lines of what is folded so far.
    pub(crate) fn flush(&self) {
        self.0.flush();
    }

    fn note(&self, key: Key, failed: Failed) {
        match self.0.storm.note(key, failed, Instant::now()) {
            Verdict::Pass(failed) => failed.log(self.0.in_flight(failed.peer())),
            Verdict::Opened(due) => {
                let log = self.clone();
                self.0.tasks.spawn(async move {
                    sleep_until(due).await;
                    log.0.storm.folds(Instant::now()).0.iter().for_each(log_folded);
                });
            }
            Verdict::Folded => {}
        }
    }
}

impl Shared {
    fn flush(&self) {
        self.storm.drain().iter().for_each(log_folded);
    }

    /// How many requests are in flight at `peer`; counted for a line only, since it looks at every peer.
    fn in_flight(&self, peer: Option<&Peer>) -> Option<u64> {
        let usage = self.transport.usage();
        usage.peers.iter().find(|usage| Some(&usage.peer) == peer).map(|usage| usage.pending)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Failed {
    fn peer(&self) -> Option<&Peer> {
        match self {
            Self::Send(error) => error.attempts().last().map(Attempt::peer),
            Self::Request(error) => Some(error.peer()),
        }
    }

    fn log(&self, in_flight: Option<u64>) {
        let mut line = self.line();
        line.in_flight = in_flight;
        match self {
            Self::Send(_) => line.log(&format_args!("send failed: {self}")),
            Self::Request(_) => line.log(&format_args!("request failed: {self}")),
        }
    }

    fn line(&self) -> FailureLine<'_> {
        match self {
            Self::Send(error) => send_line(error),
            Self::Request(error) => FailureLine::of(error),
        }
    }
}

/// Why it failed.
impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(error) => write!(f, "{}", Explained(error.kind())),
            Self::Request(error) => write!(f, "{}{}", error.kind(), Causes(error.source())),
        }
    }
}

/// Writes the line that stands for failures which had none of their own.
fn log_folded(fold: &Fold<Key, Failed>) {
    let mut line = fold.sample.line();
    line.folded = Some(fold.count);
    line.log(&format_args!("{} more requests failed like this one: {}", fold.count, fold.sample));
}

/// A send as a whole, with the connection and the queue of its last attempt.
fn send_line(error: &SendError) -> FailureLine<'_> {
    let (stage, certainty) = (error.stage(), error.certainty());
    let mut line = FailureLine::new(error.code_id(), stage, certainty, error.stage_clock());
    line.budget = error.budget();
    line.bytes = error.bytes() as u64;
    line.topic = Some(error.topic());
    if let SendErrorKind::QueueSaturated(refusal) = error.kind() {
        line.admission = Some(*refusal);
    }
    if let Some(last) = error.attempts().last() {
        line.transport = last.transport_error();
        line.peer = Some(last.peer());
        line.generation = last.generation();
        line.opaque = last.opaque();
        line.request = Some(code::SEND_MESSAGE_V2.0);
        line.broker = Some(last.broker());
        line.queue_id = i32::try_from(last.queue().id()).ok();
        line.attempt = Some(last.number());
    }
    line
}
