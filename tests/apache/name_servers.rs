//! Name servers that are not there.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::Duration,
};

use rocketmq_client::{Message, Producer, SendErrorKind};
use rocketmq_transport::{Certainty, Stage};

use crate::setup::{cluster, producer, started};

#[tokio::test]
async fn a_name_server_that_is_down_first_in_the_list_fails_no_send() {
    let cluster = cluster();
    cluster.create_topic("first-down", 4).expect("the broker runs");
    let list = format!("{};{}", nobody(), cluster.namesrv());
    // A budget that waiting out one attempt to connect would use up.
    let builder = Producer::builder("apache-suite").namesrv(&list).timeout(Duration::from_secs(3));
    let producer = started(builder).await;
    for _ in 0..100 {
        producer.send(Message::new("first-down", "body")).await.expect("one name server is enough");
    }
    assert_eq!(cluster.dump("first-down").expect("the broker runs").len(), 100);
}

#[tokio::test]
async fn no_name_server_at_all_is_an_error_of_the_route() {
    let producer = started(producer(nobody())).await;
    let error = producer.send(Message::new("any", "body")).await.expect_err("nobody listens");
    assert!(matches!(error.kind(), SendErrorKind::Route(_)), "{error}");
    assert_eq!((error.stage(), error.certainty()), (Stage::Route, Certainty::NotSent));
}

/// An address at which nobody listens any more.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener.local_addr().expect("it is bound")
}
