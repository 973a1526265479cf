//! What a failure says in the log: one line, with everything but the content.

use rocketmq_transport::{
    Certainty, FailureLog, Opaque, Stage,
    test_support::{Dialing, LogLine, LogSink, settle},
};
use tracing::Level;

use crate::support::*;

fn failures(log: &LogSink) -> Vec<LogLine> {
    log.lines().into_iter().filter(|line| line.target == "rocketmq::request").collect()
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_is_one_line_that_says_where_the_time_went_and_shows_no_content() {
    let (client, mut network) = scene(ROOMY);
    let log = LogSink::install();
    network.set_dialing(Dialing::Hold);
    let call = client.call(ask(ms(500)).code(77).field("a secret").body(&b"a secret"[..]));
    settle().await;
    pass(ms(200)).await;
    network.set_dialing(Dialing::Connect);
    let mut peer = network.accept().await;
    peer.expect_code(77).await;
    let error = call.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);

    let lines = failures(&log);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].level, Level::WARN);
    for (name, value) in [
        ("code_id", "RMQ-T01"),
        ("stage", "AwaitingResponse"),
        ("certainty", "Unknown"),
        ("peer", "broker-a.example:10911"),
        ("opaque", "0"),
        ("request", "77"),
        ("budget_ms", "500"),
        ("elapsed_ms", "500"),
        ("admission_ms", "0"),
        ("connect_ms", "200"),
        ("awaiting_response_ms", "300"),
    ] {
        assert_eq!(lines[0].fields.get(name).map(String::as_str), Some(value), "{name}: {lines:?}");
    }
    assert_eq!(lines[0].fields["bytes"], error.bytes().to_string());
    for absent in ["route_ms", "last_heard_ms"] {
        assert!(!lines[0].fields.contains_key(absent), "{absent} was never known: {lines:?}");
    }
    for text in [format!("{lines:?}"), format!("{error:?}"), error.to_string()] {
        assert!(!text.contains("a secret"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_above_that_logs_its_own_failures_turns_the_line_off() {
    let (client, _network) = scene_with(config(|config| config.failure_log = FailureLog::Off), ROOMY);
    let log = LogSink::install();
    client.call(ask(ms(0))).fails().await;
    assert!(failures(&log).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_timeouts_in_a_second_make_ten_lines_at_most_and_the_count_is_exact() {
    let (client, network) = scene(ROOMY);
    let log = LogSink::install();
    network.set_dialing(Dialing::Hold);
    for _ in 0..10 {
        let calls: Vec<_> = (0..10_000).map(|_| client.call(ask(ms(50)))).collect();
        for call in calls {
            assert_ended(&call.fails().await, Stage::Connect, Certainty::NotSent);
        }
    }
    assert_eq!(failures(&log).len(), 3, "the first few have a line of their own");
    pass(SECOND).await;
    let lines = failures(&log);
    assert!(lines.len() <= 10, "{} lines", lines.len());
    let stands_for = |line: &LogLine| line.fields.get("folded").map_or(1, |count| count.parse().unwrap());
    assert_eq!(lines.iter().map(stands_for).sum::<u64>(), 100_000);
    let last = &lines[lines.len() - 1].fields;
    assert_eq!((&*last["stage"], &*last["connect_ms"]), ("Connect", "50"), "the sample is one of them");
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_answers_nobody_asked_for_make_a_few_lines_and_the_count_is_exact() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let log = LogSink::install();
    for _ in 0..10_000 {
        peer.respond_to(Opaque(0x7FFF_FFF0)).await;
    }
    settle().await;
    pass(2 * SECOND).await;
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line.message.contains("unsolicited")).collect();
    assert!(lines.len() <= 10, "{} lines", lines.len());
    let stands_for = |line: &LogLine| line.fields.get("folded").map_or(1, |count| count.parse().unwrap());
    assert_eq!(lines.iter().map(stands_for).sum::<u64>(), 10_000);
    assert_eq!(client.usage().unsolicited, 10_000);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_says_nothing_an_operator_has_to_read() {
    let (client, mut network) = scene(ROOMY);
    let log = LogSink::install();
    let mut peer = connected(&client, &mut network).await;
    for _ in 0..20 {
        pass(30 * SECOND).await;
        let beat = client.call(ask(SECOND).code(34));
        let request = peer.expect_code(34).await;
        peer.respond(&request).await;
        beat.succeeds().await;
    }
    peer.shut_write().await;
    settle().await;
    let loud: Vec<_> = log.lines().into_iter().filter(|line| line.level <= Level::WARN).collect();
    assert!(loud.is_empty(), "{loud:?}");
    assert_eq!(network.dials(), 1);
}
