//! How one send ended, as it is reported.

use std::{error::Error, time::Duration};

use rocketmq_client::{Attempt, OnewayReceipt, SendError, SendReceipt, SendStatus};
use rocketmq_transport::{Certainty, Stage, StageClock};
use serde::{Serialize, Serializer};

use crate::args::MAX_BODY_BYTES;

/// The end of one send: one line of the report.
#[derive(Debug, Serialize)]
pub(crate) struct SendEvent {
    event: &'static str,
    /// The message's place in the input, from 0.
    pub(crate) seq: u64,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// In order; of very many the middle ones are left out.
    attempts: Vec<AttemptEvent>,
    budget_ms: u64,
    pub(crate) elapsed_us: u64,
    #[serde(serialize_with = "in_order")]
    stages_us: Vec<(&'static str, u64)>,
    /// The pauses between attempts, which belong to no stage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_us: Option<u64>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum Outcome {
    Stored(Stored),
    /// The end of a one-way send, of which no more is known.
    Written(Written),
    Failed(Failed),
}

#[derive(Debug, Serialize)]
pub(crate) struct Stored {
    msg_id: String,
    broker: String,
    queue_id: u32,
    queue_offset: i64,
    /// Left out where the message is flushed and replicated as the broker was told to.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Written {
    msg_id: String,
    broker: String,
    queue_id: u32,
}

#[derive(Debug, Serialize)]
pub(crate) struct Failed {
    code_id: &'static str,
    #[serde(serialize_with = "text")]
    pub(crate) stage: Stage,
    #[serde(serialize_with = "text")]
    pub(crate) certainty: Certainty,
    pub(crate) message: String,
}

/// One attempt at one broker.
#[derive(Debug, Serialize)]
struct AttemptEvent {
    broker: String,
    peer: String,
    #[serde(serialize_with = "text")]
    stage: Stage,
    /// What may be assumed after a failure; one that ended in a stored or written message has none.
    #[serde(serialize_with = "text_or_null")]
    certainty: Option<Certainty>,
    elapsed_us: u64,
}

impl SendEvent {
    /// The end of the send of message `seq`.
    pub(crate) fn new(seq: u64, ended: &Result<SendReceipt, SendError>) -> Self {
        match ended {
            Ok(receipt) => {
                let outcome = Outcome::Stored(Stored::from(receipt));
                Self::with(seq, outcome, receipt.attempts(), receipt.budget()).timed(receipt.stage_clock())
            }
            Err(error) => Self::failed(seq, error),
        }
    }

    /// The end of the one-way send of message `seq`.
    pub(crate) fn oneway(seq: u64, ended: &Result<OnewayReceipt, SendError>) -> Self {
        match ended {
            Ok(receipt) => {
                let outcome = Outcome::Written(Written::from(receipt));
                Self::with(seq, outcome, receipt.attempts(), receipt.budget()).timed(receipt.stage_clock())
            }
            Err(error) => Self::failed(seq, error),
        }
    }

    fn failed(seq: u64, error: &SendError) -> Self {
        let outcome = Outcome::Failed(Failed::from(error));
        Self::with(seq, outcome, error.attempts(), error.budget()).timed(error.stage_clock())
    }

    /// A line of `bytes` bytes, which is more than a body may have: it fails as the producer would have it
    /// fail, had the line been kept.
    pub(crate) fn too_long(seq: u64, bytes: u64, budget: Duration) -> Self {
        let failed = Failed {
            code_id: INVALID_MESSAGE,
            stage: Stage::Route,
            certainty: Certainty::Refused,
            message: format!(
                "{INVALID_MESSAGE} the line has {bytes} bytes, at most {MAX_BODY_BYTES} are allowed"
            ),
        };
        Self::with(seq, Outcome::Failed(failed), &[], budget)
    }

    fn with(seq: u64, outcome: Outcome, attempts: &[Attempt], budget: Duration) -> Self {
        Self {
            event: "send",
            seq,
            outcome,
            attempts: attempts.iter().map(AttemptEvent::from).collect(),
            budget_ms: u64::try_from(budget.as_millis()).unwrap_or(u64::MAX),
            elapsed_us: 0,
            stages_us: Vec::new(),
            pause_us: None,
        }
    }

    fn timed(mut self, clock: &StageClock) -> Self {
        self.elapsed_us = micros(clock.elapsed());
        self.stages_us = clock.stages().map(|(stage, spent)| (stage.as_str(), micros(spent))).collect();
        self.pause_us = clock.paused().map(micros);
        self
    }
}

impl From<&SendReceipt> for Stored {
    fn from(receipt: &SendReceipt) -> Self {
        Self {
            msg_id: receipt.message_id().to_owned(),
            broker: receipt.queue().broker().to_owned(),
            queue_id: receipt.queue().id(),
            queue_offset: receipt.queue_offset(),
            status: match receipt.status() {
                SendStatus::Stored => None,
                other => Some(other.as_str()),
            },
        }
    }
}

impl From<&OnewayReceipt> for Written {
    fn from(receipt: &OnewayReceipt) -> Self {
        Self {
            msg_id: receipt.message_id().to_owned(),
            broker: receipt.queue().broker().to_owned(),
            queue_id: receipt.queue().id(),
        }
    }
}

impl From<&SendError> for Failed {
    fn from(error: &SendError) -> Self {
        Self {
            code_id: error.code_id(),
            stage: error.stage(),
            certainty: error.certainty(),
            message: chain(error),
        }
    }
}

impl From<&Attempt> for AttemptEvent {
    fn from(attempt: &Attempt) -> Self {
        Self {
            broker: attempt.broker().to_owned(),
            peer: attempt.peer().to_string(),
            stage: attempt.stage(),
            certainty: attempt.certainty(),
            elapsed_us: micros(attempt.elapsed()),
        }
    }
}

/// An error and those of its causes that its text does not name, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (**cause).source());
    let text = causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    });
    text.replace(['\r', '\n'], " ")
}

/// Pairs as one JSON object, in their order.
pub(crate) fn in_order<S: Serializer>(
    pairs: &[(&'static str, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().copied())
}

fn text<S: Serializer>(value: &impl ToString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

fn text_or_null<S: Serializer>(value: &Option<Certainty>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(Certainty::as_str).serialize(serializer)
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What the producer calls a message that breaks a rule.
const INVALID_MESSAGE: &str = "RMQ-C01";
