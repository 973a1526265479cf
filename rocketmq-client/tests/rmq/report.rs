//! The report's form: every line, every member.

use serde_json::Value;

use crate::run::{command, rmq};

fn members(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn sorted<const N: usize>(mut names: [&'static str; N]) -> [&'static str; N] {
    names.sort_unstable();
    names
}

#[tokio::test]
async fn every_stored_message_has_one_line_and_the_summary_comes_last() {
    let ended = rmq("produce --embedded --count 50 --size 10 --output json").await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let (events, summary) = ended.events();
    for (seq, event) in events.iter().enumerate() {
        assert_eq!(
            members(event),
            sorted([
                "event",
                "seq",
                "outcome",
                "msg_id",
                "broker",
                "queue_id",
                "queue_offset",
                "attempts",
                "budget_ms",
                "elapsed_us",
                "stages_us"
            ])
        );
        assert_eq!((event["seq"].as_u64(), &event["outcome"]), (Some(seq as u64), &Value::from("stored")));
        assert_eq!((&event["broker"], &event["budget_ms"]), (&Value::from("broker-0"), &Value::from(3_000)));
        let [attempt] = &event["attempts"].as_array().unwrap()[..] else { panic!("one attempt: {event}") };
        assert_eq!(members(attempt), sorted(["broker", "peer", "stage", "certainty", "elapsed_us"]));
        assert_eq!(
            (&attempt["certainty"], &attempt["stage"]),
            (&Value::Null, &Value::from("AwaitingResponse"))
        );
        let stages = event["stages_us"].as_object().unwrap();
        let spent: u64 = stages.values().map(|us| us.as_u64().unwrap()).sum();
        let elapsed = event["elapsed_us"].as_u64().unwrap();
        // Each of at most seven stages is rounded down to a microsecond.
        assert!(spent <= elapsed && elapsed <= spent + 7, "{event}");
    }
    assert_eq!(
        members(&summary),
        sorted([
            "event",
            "messages",
            "outcome",
            "stage",
            "certainty",
            "interrupted",
            "not_started",
            "stored_bytes",
            "elapsed_us",
            "rate_per_s",
            "latency_us"
        ])
    );
    assert_eq!(summary["outcome"], serde_json::json!({ "stored": 50, "failed": 0 }));
    assert_eq!((&summary["stage"], &summary["certainty"]), (&serde_json::json!({}), &serde_json::json!({})));
    assert_eq!((&summary["stored_bytes"], &summary["messages"]), (&Value::from(500), &Value::from(50)));
    assert_eq!(members(&summary["latency_us"]), sorted(["p50", "p90", "p99", "p999", "max"]));
}

#[tokio::test]
async fn ten_thousand_messages_to_a_broker_of_its_own_are_all_stored() {
    let ended = rmq("produce --embedded --count 10000").await;
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.out.starts_with("10000 of 10000 messages stored (10240000 bytes)"), "{ended:?}");
    assert!(ended.out.contains("latency ms: p50 "), "{ended:?}");
}

#[tokio::test]
async fn failures_are_listed_one_by_one_until_there_are_too_many() {
    let input = format!("{}/empty-lines", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&input, "\n".repeat(1_000)).unwrap();
    let ended = rmq(&format!("produce --embedded --file {input}")).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("message 0 failed: RMQ-C01 the body is empty"), "{ended:?}");
    assert!(ended.err.lines().count() < 30, "{ended:?}");
    assert!(ended.err.contains("further failures are only counted"), "{ended:?}");
    assert!(ended.out.contains("0 of 1000 messages stored"), "{ended:?}");
    assert!(ended.out.contains("1000 failed, by stage: Route 1000; by certainty: Refused 1000"), "{ended:?}");
}

#[tokio::test]
async fn a_reader_that_leaves_ends_the_run_quietly() {
    let mut child =
        command("produce --embedded --count 1000000 --size 1 --output json".split(' ')).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().await.unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[tokio::test]
async fn the_log_goes_to_standard_error_and_leaves_the_report_alone() {
    let ended = rmq("-vv produce --embedded --count 2 --output json").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.events().0.len(), 2);
    assert!(ended.err.contains("DEBUG"), "{ended:?}");
}
