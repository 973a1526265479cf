//! The whole benchmark: transports, then producers, then the page of figures and the plot.

use std::fs;

use crate::{
    Outcome,
    args::RunOptions,
    plot, producers,
    progress::Progress,
    report,
    targets::{self, Target},
    transport,
};

/// Everything that was measured in one run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) transport: transport::Figures,
    /// The producers; `None` where they were left out.
    pub(crate) producers: Option<producers::Producers>,
    /// Of what targets are judged by.
    pub(crate) rounds: usize,
    pub(crate) millis: u64,
}

/// Measures, prints the targets, and writes tables and plot unless the run is a quick one.
pub(crate) fn run(options: &RunOptions) -> Outcome<()> {
    let transport = transport::Bench::prepare(options)?;
    let producers =
        (!options.transport_only).then(|| producers::Bench::prepare(options.producers())).transpose()?;
    let expected = transport.expected() + producers.iter().map(producers::Bench::expected).sum();
    let progress = Progress::new(expected);
    let measured = Measured {
        transport: transport.measure(&progress)?,
        producers: producers.map(|producers| producers.measure(&progress)).transpose()?,
        rounds: options.rounds(),
        millis: options.millis(),
    };
    drop(progress);
    println!("{}", targets::table(&measured.targets()));
    if options.quick {
        println!("{}", report::paced(&measured.transport));
        return Ok(());
    }
    for path in [&options.figures, &options.plot] {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
    }
    fs::write(&options.figures, report::page(&measured))?;
    plot::draw(&measured.transport, &options.plot)
}

impl Measured {
    /// What transport and producer are held to.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let mut targets = targets::of_transport(&self.transport);
        targets.extend(self.producers.iter().flat_map(producers::targets));
        targets
    }
}
