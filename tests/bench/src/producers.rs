//! The producers at a real broker: ours, a raw one, and other people's, each as a whole process.

mod report;

use std::net::SocketAddr;

pub(crate) use self::report::{section, targets};
use crate::{
    Outcome,
    args::ProducerOptions,
    foreign,
    process::{Brokers, Extra, Program},
    rounds::{Cell, Rounds},
    syscalls::{Calls, Counter},
    targets::table,
};

/// Everything that was measured of producers.
#[derive(Debug)]
pub(crate) struct Producers {
    /// One for each number of requests in flight.
    rounds: Vec<Rounds>,
    /// None where nothing can count them.
    calls: Vec<CountedCalls>,
    counter: Option<Counter>,
    repeated: usize,
    millis: u64,
}

/// Requests in flight, client, and its system calls in some runs.
type CountedCalls = (usize, &'static str, Vec<Calls>);

/// Measures, and prints the targets and the figures.
pub(crate) fn run(options: ProducerOptions) -> Outcome<()> {
    let producers = measure(options)?;
    println!("{}\n{}", table(&targets(&producers)), section(&producers));
    Ok(())
}

/// Runs the clients in alternating rounds against one broker, which is started for it.
pub(crate) fn measure(options: ProducerOptions) -> Outcome<Producers> {
    let repeated = if options.quick { QUICK_ROUNDS } else { options.rounds };
    let others = foreign::producers();
    let brokers = Brokers::start()?;
    let clients = clients(&brokers)?;
    let extra = Extra { millis: options.millis, ..Extra::default() };
    let at = |in_flight| {
        let cell = Cell::new(in_flight, BODY, WORKERS);
        eprintln!("producers: {cell:?}");
        Rounds::gather(cell, repeated, || {
            let ours = clients.iter().map(|(_, program, server)| program.run(*server, cell, extra));
            ours.chain(others.iter().map(|program| program.run(brokers.name_server, cell, extra))).collect()
        })
    };
    let rounds = IN_FLIGHT.map(at).into_iter().collect::<Outcome<_>>()?;
    let counter = Counter::find();
    let calls = counter.map_or_else(|| Ok(Vec::new()), |counter| count_calls(counter, &clients, extra))?;
    Ok(Producers { rounds, calls, counter, repeated, millis: extra.millis })
}

/// Runs `clients` for their system calls alone.
fn count_calls(counter: Counter, clients: &[Client], extra: Extra) -> Outcome<Vec<CountedCalls>> {
    let mut counted = Vec::new();
    for in_flight in IN_FLIGHT {
        let cell = Cell::new(in_flight, BODY, WORKERS);
        for (name, program, server) in clients {
            let runs = (0..COUNTING_ROUNDS).map(|_| counter.count(program, *server, cell, extra));
            counted.push((in_flight, *name, runs.collect::<Outcome<_>>()?));
        }
    }
    Ok(counted)
}

/// A client by its name, and whom it is told of.
type Client = (&'static str, Program, SocketAddr);

/// Ours and the raw one.
fn clients(brokers: &Brokers) -> Outcome<[Client; 2]> {
    Ok([(OURS, Program::kind(OURS)?, brokers.name_server), (RAW, Program::kind(RAW)?, brokers.broker)])
}

const OURS: &str = "producer";
const RAW: &str = "raw-producer";
const IN_FLIGHT: [usize; 3] = [1, 16, 256];
const BODY: usize = 1_024;
/// What tokio's runtime has by default on two cores.
const WORKERS: usize = 2;
const QUICK_ROUNDS: usize = 3;
const COUNTING_ROUNDS: usize = 3;
