//! The only broker killed in mid-traffic and started again on what it has stored.

use std::{collections::HashMap, sync::OnceLock, time::Duration};

use rocketmq_client::{Duplicates, ProducerBuilder};
use rocketmq_tests::apache::{BrokerSpec, Cluster, Member};
use tokio::sync::Mutex;

use crate::{
    setup::{cluster_of, producer, started, wait_until_idle},
    traffic::{Outcome, Settled, Traffic, settle},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_send_through_a_kill_of_the_broker_is_settled_by_what_it_has_stored() {
    let settings = |builder: ProducerBuilder| builder.attempts(1);
    let (outcomes, settled) = through_a_kill("one-attempt", settings).await;
    assert!(settled.unknown_stored + settled.unknown_lost > 0, "{settled:?}");
    assert!(settled.not_sent > 0, "{settled:?}");
    assert_eq!(settled.repeated, 0, "{settled:?} of {}", outcomes.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_send_that_may_be_repeated_is_stored_at_least_once_if_it_is_acknowledged() {
    let settings = |builder: ProducerBuilder| builder.attempts(3).duplicates(Duplicates::Allow);
    let (outcomes, settled) = through_a_kill("three-attempts", settings).await;
    assert!(outcomes.values().flatten().any(|receipt| receipt.attempts().len() > 1), "{settled:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_with_budget_left_ride_out_a_restart_of_the_only_broker() {
    let settings = |builder: ProducerBuilder| builder.attempts(1000).timeout(RESTART);
    let (outcomes, settled) = through_a_kill("ridden-out", settings).await;
    for outcome in outcomes.values() {
        outcome.as_ref().unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(settled.stored, outcomes.len());
}

/// Sends until the broker is killed, and until it has stored as many again after its restart.
async fn through_a_kill(
    topic: &'static str,
    settings: impl FnOnce(ProducerBuilder) -> ProducerBuilder,
) -> (HashMap<i32, Outcome>, Settled) {
    let mut cluster = single().lock().await;
    cluster.create_topic(topic, 4).expect("the broker runs");
    let producer = started(settings(producer(cluster.namesrv()))).await;
    let traffic = Traffic::start(&producer, topic);
    traffic.wait_for_stored(SENDS);
    cluster.kill(Member::Broker(0)).expect("it runs");
    cluster.restart(Member::Broker(0)).unwrap_or_else(|error| panic!("{error}"));
    traffic.wait_for_stored(SENDS);
    let outcomes = traffic.end().await;
    wait_until_idle(&producer);
    let settled = settle(&outcomes, &cluster.dump(topic).unwrap_or_else(|error| panic!("{error}")));
    (outcomes, settled)
}

/// The cluster of these tests, which take turns with it.
fn single() -> &'static Mutex<Cluster> {
    static SINGLE: OnceLock<Mutex<Cluster>> = OnceLock::new();
    SINGLE.get_or_init(|| Mutex::new(cluster_of(BrokerSpec::new("broker-a"))))
}

/// How many sends succeed before the kill, and again after the restart.
const SENDS: usize = 3000;
/// More than any restart takes.
const RESTART: Duration = Duration::from_secs(40);
