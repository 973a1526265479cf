//! The producers at a real broker: ours, a raw one, and other people's, each as a whole process. Ours and the raw one are
//! measured at the embedded broker, too.

mod report;

use std::time::Duration;

pub(crate) use self::report::{section, targets};
use crate::{
    Outcome,
    args::ProducerOptions,
    foreign,
    process::{Brokers, Extra, Program},
    progress::Progress,
    rounds::{Cell, Contender, Contest, Rounds},
    syscalls::{Calls, Counter},
    targets::table,
};

/// Everything that was measured of producers.
#[derive(Debug)]
pub(crate) struct Producers {
    /// At the real broker, one for each number of requests in flight.
    real: Vec<Rounds>,
    /// At the embedded one.
    embedded: Vec<Rounds>,
    /// None where nothing can count them.
    calls: Vec<CountedCalls>,
    counter: Option<Counter>,
    options: ProducerOptions,
}

/// Requests in flight, client, and its system calls in some runs.
type CountedCalls = (usize, String, Vec<Calls>);

/// Measures, and prints the targets and the figures.
pub(crate) fn run(options: ProducerOptions) -> Outcome<()> {
    let bench = Bench::prepare(options)?;
    let progress = Progress::new(bench.expected());
    let producers = bench.measure(&progress)?;
    drop(progress);
    println!("{}\n{}", table(&targets(&producers)), section(&producers));
    Ok(())
}

/// What is still to be measured.
#[derive(Debug)]
pub(crate) struct Bench {
    ours: [Client; 2],
    others: Vec<Client>,
    counter: Option<Counter>,
    options: ProducerOptions,
}

/// A program, and whom it is told of.
#[derive(Clone, Debug)]
struct Client(Program, Told);

#[derive(Clone, Copy, Debug)]
enum Told {
    NameServer,
    Broker,
}

impl Bench {
    /// Builds other people's clients.
    pub(crate) fn prepare(options: ProducerOptions) -> Outcome<Self> {
        let ours =
            [Client(Program::kind(OURS)?, Told::NameServer), Client(Program::kind(RAW)?, Told::Broker)];
        let others = foreign::producers().into_iter().map(|program| Client(program, Told::NameServer));
        Ok(Self { ours, others: others.collect(), counter: Counter::find(), options })
    }

    /// How long [`measure`](Self::measure) is expected to take.
    pub(crate) fn expected(&self) -> Duration {
        let time = |clients: &[Client], rounds: usize| {
            let each = clients.iter().map(|Client(program, _)| program.expected(self.extra()));
            each.sum::<Duration>() * (IN_FLIGHT.len() * rounds) as u32
        };
        let at_real = time(&self.ours, self.options.rounds()) + time(&self.others, self.options.rounds());
        let counted = self.counter.map_or(Duration::ZERO, |_| time(&self.ours, COUNTING_ROUNDS));
        let embedded = self.ours.iter().map(|Client(program, _)| program.expected(self.embedded_extra()));
        let embedded = embedded.sum::<Duration>() * (IN_FLIGHT.len() * self.embedded_rounds()) as u32;
        START + at_real + counted + embedded
    }

    /// Runs the clients in alternating rounds against brokers that are started for it.
    pub(crate) fn measure(&self, progress: &Progress) -> Outcome<Producers> {
        progress.step("an Apache broker starts");
        let brokers = Brokers::apache()?;
        progress.advance(START);
        let all = [&self.ours, &self.others[..]].concat();
        let contest = |clients: &[Client], brokers: &Brokers, in_flight, (rounds, extra)| {
            let cell = Cell::new(in_flight, BODY, WORKERS);
            let contender = |Client(program, told): &Client| {
                Contender::new(program.clone(), told.address(brokers), extra)
            };
            let contenders = clients.iter().map(contender).collect();
            Contest { what: "producers", cell, contenders, rounds }.run(progress)
        };
        let runs = (self.options.rounds(), self.extra());
        let real = IN_FLIGHT.map(|in_flight| contest(&all, &brokers, in_flight, runs));
        let real = real.into_iter().collect::<Outcome<_>>()?;
        let calls = self.count_calls(&brokers, progress)?;
        drop(brokers);
        let runs = (self.embedded_rounds(), self.embedded_extra());
        // Each has a broker of its own, which keeps in memory all that it is sent.
        let embedded = IN_FLIGHT.map(|in_flight| contest(&self.ours, &Brokers::embedded()?, in_flight, runs));
        let embedded = embedded.into_iter().collect::<Outcome<_>>()?;
        Ok(Producers { real, embedded, calls, counter: self.counter, options: self.options })
    }

    fn extra(&self) -> Extra {
        Extra { millis: self.options.millis(), ..Extra::default() }
    }

    fn embedded_rounds(&self) -> usize {
        self.options.rounds().min(EMBEDDED_ROUNDS)
    }

    fn embedded_extra(&self) -> Extra {
        Extra { millis: self.options.millis().min(EMBEDDED_MILLIS), ..Extra::default() }
    }

    /// Runs ours and the raw one for their system calls alone.
    fn count_calls(&self, brokers: &Brokers, progress: &Progress) -> Outcome<Vec<CountedCalls>> {
        let mut counted = Vec::new();
        let Some(counter) = self.counter else { return Ok(counted) };
        for in_flight in IN_FLIGHT {
            let cell = Cell::new(in_flight, BODY, WORKERS);
            progress.step(format_args!("system calls of producers: {cell}"));
            for Client(program, told) in &self.ours {
                let run = |_| {
                    let calls = counter.count(program, told.address(brokers), cell, self.extra());
                    progress.advance(program.expected(self.extra()));
                    calls
                };
                let calls = (0..COUNTING_ROUNDS).map(run).collect::<Outcome<_>>()?;
                counted.push((in_flight, program.name().to_owned(), calls));
            }
        }
        Ok(counted)
    }
}

impl Told {
    const fn address(self, brokers: &Brokers) -> std::net::SocketAddr {
        match self {
            Self::NameServer => brokers.name_server,
            Self::Broker => brokers.broker,
        }
    }
}

const OURS: &str = "producer";
const RAW: &str = "raw-producer";
const IN_FLIGHT: [usize; 3] = [1, 16, 256];
const BODY: usize = 1_024;
/// What tokio's runtime has by default on two cores.
const WORKERS: usize = 2;
const COUNTING_ROUNDS: usize = 3;
const EMBEDDED_ROUNDS: usize = 5;
const EMBEDDED_MILLIS: u64 = 300;
/// What the start of a real broker takes.
const START: Duration = Duration::from_secs(20);
