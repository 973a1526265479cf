//! What we send is what Apache's own consumer reads: every message, every byte, once, where the receipt says.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use rocketmq_client::{Message, Producer, SendReceipt, SendStatus};
use rocketmq_tests::apache::{Cluster, ClusterSpec, Dumped};
use rocketmq_transport::HeaderEncoding;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use crate::{
    setup::{cluster, producer, start, started},
    workload,
};

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_messages_with_json_headers_arrive_unchanged() {
    round_trip(cluster(), "json", HeaderEncoding::Json, 0..5000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_messages_with_binary_headers_arrive_unchanged() {
    round_trip(cluster(), "binary", HeaderEncoding::Binary, 5000..10_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_unchanged_at_version_four() {
    let cluster = start(ClusterSpec { version: "4.9.7".to_owned(), ..ClusterSpec::default() });
    round_trip(&cluster, "json", HeaderEncoding::Json, 0..1000).await;
    round_trip(&cluster, "binary", HeaderEncoding::Binary, 1000..2000).await;
}

async fn round_trip(cluster: &Cluster, topic: &'static str, encoding: HeaderEncoding, numbers: Range<usize>) {
    cluster.create_topic(topic, 8).expect("the broker runs");
    let producer = started(producer(cluster.namesrv()).header_encoding(encoding)).await;
    let mut senders = JoinSet::new();
    for first in numbers.clone().take(CONCURRENCY) {
        let mine = (first..numbers.end).step_by(CONCURRENCY);
        senders.spawn(send_all(producer.clone(), topic, mine));
    }
    let sent = senders.join_all().await.into_iter().flatten();

    let stored = cluster.dump(topic).expect("the broker runs");
    assert_eq!(stored.len(), numbers.len(), "none missing, none twice");
    let mut stored: HashMap<_, _> =
        stored.into_iter().map(|dumped| (dumped.msg_id.clone(), dumped)).collect();
    assert_eq!(stored.len(), numbers.len(), "every message has an id of its own");
    for (message, receipt) in sent {
        let dumped =
            stored.remove(receipt.message_id()).unwrap_or_else(|| panic!("{receipt:?} is not stored"));
        assert_same(&message, &receipt, &dumped);
    }
    assert!(stored.is_empty(), "nothing is stored that was not sent: {stored:?}");
}

async fn send_all(
    producer: Producer,
    topic: &'static str,
    numbers: impl Iterator<Item = usize>,
) -> Vec<(Message, SendReceipt)> {
    let mut sent = Vec::new();
    for number in numbers {
        let message = workload::message(topic, number);
        let receipt =
            producer.send(message.clone()).await.unwrap_or_else(|error| panic!("message {number}: {error}"));
        sent.push((message, receipt));
    }
    sent
}

fn assert_same(message: &Message, receipt: &SendReceipt, dumped: &Dumped) {
    let digest: String = Sha256::digest(message.body()).iter().map(|byte| format!("{byte:02x}")).collect();
    let keys = (!message.keys().is_empty()).then(|| message.keys().join(" "));
    let properties: BTreeMap<_, _> = dumped
        .properties
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .filter(|(name, _)| !is_system(name))
        .collect();
    assert_eq!(receipt.status(), SendStatus::Stored);
    assert_eq!(dumped.topic, message.topic());
    assert_eq!(dumped.broker, receipt.broker());
    assert_eq!(dumped.queue_id, i32::try_from(receipt.queue().id()).expect("queues are few"));
    assert_eq!(dumped.queue_offset, receipt.queue_offset());
    assert_eq!(dumped.flag, message.flag());
    assert_eq!(dumped.tags.as_deref(), message.tag());
    assert_eq!(dumped.keys, keys);
    assert_eq!(properties, message.properties().collect());
    assert_eq!((dumped.body_len, &dumped.body_sha256), (message.body().len(), &digest));
}

/// Whether client or broker put a property of this name beside those of the application.
fn is_system(name: &str) -> bool {
    !name.starts_with("name ") && name != "long"
}

const CONCURRENCY: usize = 32;
