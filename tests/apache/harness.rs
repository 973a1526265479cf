//! The harness itself: nothing of what it starts stays behind, and what does not start says why.

use std::path::Path;

use rocketmq_tests::apache::{BrokerSpec, Cluster, ClusterSpec, HarnessError, Member};

#[test]
fn dropping_a_cluster_ends_its_processes_whatever_has_happened_to_them() {
    let brokers = vec![BrokerSpec::new("broker-a"), BrokerSpec::new("broker-b")];
    let mut cluster = Cluster::start(ClusterSpec { brokers, ..ClusterSpec::default() }).expect("it starts");
    cluster.kill(Member::NameServer(0)).expect("it runs");
    cluster.restart(Member::NameServer(0)).expect("its port is free");
    cluster.freeze(Member::Broker(1)).expect("it runs");
    let running = |id: &u32| Path::new("/proc").join(id.to_string()).exists();
    let ids = cluster.process_ids();
    assert_eq!(ids.iter().filter(|id| running(id)).count(), 3);
    drop(cluster);
    assert_eq!(ids.iter().filter(|id| running(id)).count(), 0);
}

#[test]
fn a_broker_that_does_not_start_is_reported_with_its_own_words() {
    let brokers = vec![BrokerSpec::new("broker-a").with("brokerRole", "SLAVE")];
    let error =
        Cluster::start(ClusterSpec { brokers, ..ClusterSpec::default() }).expect_err("number 0 is a master");
    assert!(matches!(error, HarnessError::Ended { .. }), "{error}");
    assert!(error.to_string().contains("brokerId must be > 0"), "{error}");
}
