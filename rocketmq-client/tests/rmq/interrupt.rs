//! Ctrl-C while messages are sent.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use rocketmq_client::EmbeddedBroker;
use rocketmq_transport::{Code, Command, Fields, Handler, Header, Response, Server, ServerConfig};
use tokio::{io::AsyncWriteExt as _, sync::Semaphore};

use crate::run::Running;

/// A name server and broker in one, which takes sends and answers them only when it is allowed to.
#[derive(Debug)]
struct Slow {
    address: OnceLock<SocketAddr>,
    arrived: Semaphore,
    allowed: Semaphore,
}

impl Handler for Slow {
    async fn handle(&self, request: Command, _: SocketAddr) -> Option<Response> {
        let done = |header, body| Some(Response { code: Code::SUCCESS, remark: None, header, body });
        match request.code() {
            Code(105) => {
                let address = self.address.get().expect("it is set before anybody knows it");
                let queues = r#"[{"brokerName":"slow","readQueueNums":4,"writeQueueNums":4,"perm":6,"topicSysFlag":0}]"#;
                let brokers =
                    format!(r#"[{{"cluster":"c","brokerName":"slow","brokerAddrs":{{"0":"{address}"}}}}]"#);
                let route = format!(r#"{{"queueDatas":{queues},"brokerDatas":{brokers}}}"#);
                done(Box::new(()), route.into())
            }
            Code(310) => {
                self.arrived.add_permits(1);
                self.allowed.acquire().await.expect("it is never closed").forget();
                done(Box::new(Stored), Bytes::new())
            }
            _ => done(Box::new(()), Bytes::new()),
        }
    }
}

struct Stored;

impl Header for Stored {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("msgId", "7F00000100002A9F0000000000001000");
        fields.int("queueId", 0);
        fields.int("queueOffset", 0);
    }
}

async fn slow() -> (Server, Arc<Slow>) {
    let slow =
        Arc::new(Slow { address: OnceLock::new(), arrived: Semaphore::new(0), allowed: Semaphore::new(0) });
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::clone(&slow), ServerConfig::default());
    let server = server.await.expect("there is a free port");
    slow.address.set(server.local_addr()).expect("nobody else sets it");
    (server, slow)
}

/// A run with two sends in flight and one not begun, of three.
async fn two_in_flight() -> (Server, Arc<Slow>, Running) {
    let (server, slow) = slow().await;
    let line = format!(
        "produce --namesrv {} --topic t --count 3 --concurrency 2 --timeout 60000 --output json",
        server.local_addr()
    );
    let mut running = Running::start(&line);
    tokio::select! {
        arrived = slow.arrived.acquire_many(2) => arrived.expect("it is never closed").forget(),
        line = running.out.next_line() => panic!("a send ended before it was answered: {line:?}"),
    }
    (server, slow, running)
}

#[tokio::test]
async fn the_first_interrupt_waits_for_what_is_in_flight_and_begins_nothing_more() {
    let (_server, slow, mut running) = two_in_flight().await;
    running.signal("INT").await;
    running.until_told("waiting for 2 sends in flight").await;
    slow.allowed.add_permits(2);
    assert_eq!(
        (running.event().await["outcome"].clone(), running.event().await["outcome"].clone()),
        ("stored".into(), "stored".into())
    );
    let summary = running.event().await;
    assert_eq!(summary["outcome"], serde_json::json!({ "stored": 2, "failed": 0 }));
    assert_eq!((&summary["interrupted"], &summary["not_started"]), (&true.into(), &1.into()));
    assert_eq!(running.end().await, (Some(1), String::new()));
    assert_eq!(slow.arrived.available_permits(), 0);
}

#[tokio::test]
async fn the_second_interrupt_ends_at_once() {
    let (_server, _slow, mut running) = two_in_flight().await;
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
