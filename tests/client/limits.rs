//! Nothing that waits does so without a limit, and nothing that goes wrong reaches further than it must.

use std::time::Duration;

use rocketmq_client::{Producer, SendErrorKind};
use tokio::time::Instant;

use crate::network::{MS, Network, ONE_BROKER, Reply, STORED, message};

const LIMIT: Duration = Duration::from_millis(200);

/// Each operation of a producer that can wait, under [`LIMIT`]; whether it succeeded.
async fn every_operation(producer: &Producer) -> Vec<(&'static str, bool, Duration)> {
    let mut ended = Vec::new();
    let mut note = |name, succeeded, start: Instant| ended.push((name, succeeded, start.elapsed()));
    let start = Instant::now();
    note("start", producer.start().await.is_ok(), start);
    let start = Instant::now();
    note("send", producer.send(message()).await.is_ok(), start);
    let start = Instant::now();
    note("send_oneway", producer.send_oneway(message()).await.is_ok(), start);
    // A send that outlasts the shutdown.
    let pending = tokio::spawn({
        let producer = producer.clone();
        async move { producer.send(message()).await }
    });
    tokio::task::yield_now().await;
    let start = Instant::now();
    note("shutdown", producer.shutdown(LIMIT).await.unfinished == 0, start);
    note("the pending send", pending.await.expect("a send does not panic").is_ok(), start);
    ended
}

#[tokio::test(start_paused = true)]
async fn every_operation_of_a_producer_ends_at_its_limit_when_nobody_answers() {
    let silent_names = Network::default();
    silent_names.always("ns:1", Reply::Silence);
    let silent_broker = Network::default();
    silent_broker.name_server(ONE_BROKER);
    silent_broker.always("a:1", Reply::Silence);
    let no_dial = Network::default();
    no_dial.name_server(ONE_BROKER);
    no_dial.blackhole("a:1");
    for (network, succeed) in
        [(silent_names, &[][..]), (silent_broker, &["start", "send_oneway"]), (no_dial, &["start"])]
    {
        let producer = network.producer().topics(["orders"]).timeout(LIMIT).attempts(1).build().unwrap();
        for (name, succeeded, took) in every_operation(&producer).await {
            assert!(took <= LIMIT + 20 * MS, "{name} took {took:?}");
            if name != "shutdown" {
                assert_eq!(succeeded, succeed.contains(&name), "{name}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_read_fails_its_send_and_not_the_connection() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let broker = network.peer("a:1", |_, number| if number == 0 { Reply::Bare } else { STORED });
    let producer = network.producer().build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert!(matches!(error.kind(), SendErrorKind::UnreadableAnswer(_)), "{error}");
    producer.send(message()).await.unwrap();
    assert_eq!(broker.connections(), (1, 0));
}
