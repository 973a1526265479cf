//! The harness itself: nothing of what it starts stays behind.

use std::path::Path;

use rocketmq_tests::apache::{BrokerSpec, Cluster, ClusterSpec};

#[test]
fn dropping_a_cluster_ends_its_processes() {
    let brokers = vec![BrokerSpec::new("broker-a"), BrokerSpec::new("broker-b")];
    let cluster = Cluster::start(ClusterSpec { brokers, ..ClusterSpec::default() }).expect("it starts");
    let running = |id: &u32| Path::new("/proc").join(id.to_string()).exists();
    let ids = cluster.process_ids();
    assert_eq!(ids.iter().filter(|id| running(id)).count(), 3);
    drop(cluster);
    assert_eq!(ids.iter().filter(|id| running(id)).count(), 0);
}

#[test]
fn both_supported_versions_start_and_make_a_topic() {
    for version in ["4.9.7", "5.5.0"] {
        let spec = ClusterSpec { version: version.to_owned(), ..ClusterSpec::default() };
        let cluster = Cluster::start(spec).expect(version);
        cluster.create_topic("empty", 3).expect(version);
        assert_eq!(cluster.dump("empty").expect(version), []);
    }
}
