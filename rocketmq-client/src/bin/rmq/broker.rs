//! `rmq broker`.

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use rocketmq_client::{EmbeddedBroker, EmbeddedBrokerBuilder, EmbeddedBrokerError};

use crate::{Failure, args::BrokerArgs, interrupt, outcome::chain, report::to_stderr};

/// Runs a broker until an interrupt.
pub(crate) async fn run(args: BrokerArgs) -> Result<ExitCode, Failure> {
    let interrupt = interrupt::listen()?;
    let builder = EmbeddedBroker::builder().port(args.port).brokers(args.brokers);
    let builder =
        args.topics.into_iter().fold(builder, |builder, topic| builder.topic(topic.name, topic.queues));
    let builder = args.faults.into_iter().fold(builder, |builder, spec| builder.fault(spec.site, spec.fault));
    let broker = start(builder).await?;
    announce(&broker)
        .map_err(|error| Failure::run(format_args!("the address cannot be printed: {error}")))?;
    interrupt.cancelled().await;
    broker.close().await;
    Ok(ExitCode::SUCCESS)
}

/// Starts what `builder` says; a topic or setting that is refused is a matter of the command line.
pub(crate) async fn start(builder: EmbeddedBrokerBuilder) -> Result<EmbeddedBroker, Failure> {
    builder.start().await.map_err(|error| match &error {
        EmbeddedBrokerError::Listen { .. } => Failure::run(chain(&error)),
        _ => Failure::usage(chain(&error)),
    })
}

/// The first line on standard output is the address alone, for scripts; the rest is for people.
fn announce(broker: &EmbeddedBroker) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", broker.namesrv())?;
    out.flush()?;
    for (name, peer) in broker.brokers() {
        to_stderr(&format!("{name} listens on {peer}; Ctrl-C ends it"));
    }
    Ok(())
}
