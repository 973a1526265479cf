//! The one line of a failed send.

use std::{sync::Arc, time::Duration};

use rocketmq_client::{Message, Producer};
use rocketmq_transport::{
    AclSigner,
    test_support::{LogLine, LogSink},
};
use tokio::{
    task::{JoinSet, yield_now},
    time::sleep,
};
use tracing::Level;

use crate::network::{MS, Network, ONE_BROKER, Reply, TWO_BROKERS, answer};

/// The lines at `warn` and above that were written meanwhile.
async fn lines_of(work: impl Future<Output = ()>) -> Vec<LogLine> {
    let sink = LogSink::install();
    work.await;
    sink.lines().into_iter().filter(|line| line.level <= Level::WARN).collect()
}

/// A message in which everything that may not be logged says so.
fn secretive() -> Message {
    let message = Message::new("orders", "secret-body").with_tag("secret-tag").with_keys(["secret-key"]);
    message.with_property("secret-name", "secret-value").expect("a property like any other")
}

fn check(line: &LogLine, expected: &[(&str, &str)]) {
    let LogLine { level, target, fields, .. } = line;
    assert_eq!((*level, target.as_str()), (Level::WARN, "rocketmq::request"));
    for (name, value) in expected {
        assert_eq!(fields.get(*name).map(String::as_str), Some(*value), "{name} in {fields:?}");
    }
    assert!(!format!("{line:?}").contains("secret"), "{line:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_send_is_one_line_with_all_that_is_known_of_it() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    network.brokers([Reply::Silence]);
    let signer = Arc::new(AclSigner::new("access", "secret-of-the-signer").unwrap());
    let producer = network.producer().timeout(900 * MS).attempts(2).signer(signer).build().unwrap();
    let lines = lines_of(async {
        let error = producer.send(secretive()).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    })
    .await;
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    check(
        line,
        &[
            ("code_id", "RMQ-T01"),
            ("stage", "AwaitingResponse"),
            ("certainty", "Unknown"),
            ("request", "310"),
            ("budget_ms", "900"),
            ("elapsed_ms", "900"),
            ("route_ms", "0"),
            ("admission_ms", "0"),
            ("connect_ms", "0"),
            ("signing_ms", "0"),
            ("before_write_ms", "0"),
            ("writing_ms", "0"),
            ("awaiting_response_ms", "900"),
            ("topic", "orders"),
            ("queue_id", "0"),
            ("attempt", "2"),
        ],
    );
    let fields = &line.fields;
    assert!(
        ["peer", "broker", "generation", "opaque", "bytes"].iter().all(|name| fields.contains_key(*name))
    );
    assert!(!fields.contains_key("pause_ms"), "a stage that was not passed has no field");
}

#[tokio::test(start_paused = true)]
async fn a_send_that_asked_nobody_is_logged_too_and_knows_no_peer() {
    let network = Network::default();
    network.always("ns:1", answer(17, "no route"));
    let producer = network.producer().timeout(Duration::MAX).build().unwrap();
    let lines = lines_of(async { assert!(producer.send(secretive()).await.is_err()) }).await;
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    check(line, &[("code_id", "RMQ-C03"), ("stage", "Route"), ("certainty", "NotSent"), ("bytes", "11")]);
    assert!(
        ["peer", "generation", "broker", "budget_ms"].iter().all(|name| !line.fields.contains_key(*name))
    );
}

/// Sends `count` messages at once, none of which ends well, and waits for all of them.
async fn fail(producer: &Producer, count: usize) {
    let mut sends = JoinSet::new();
    for _ in 0..count {
        let producer = producer.clone();
        sends.spawn(async move { producer.send(secretive()).await.is_err() });
    }
    assert!(sends.join_all().await.into_iter().all(|failed| failed));
}

/// How many failures each line stands for, in order: itself, or those folded into it.
fn counts(lines: &[LogLine]) -> Vec<u64> {
    let folded =
        |line: &LogLine| line.fields.get("folded").map_or(1, |count| count.parse().expect("a number"));
    lines.iter().map(folded).collect()
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_timeouts_in_a_second_are_four_lines_with_the_exact_count_and_a_sample() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.blackhole("a:1");
    let producer = network.producer().timeout(MS).attempts(1).build().unwrap();
    let lines = lines_of(async {
        for _ in 0..100 {
            fail(&producer, 1_000).await;
        }
        sleep(1_000 * MS).await;
    })
    .await;
    assert_eq!(counts(&lines), [1, 1, 1, 99_997]);
    for line in &lines {
        let expected =
            [("code_id", "RMQ-T01"), ("stage", "Connect"), ("certainty", "NotSent"), ("peer", "a:1")];
        check(line, &expected);
        check(
            line,
            &[("topic", "orders"), ("broker", "a"), ("attempt", "1"), ("connect_ms", "1"), ("bytes", "11")],
        );
    }
    assert_eq!(lines[0].message, "send failed: deadline expired");
    assert_eq!(lines[3].message, "99997 more requests failed like this one: deadline expired");
}

#[tokio::test(start_paused = true)]
async fn failures_are_folded_by_peer_and_stage_and_a_quiet_second_lets_lines_pass_again() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    network.brokers([answer(13, "illegal")]);
    let producer = network.producer().attempts(1).build().unwrap();
    let lines = lines_of(async {
        fail(&producer, 20).await;
        sleep(2_000 * MS).await;
        fail(&producer, 2).await;
        sleep(2_000 * MS).await;
    })
    .await;
    let mut counts = counts(&lines);
    counts.sort();
    assert_eq!(counts, [1, 1, 1, 1, 1, 1, 1, 1, 7, 7]);
    let peers = ["a:1", "b:1"].map(|peer| lines.iter().filter(|line| line.fields["peer"] == peer).count());
    assert_eq!(peers, [5, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_stands_for_many_is_true_of_each() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let refused = |nth: usize| nth.is_multiple_of(2);
    network.peer("a:1", move |_, nth| if refused(nth) { answer(13, "illegal") } else { answer(1, "failed") });
    let producer = network.producer().attempts(1).build().unwrap();
    let lines = lines_of(async {
        fail(&producer, 20).await;
        sleep(2_000 * MS).await;
    })
    .await;
    for certainty in ["Refused", "Unknown"] {
        let of_it: Vec<_> =
            lines.iter().filter(|line| line.fields["certainty"] == certainty).cloned().collect();
        assert_eq!(counts(&of_it), [1, 1, 1, 7], "{certainty}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_folded_is_written_by_the_shutdown_and_by_the_drop_of_the_producer() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.always("a:1", answer(13, "illegal"));
    let producer = network.producer().build().unwrap();
    let lines = lines_of(async {
        fail(&producer, 10).await;
        producer.shutdown(1_000 * MS).await;
    })
    .await;
    assert_eq!(counts(&lines), [1, 1, 1, 7]);

    let lines = lines_of(async {
        fail(&producer, 10).await;
        drop(producer);
    })
    .await;
    assert_eq!(counts(&lines), [1, 1, 1, 7], "the sends of a producer that was shut down fail as well");

    let producer = network.producer().build().unwrap();
    let lines = lines_of(async {
        fail(&producer, 10).await;
        drop(producer);
        yield_now().await;
    })
    .await;
    assert_eq!(counts(&lines), [1, 1, 1, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_could_not_be_asked_for_a_message_is_one_line() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.always("a:1", Reply::Silence);
    let signer = Arc::new(AclSigner::new("access", "secret-of-the-signer").unwrap());
    let producer = network.producer().timeout(100 * MS).attempts(1).signer(signer).build().unwrap();
    let error = producer.send(secretive()).await.unwrap_err();
    let lines = lines_of(async {
        let error = producer.resolve_unknown(&error, 1_000 * MS).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    })
    .await;
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    check(line, &[("code_id", "RMQ-T01"), ("stage", "AwaitingResponse"), ("request", "12"), ("peer", "a:1")]);
}

#[tokio::test(start_paused = true)]
async fn a_send_that_succeeds_in_the_end_leaves_no_line() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.peer("a:1", |_, number| if number == 0 { answer(2, "busy") } else { Reply::Stored(MS, 0) });
    let producer = network.producer().build().unwrap();
    let lines = lines_of(async { assert!(producer.send(secretive()).await.is_ok()) }).await;
    assert_eq!(lines.len(), 0, "{lines:?}");
}
