//! Two name servers and two brokers, of which one is in trouble.

use std::{sync::OnceLock, time::Duration};

use rocketmq_client::{Message, Producer, SendErrorKind, SendReceipt};
use rocketmq_tests::apache::{BrokerSpec, Cluster, ClusterSpec, Member};
use rocketmq_transport::{Certainty, Code, Stage, TransportError};
use tokio::{sync::Mutex, task::JoinSet, time::timeout};

use crate::{
    setup::{BUDGET, producer, start, started, wait_until_idle},
    traffic::{Traffic, settle},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_broker_is_called_silent_and_passed_over_and_its_late_answers_settle_what_it_was_asked() {
    let mut cluster = pair().lock().await;
    cluster.create_topic("frozen", 4).expect("the brokers run");
    let producer = started(producer(cluster.namesrv()).timeout(Duration::from_secs(3))).await;
    let mut receipts = send_at_once(&producer).await;
    assert!(receipts.iter().all(|receipt| receipt.attempts().len() == 1), "{receipts:?}");

    cluster.freeze(Member::Broker(0)).expect("it runs");
    for round in ["the connection of before", "one that is opened to a frozen broker"] {
        let passed = send_at_once(&producer).await;
        assert!(passed.iter().all(|receipt| receipt.attempts().len() == 1 || receipt.broker() == "broker-b"));
        assert!(passed.iter().any(|receipt| receipt.attempts().len() == 2), "{round}: {passed:?}");
        receipts.extend(passed);
    }
    let silences: Vec<_> = receipts.iter().filter_map(silence).collect();

    cluster.thaw(Member::Broker(0)).expect("it was frozen");
    for silence in &silences {
        let late = silence.late_answer().expect("the connection lives").wait();
        let answer = timeout(BUDGET, late).await.expect("it goes on").expect("it is remembered");
        assert_eq!(answer.code(), Code::SUCCESS);
    }
    wait_until_idle(&producer);
    let late: u64 = producer.usage().peers.iter().map(|peer| peer.late).sum();
    assert!(late >= silences.len() as u64, "{late} of {}", silences.len());
    let store = cluster.dump("frozen").expect("the brokers run");
    assert_eq!(store.len(), receipts.len() + silences.len());
    for receipt in &receipts {
        let copies = store.iter().filter(|record| record.msg_id == receipt.message_id());
        let brokers: Vec<_> = copies.map(|record| &*record.broker).collect();
        match silence(receipt) {
            Some(_) => assert_eq!(brokers, ["broker-a", "broker-b"]),
            None => assert_eq!(brokers, [receipt.broker()]),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_send_fails_by_a_killed_broker_while_the_other_can_take_it() {
    let mut cluster = pair().lock().await;
    cluster.create_topic("killed", 4).expect("the brokers run");
    let producer = started(producer(cluster.namesrv()).timeout(BUDGET)).await;
    let traffic = Traffic::start(&producer, "killed");
    traffic.wait_for_stored(SENDS);
    cluster.kill(Member::Broker(0)).expect("it runs");
    traffic.wait_for_stored(SENDS);
    let outcomes = traffic.end().await;
    wait_until_idle(&producer);
    for outcome in outcomes.values() {
        outcome.as_ref().unwrap_or_else(|error| panic!("{error}"));
    }
    cluster.restart(Member::Broker(0)).unwrap_or_else(|error| panic!("{error}"));
    let settled = settle(&outcomes, &cluster.dump("killed").expect("the brokers run"));
    assert_eq!(settled.stored, outcomes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_server_that_is_frozen_first_in_the_list_costs_no_send_its_budget() {
    let mut cluster = pair().lock().await;
    cluster.create_topic("frozen-first", 4).expect("the brokers run");
    let list = cluster.name_servers().iter().map(ToString::to_string).collect::<Vec<_>>().join(";");
    let builder = Producer::builder("apache-suite").namesrv(&list).timeout(Duration::from_secs(3));
    cluster.freeze(Member::NameServer(0)).expect("it runs");
    let producer = started(builder).await;
    for _ in 0..100 {
        producer.send(Message::new("frozen-first", "body")).await.expect("one name server is enough");
    }
    cluster.thaw(Member::NameServer(0)).expect("it was frozen");
    wait_until_idle(&producer);
    assert_eq!(cluster.dump("frozen-first").expect("the brokers run").len(), 100);
}

/// Sends enough messages at once for either broker to be the first one asked of many.
async fn send_at_once(producer: &Producer) -> Vec<SendReceipt> {
    let send = |_| {
        let producer = producer.clone();
        async move { producer.send(Message::new("frozen", "body")).await }
    };
    let sends: JoinSet<_> = (0..64).map(send).collect();
    let outcomes = sends.join_all().await;
    outcomes.into_iter().map(|sent| sent.unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// What is known of the attempt at the frozen broker, where there was one.
fn silence(receipt: &SendReceipt) -> Option<&TransportError> {
    let [first, _] = receipt.attempts() else { return None };
    assert_eq!((first.broker(), first.certainty()), ("broker-a", Some(Certainty::Unknown)), "{first}");
    let Some(SendErrorKind::Transport(error)) = first.error() else { panic!("{first}") };
    assert_eq!(
        (error.stage(), error.heard_since_written()),
        (Stage::AwaitingResponse, Some(false)),
        "{error}"
    );
    Some(error)
}

/// The cluster of these tests, which take turns with it and leave it whole.
fn pair() -> &'static Mutex<Cluster> {
    static PAIR: OnceLock<Mutex<Cluster>> = OnceLock::new();
    let brokers = vec![BrokerSpec::new("broker-a"), BrokerSpec::new("broker-b")];
    let spec = ClusterSpec { name_servers: 2, brokers, ..ClusterSpec::default() };
    PAIR.get_or_init(|| Mutex::new(start(spec)))
}

/// How many sends succeed before the kill, and again after it.
const SENDS: usize = 3000;
