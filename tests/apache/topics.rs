//! Topics that nobody has made.

use rocketmq_client::{Message, RouteErrorKind, SendErrorKind};
use rocketmq_tests::apache::BrokerSpec;
use rocketmq_transport::{Certainty, Stage};

use crate::setup::{cluster, cluster_of, producer, started};

#[tokio::test]
async fn an_unknown_topic_is_made_by_the_first_send_where_the_broker_allows_it() {
    let cluster = cluster();
    let producer = started(producer(cluster.namesrv())).await;
    let receipt = producer.send(Message::new("made-by-send", "body")).await.expect("the broker makes topics");
    let stored = cluster.dump("made-by-send").expect("the broker runs");
    let [dumped] = &stored[..] else { panic!("one message was sent: {stored:?}") };
    assert_eq!(dumped.msg_id, receipt.message_id());
}

#[tokio::test]
async fn an_unknown_topic_is_refused_where_the_broker_makes_none() {
    let cluster = cluster_of(BrokerSpec::new("broker-a").with("autoCreateTopicEnable", "false"));
    let producer = started(producer(cluster.namesrv())).await;
    let error =
        producer.send(Message::new("nobody-made-it", "body")).await.expect_err("there is no such topic");
    let SendErrorKind::Route(cause) = error.kind() else { panic!("{error}") };
    assert_eq!(cause.kind(), RouteErrorKind::TopicNotFound);
    assert_eq!((error.stage(), error.certainty()), (Stage::Route, Certainty::NotSent));
    assert!(error.to_string().contains("nobody-made-it"), "{error}");

    cluster.create_topic("made-by-hand", 4).expect("the broker runs");
    producer.send(Message::new("made-by-hand", "body")).await.expect("the topic is there");
}
