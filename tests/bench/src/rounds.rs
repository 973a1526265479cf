//! Alternating rounds: each client of a cell once, then all of them again.

use clap::Args as ClapArgs;

use crate::{
    Outcome, ResultLine,
    process::{Extra, Program, Server},
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

/// What the clients of one cell gave, round by round.
#[derive(Debug)]
pub(crate) struct Rounds {
    pub(crate) cell: Cell,
    /// One line of each client, in the same order in every round.
    lines: Vec<Vec<ResultLine>>,
}

impl Rounds {
    /// Runs each of `programs` once in every round.
    pub(crate) fn run(
        server: &Server,
        cell: Cell,
        programs: &[Program],
        rounds: usize,
        extra: Extra,
    ) -> Outcome<Self> {
        let round = || programs.iter().map(|program| program.run(server.address(), cell, extra)).collect();
        Self::gather(cell, rounds, round)
    }

    /// Takes what `round` gives, so often.
    pub(crate) fn gather(
        cell: Cell,
        rounds: usize,
        mut round: impl FnMut() -> Outcome<Vec<ResultLine>>,
    ) -> Outcome<Self> {
        Ok(Self { cell, lines: (0..rounds).map(|_| round()).collect::<Outcome<_>>()? })
    }

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
