//! Messages that never leave.

use rocketmq_client::{Message, SendErrorKind};
use rocketmq_transport::Certainty;

use crate::{
    setup::{cluster, producer, started},
    workload::MAX_SIZE,
};

#[tokio::test]
async fn bodies_that_are_empty_or_over_the_limit_are_refused_before_anything_is_sent() {
    let cluster = cluster();
    cluster.create_topic("refused", 1).expect("the broker runs");
    let producer = started(producer(cluster.namesrv())).await;
    for (size, named) in [(0, "empty"), (MAX_SIZE + 1, "4194304")] {
        let error = producer.send(Message::new("refused", vec![0; size])).await.expect_err(named);
        assert!(matches!(error.kind(), SendErrorKind::InvalidMessage(_)), "{error}");
        assert!(error.to_string().contains(named), "{error}");
        assert_eq!(error.certainty(), Certainty::Refused);
        assert!(error.attempts().is_empty(), "{error}");
    }
    producer.send(Message::new("refused", vec![0; MAX_SIZE])).await.expect("the limit itself is allowed");
    assert_eq!(cluster.dump("refused").expect("the broker runs").len(), 1);
}
