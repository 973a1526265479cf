//! What the tests share.

use std::{net::SocketAddr, sync::OnceLock, time::Duration};

use rocketmq_client::{Producer, ProducerBuilder};
use rocketmq_tests::apache::{BrokerSpec, Cluster, ClusterSpec, wait_for};

/// One cluster for all tests that leave it as it is, of the default version and settings.
pub(crate) fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| start(ClusterSpec::default()))
}

/// A cluster of one broker that `broker` describes.
pub(crate) fn cluster_of(broker: BrokerSpec) -> Cluster {
    start(ClusterSpec { brokers: vec![broker], ..ClusterSpec::default() })
}

/// A running cluster, or a panic that shows what the processes said.
pub(crate) fn start(spec: ClusterSpec) -> Cluster {
    Cluster::start(spec).unwrap_or_else(|error| panic!("{error}"))
}

/// The settings of a producer for a machine that is busy with the brokers as well.
pub(crate) fn producer(namesrv: SocketAddr) -> ProducerBuilder {
    Producer::builder("apache-suite").namesrv(&namesrv.to_string()).timeout(BUDGET)
}

/// Started with a builder's settings.
pub(crate) async fn started(builder: ProducerBuilder) -> Producer {
    let producer = builder.build().expect("the settings are valid");
    producer.start().await.expect("the name server runs");
    producer
}

/// Waits until nothing is in flight, kept or remembered any more, heartbeats and late answers included. It blocks.
pub(crate) fn wait_until_idle(producer: &Producer) {
    let look = || {
        let usage = producer.usage();
        if usage.is_idle() { Ok(()) } else { Err(format!("{usage:?}")) }
    };
    wait_for("end of all that is in flight", BUDGET, look).unwrap_or_else(|error| panic!("{error}"));
}

/// Long enough for any send that can succeed.
pub(crate) const BUDGET: Duration = Duration::from_secs(20);
