//! The one function that makes the line of a failed request.

use std::time::Duration;

use crate::{Stage, TransportError};

/// Writes one `warn` line about `error`, target `rocketmq::request`; `in_flight` requests were pending at the
/// peer. Bodies, fields and secrets are not in it.
pub(crate) fn log_failure(error: &TransportError, in_flight: u64) {
    let spent = |stage| error.stage_clock().spent(stage).map(millis);
    tracing::warn!(
        target: "rocketmq::request",
        code_id = error.code_id(),
        stage = error.stage().as_str(),
        certainty = error.certainty().as_str(),
        peer = error.peer().as_str(),
        generation = error.generation().map(|generation| generation.get()),
        opaque = error.opaque().map(|opaque| opaque.0),
        request = error.code().0,
        budget_ms = (error.budget() != Duration::MAX).then(|| millis(error.budget())),
        elapsed_ms = millis(error.elapsed()),
        route_ms = spent(Stage::Route),
        admission_ms = spent(Stage::Admission),
        connect_ms = spent(Stage::Connect),
        signing_ms = spent(Stage::Signing),
        before_write_ms = spent(Stage::BeforeWrite),
        writing_ms = spent(Stage::Writing),
        awaiting_response_ms = spent(Stage::AwaitingResponse),
        bytes = error.bytes(),
        in_flight,
        last_heard_ms = error.last_heard().map(millis),
        "request failed: {}",
        error.kind(),
    );
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
