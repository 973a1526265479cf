//! The line that a failed request leaves in the log. Bodies, properties, keys and secrets are not known here.

use std::{error::Error, time::Duration};

use rocketmq_transport::{Stage, StageClock, TransportError};

use crate::{
    attempt::Attempt,
    error::{Causes, Explained, SendError, SendErrorKind},
    protocol::code,
};

/// Logs a send that failed.
pub(crate) fn send(error: &SendError) {
    let last = error.attempts().last();
    let clock = error.stage_clock();
    tracing::warn!(
        target: TARGET,
        code_id = error.code_id(),
        stage = error.stage().as_str(),
        certainty = error.certainty().as_str(),
        peer = last.map(|attempt| attempt.peer().as_str()),
        generation = last.and_then(Attempt::generation).map(|generation| generation.get()),
        opaque = last.and_then(Attempt::opaque).map(|opaque| opaque.0),
        request = last.map(|_| code::SEND_MESSAGE_V2.0),
        budget_ms = budget(error.budget()),
        elapsed_ms = millis(error.elapsed()),
        route_ms = spent(clock, Stage::Route),
        admission_ms = spent(clock, Stage::Admission),
        connect_ms = spent(clock, Stage::Connect),
        signing_ms = spent(clock, Stage::Signing),
        before_write_ms = spent(clock, Stage::BeforeWrite),
        writing_ms = spent(clock, Stage::Writing),
        awaiting_response_ms = spent(clock, Stage::AwaitingResponse),
        pause_ms = clock.paused().map(millis),
        bytes = error.bytes(),
        last_heard_ms = last.and_then(transport).and_then(TransportError::last_heard).map(millis),
        heard_since_written = last.and_then(transport).and_then(TransportError::heard_since_written),
        broker = last.map(Attempt::broker),
        topic = error.topic(),
        queue_id = last.map(|attempt| attempt.queue().id()),
        attempt = last.map(Attempt::number),
        "send failed: {}",
        Explained(error.kind()),
    );
}

/// Logs a request of the client's own that failed, such as a heartbeat.
pub(crate) fn request(error: &TransportError) {
    let clock = error.stage_clock();
    tracing::warn!(
        target: TARGET,
        code_id = error.code_id(),
        stage = error.stage().as_str(),
        certainty = error.certainty().as_str(),
        peer = error.peer().as_str(),
        generation = error.generation().map(|generation| generation.get()),
        opaque = error.opaque().map(|opaque| opaque.0),
        request = error.code().0,
        budget_ms = budget(error.budget()),
        elapsed_ms = millis(error.elapsed()),
        admission_ms = spent(clock, Stage::Admission),
        connect_ms = spent(clock, Stage::Connect),
        signing_ms = spent(clock, Stage::Signing),
        before_write_ms = spent(clock, Stage::BeforeWrite),
        writing_ms = spent(clock, Stage::Writing),
        awaiting_response_ms = spent(clock, Stage::AwaitingResponse),
        bytes = error.bytes(),
        last_heard_ms = error.last_heard().map(millis),
        heard_since_written = error.heard_since_written(),
        "request failed: {}{}",
        error.kind(),
        Causes(error.source()),
    );
}

/// The failure of the transport that ended `attempt`, if one did.
fn transport(attempt: &Attempt) -> Option<&TransportError> {
    match attempt.error()? {
        SendErrorKind::Transport(error) => Some(error),
        _ => None,
    }
}

fn spent(clock: &StageClock, stage: Stage) -> Option<u64> {
    clock.spent(stage).map(millis)
}

/// A budget of never has no number.
fn budget(budget: Duration) -> Option<u64> {
    (budget != Duration::MAX).then(|| millis(budget))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The target of every line about a failed request, in the transport as well.
const TARGET: &str = "rocketmq::request";
