//! Alternating rounds: each contender of a cell once, then all of them again.

use std::{fmt, net::SocketAddr, time::Duration};

use clap::Args as ClapArgs;

use crate::{
    Outcome, ResultLine,
    process::{Extra, Program},
    progress::Progress,
    spread::Spread,
};

/// A place in the grid: the load that clients are compared under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ClapArgs)]
pub(crate) struct Cell {
    /// How many callers wait for an answer at the same time.
    #[arg(long, default_value_t = 256)]
    pub(crate) in_flight: usize,
    /// Bytes of each request's body.
    #[arg(long, default_value_t = 128)]
    pub(crate) body: usize,
    /// Worker threads of the runtime; the main thread only waits.
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: usize,
    /// Connections that the callers are spread over.
    #[arg(long, default_value_t = 1)]
    pub(crate) connections: usize,
}

impl Cell {
    pub(crate) const fn new(in_flight: usize, body: usize, workers: usize) -> Self {
        Self { in_flight, body, workers, connections: 1 }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_flight, body, workers, connections } = self;
        write!(f, "{in_flight} in flight, {body} bytes, workers: {workers}")?;
        if *connections == 1 { Ok(()) } else { write!(f, ", connections: {connections}") }
    }
}

/// A program as it takes part in a contest.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    /// What its figures are found under.
    pub(crate) name: String,
    pub(crate) program: Program,
    /// What it is told to ask.
    pub(crate) server: SocketAddr,
    pub(crate) extra: Extra,
}

impl Contender {
    /// One under the name of its program.
    pub(crate) fn new(program: Program, server: SocketAddr, extra: Extra) -> Self {
        Self { name: program.name().to_owned(), program, server, extra }
    }

    fn run(&self, cell: Cell) -> Outcome<ResultLine> {
        let line = self.program.run(self.server, cell, self.extra)?;
        Ok(ResultLine { client: self.name.clone(), ..line })
    }
}

/// Contenders under the same load.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    /// What it is for.
    pub(crate) what: &'static str,
    pub(crate) cell: Cell,
    pub(crate) contenders: Vec<Contender>,
    pub(crate) rounds: usize,
}

impl Contest {
    /// How long it is expected to take.
    pub(crate) fn expected(&self) -> Duration {
        self.round_expected() * self.rounds as u32
    }

    fn round_expected(&self) -> Duration {
        self.contenders.iter().map(|Contender { program, extra, .. }| program.expected(*extra)).sum()
    }

    /// Runs each contender once in every round.
    pub(crate) fn run(&self, progress: &Progress) -> Outcome<Rounds> {
        progress.step(format_args!("{}: {}", self.what, self.cell));
        let mut lines = Vec::with_capacity(self.rounds);
        for _ in 0..self.rounds {
            let round = self.contenders.iter().map(|contender| contender.run(self.cell));
            lines.push(round.collect::<Outcome<_>>()?);
            progress.advance(self.round_expected());
        }
        Ok(Rounds { cell: self.cell, lines })
    }
}

/// What the contenders of one cell gave, round by round.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) cell: Cell,
    /// One line of each contender, in the same order in every round.
    lines: Vec<Vec<ResultLine>>,
}

impl Rounds {
    /// The clients' names, in the order in which they were run.
    pub(crate) fn clients(&self) -> Vec<&str> {
        self.lines.first().map_or_else(Vec::new, |round| round.iter().map(|line| &*line.client).collect())
    }

    /// The figure of one client over all rounds; `None` where it was not among them.
    pub(crate) fn figure(&self, client: &str, figure: Figure) -> Option<Spread> {
        Spread::of(self.lines.iter().filter_map(|round| figure.of(line_of(round, client)?)))
    }

    /// The ratio of the clients' figures within each round.
    pub(crate) fn ratio(&self, client: &str, to: &str, figure: Figure) -> Option<Spread> {
        Spread::of(
            self.lines.iter().filter_map(|round| {
                Some(figure.of(line_of(round, client)?)? / figure.of(line_of(round, to)?)?)
            }),
        )
    }
}

fn line_of<'a>(round: &'a [ResultLine], client: &str) -> Option<&'a ResultLine> {
    round.iter().find(|line| line.client == client)
}

/// A number that a line gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Requests answered per second.
    Rate,
    /// Microseconds of processor time per request.
    Cpu,
    /// The median time to an answer, in microseconds.
    P50,
    /// The time within which 99 of 100 are answered, in microseconds.
    P99,
    /// The latter over the former.
    Tail,
    /// Socket writes per request.
    Writes,
    /// Allocations per request.
    Allocations,
    /// Heap bytes per pending request.
    HeapPerPending,
    /// Milliseconds from the start of the process to its first answer.
    First,
    /// Threads of the process.
    Threads,
    /// The most memory that was resident, in MiB.
    Peak,
}

impl Figure {
    pub(crate) fn of(self, line: &ResultLine) -> Option<f64> {
        let per_request = |count: u64| count as f64 / line.requests as f64;
        let micros = |nanos: u64| nanos as f64 / 1_000.0;
        let value = match self {
            Self::Rate => line.requests as f64 * 1e9 / line.wall_ns as f64,
            Self::Cpu => per_request(line.cpu_ns) / 1_000.0,
            Self::P50 => micros(line.p50_ns),
            Self::P99 => micros(line.p99_ns),
            Self::Tail => line.p99_ns as f64 / line.p50_ns as f64,
            Self::Writes => per_request(line.writes?),
            Self::Allocations => per_request(line.allocations?),
            Self::HeapPerPending => line.heap_per_pending?,
            Self::First => line.first_ns? as f64 / 1e6,
            Self::Threads => line.threads as f64,
            Self::Peak => line.peak_rss_bytes as f64 / f64::from(1 << 20),
        };
        Some(value)
    }
}
