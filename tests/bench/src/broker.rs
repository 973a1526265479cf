//! A name server and a broker in processes of their own, to send to.

use std::{
    fmt::Display,
    io::{self, Write},
};

use clap::Args;
use rocketmq_client::EmbeddedBroker;
use rocketmq_tests::apache::{Cluster, ClusterSpec};
use tokio::runtime::Builder;

use crate::{
    Outcome,
    wire::{TOPIC, TOPIC_QUEUES},
};

/// Which broker.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct BrokerOptions {
    /// The real one, which needs a JDK and Maven; otherwise ours, in memory.
    #[arg(long)]
    pub(crate) apache: bool,
}

/// Serves the topic of the benchmark, prints the addresses of the name server and of the broker, and ends with its
/// standard input.
pub(crate) fn serve(options: BrokerOptions) -> Outcome<()> {
    if options.apache { serve_apache() } else { serve_embedded() }
}

fn serve_apache() -> Outcome<()> {
    let cluster = Cluster::start(ClusterSpec::default())?;
    cluster.create_topic(TOPIC, TOPIC_QUEUES)?;
    announce(&cluster.namesrv(), &cluster.brokers()[0])
}

fn serve_embedded() -> Outcome<()> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let broker = runtime.block_on(EmbeddedBroker::builder().topic(TOPIC, TOPIC_QUEUES).start())?;
    let (_, peer) = broker.brokers().next().ok_or("no broker")?;
    announce(broker.namesrv(), peer)?;
    runtime.block_on(broker.close());
    Ok(())
}

/// Prints the addresses, and waits for the end of standard input.
fn announce(name_server: &impl Display, broker: &impl Display) -> Outcome<()> {
    println!("{name_server} {broker}");
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
