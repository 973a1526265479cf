//! The only broker killed in mid-traffic and started again on what it has stored.

use std::{collections::HashMap, time::Duration};

use rocketmq_client::{Duplicates, Producer, ProducerBuilder};
use rocketmq_tests::apache::{BrokerSpec, Cluster, Member};

use crate::{
    setup::{cluster_of, producer, started, wait_until_idle},
    traffic::{Outcome, Settled, Traffic, resolve, settle},
};

/// Three producers go through the same kill: one that asks once, one that may ask again, and one that does not
/// give up before its budget.
#[tokio::test(flavor = "multi_thread")]
async fn what_every_send_through_a_kill_of_the_only_broker_is_told_is_what_it_has_stored() {
    let mut cluster = cluster_of(BrokerSpec::new("broker-a"));
    for topic in ["once", "thrice", "patient"] {
        cluster.create_topic(topic, 4).expect("the broker runs");
    }
    let settings = || producer(cluster.namesrv());
    let once = Run::start("once", settings().attempts(1)).await;
    let thrice = Run::start("thrice", settings().attempts(3).duplicates(Duplicates::Allow)).await;
    let patient = Run::start("patient", settings().attempts(16).timeout(RESTART)).await;
    let runs = [&once, &thrice, &patient];
    for _ in 0..KILLS {
        runs.iter().for_each(|run| run.traffic.wait_for_stored(SENDS));
        cluster.kill(Member::Broker(0)).expect("it runs");
        cluster.restart(Member::Broker(0)).unwrap_or_else(|error| panic!("{error}"));
        // A kill may find all that is in flight on our side of the sockets; then there has to be another.
        if once.traffic.unknown() > 0 {
            break;
        }
    }
    runs.iter().for_each(|run| run.traffic.wait_for_stored(SENDS));
    let (once, thrice, patient) = (once.end().await, thrice.end().await, patient.end().await);

    let (_, settled) = once.settle(&cluster).await;
    assert!(settled.unknown_stored + settled.unknown_lost > 0, "{settled:?}");
    assert!(settled.not_sent > 0, "{settled:?}");
    assert_eq!(settled.repeated, 0, "{settled:?}");

    let (outcomes, settled) = thrice.settle(&cluster).await;
    assert!(outcomes.values().flatten().any(|receipt| receipt.attempts().len() > 1), "{settled:?}");

    let (outcomes, settled) = patient.settle(&cluster).await;
    outcomes.values().for_each(|outcome| assert!(outcome.is_ok(), "{outcome:?}"));
    assert_eq!(settled.stored, outcomes.len());
}

/// The traffic of one producer to a topic of its own.
struct Run {
    topic: &'static str,
    producer: Producer,
    traffic: Traffic,
}

impl Run {
    async fn start(topic: &'static str, settings: ProducerBuilder) -> Self {
        let producer = started(settings).await;
        let traffic = Traffic::start(&producer, topic);
        Self { topic, producer, traffic }
    }

    async fn end(self) -> Ended {
        let outcomes = self.traffic.end().await;
        wait_until_idle(&self.producer);
        Ended { topic: self.topic, producer: self.producer, outcomes }
    }
}

struct Ended {
    topic: &'static str,
    producer: Producer,
    outcomes: HashMap<i32, Outcome>,
}

impl Ended {
    /// Compares what was said of each send with the store, and then what the broker says of the unknown ones.
    async fn settle(self, cluster: &Cluster) -> (HashMap<i32, Outcome>, Settled) {
        let store = cluster.dump(self.topic).unwrap_or_else(|error| panic!("{error}"));
        let settled = settle(&self.outcomes, &store);
        resolve(&self.producer, &self.outcomes, &store).await;
        wait_until_idle(&self.producer);
        (self.outcomes, settled)
    }
}

/// How often the broker is killed at most.
const KILLS: usize = 5;
/// How many sends of each producer succeed before a kill, and again after the restart.
const SENDS: usize = 1500;
/// More than any restart takes.
const RESTART: Duration = Duration::from_secs(40);
