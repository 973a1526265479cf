//! Ctrl-C while messages are sent.

use std::sync::Arc;

use rocketmq_client::EmbeddedBroker;
use rocketmq_transport::Server;
use tokio::io::AsyncWriteExt as _;

use crate::{peer::Peer, run::Running};

/// A run with two sends in flight and one not begun, of three.
async fn two_in_flight() -> (Server, Arc<Peer>, Running) {
    let (server, peer) = Peer::start(None).await;
    let line = format!(
        "produce --namesrv {} --topic t --count 3 --concurrency 2 --timeout 60000 --output json",
        server.local_addr()
    );
    let mut running = Running::start(&line);
    tokio::select! {
        arrived = peer.arrived.acquire_many(2) => arrived.expect("it is never closed").forget(),
        line = running.out.next_line() => panic!("a send ended before it was answered: {line:?}"),
    }
    (server, peer, running)
}

#[tokio::test]
async fn the_first_interrupt_waits_for_what_is_in_flight_and_begins_nothing_more() {
    let (_server, peer, mut running) = two_in_flight().await;
    running.signal("INT").await;
    running.until_told("waiting for 2 sends in flight").await;
    peer.allowed.add_permits(2);
    assert_eq!(
        (running.event().await["outcome"].clone(), running.event().await["outcome"].clone()),
        ("stored".into(), "stored".into())
    );
    let summary = running.event().await;
    assert_eq!(summary["outcome"], serde_json::json!({ "stored": 2, "failed": 0 }));
    assert_eq!((&summary["interrupted"], &summary["not_started"]), (&true.into(), &1.into()));
    assert_eq!(running.end().await, (Some(1), String::new()));
    assert_eq!(peer.arrived.available_permits(), 0);
}

#[tokio::test]
async fn the_second_interrupt_ends_at_once() {
    let (_server, _peer, mut running) = two_in_flight().await;
    running.signal("INT").await;
    running.until_told("waiting for 2 sends in flight").await;
    running.signal("INT").await;
    assert_eq!(running.end().await.0, Some(130));
}

#[tokio::test]
async fn lines_are_sent_and_reported_while_the_input_is_open_and_an_interrupt_ends_the_wait_for_more() {
    let broker = EmbeddedBroker::start().await.unwrap();
    let mut running =
        Running::start(&format!("produce --namesrv {} --topic t --file - --output json", broker.namesrv()));
    for seq in 0..2 {
        running.stdin.write_all(b"line\n").await.unwrap();
        assert_eq!(running.event().await["seq"], seq);
    }
    assert_eq!(broker.stored_count("t"), 2);
    running.signal("INT").await;
    let summary = running.event().await;
    assert_eq!((&summary["messages"], &summary["interrupted"]), (&2.into(), &true.into()));
    assert_eq!(summary["not_started"], serde_json::Value::Null);
    assert_eq!(running.end().await.0, Some(1));
}
