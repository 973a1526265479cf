//! What the line of a failed request has to say.

use rocketmq_client::SendError;
use rocketmq_transport::{Stage, TransportError, test_support::LogLine};
use tracing::Level;

use crate::row::{Failure, Row};

/// Checks the line of a call of the transport: level, target, exactly the fields that belong there, and the value of
/// each.
pub(crate) fn check_call_line(row: &Row, failure: &Failure, error: &TransportError, line: &LogLine) {
    assert_eq!((line.level, &*line.target), (Level::WARN, "rocketmq::request"));
    assert!(line.message.starts_with(&format!("request failed: {}", error.kind())), "{}", line.message);
    let mut expected: Vec<(&str, String)> = vec![
        ("code_id", failure.code.into()),
        ("stage", row.stage.to_string()),
        ("certainty", failure.certainty.to_string()),
        ("peer", error.peer().to_string()),
        ("request", error.code().to_string()),
        ("budget_ms", row.budget().as_millis().to_string()),
        ("elapsed_ms", failure.ms.to_string()),
        ("bytes", error.bytes().to_string()),
    ];
    expected.extend(passed(row.stage).map(|stage| {
        (milliseconds(stage), if stage == row.stage { failure.ms.to_string() } else { "0".into() })
    }));
    if row.stage >= Stage::Signing {
        expected.push(("generation", error.generation().expect("it had a connection").to_string()));
    }
    expected.extend(error.opaque().map(|opaque| ("opaque", opaque.to_string())));
    expected.extend(failure.fields.iter().map(|(name, value)| (*name, (*value).to_owned())));
    expected.sort();
    let mut found: Vec<_> = line.fields.iter().map(|(name, value)| (&**name, value.clone())).collect();
    let in_flight = found.iter().position(|(name, _)| *name == "in_flight").map(|at| found.remove(at));
    assert!(in_flight.is_some_and(|(_, count)| count.parse::<u64>().is_ok()), "{line:?}");
    found.sort();
    assert_eq!(found, expected, "{}", row.name());
}

/// Checks the line of a send that made one attempt or none.
pub(crate) fn check_send_line(row: &Row, failure: &Failure, error: &SendError, line: &LogLine) {
    assert_eq!((line.level, &*line.target), (Level::WARN, "rocketmq::request"));
    let mut expected: Vec<(&str, String)> = vec![
        ("code_id", failure.code.into()),
        ("stage", row.stage.to_string()),
        ("certainty", failure.certainty.to_string()),
        ("budget_ms", row.budget().as_millis().to_string()),
        ("elapsed_ms", failure.ms.to_string()),
        ("bytes", error.bytes().to_string()),
        ("topic", error.topic().to_owned()),
        ("route_ms", if row.stage == Stage::Route { failure.ms.to_string() } else { "0".into() }),
    ];
    if let Some(attempt) = error.attempts().last() {
        expected.extend([
            ("peer", attempt.peer().to_string()),
            ("broker", attempt.broker().to_owned()),
            ("queue_id", attempt.queue().id().to_string()),
            ("attempt", "1".into()),
            ("request", "310".into()),
        ]);
        expected.extend(attempt.generation().map(|generation| ("generation", generation.to_string())));
        expected.extend(attempt.opaque().map(|opaque| ("opaque", opaque.to_string())));
        expected.extend(passed(row.stage).map(|stage| {
            (milliseconds(stage), if stage == row.stage { failure.ms.to_string() } else { "0".into() })
        }));
    }
    expected.extend(
        failure
            .fields
            .iter()
            .filter(|(name, _)| *name != "admission")
            .map(|(name, value)| (*name, (*value).into())),
    );
    for (name, value) in expected {
        assert_eq!(line.fields.get(name), Some(&value), "{name} of {}: {line:?}", row.name());
    }
    let later = Stage::ALL.into_iter().filter(|stage| *stage > row.stage);
    assert!(later.map(milliseconds).all(|name| !line.fields.contains_key(name)), "{}: {line:?}", row.name());
}

/// The stages that a request of the transport has passed when it ends in `last`.
fn passed(last: Stage) -> impl Iterator<Item = Stage> {
    Stage::ALL.into_iter().filter(move |stage| (Stage::Admission..=last).contains(stage))
}

/// The name of the field that has the time spent in `stage`.
pub(crate) const fn milliseconds(stage: Stage) -> &'static str {
    match stage {
        Stage::Route => "route_ms",
        Stage::Admission => "admission_ms",
        Stage::Connect => "connect_ms",
        Stage::Signing => "signing_ms",
        Stage::BeforeWrite => "before_write_ms",
        Stage::Writing => "writing_ms",
        Stage::AwaitingResponse => "awaiting_response_ms",
    }
}
