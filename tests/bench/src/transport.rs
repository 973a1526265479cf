//! The clients of the transport beside each other, at the neutral server.

use std::{net::SocketAddr, time::Duration};

use crate::{
    Outcome,
    args::RunOptions,
    clients::call_future_bytes,
    codec::{self, Comparison},
    foreign,
    process::{Extra, MOST_CONNECTIONS, Program, Server},
    progress::Progress,
    rounds::{Cell, Contender, Contest, Figure, Rounds},
    targets::{CELLS, MOST},
};

/// Everything that was measured of transports.
#[derive(Debug)]
pub(crate) struct Figures {
    /// The grid.
    pub(crate) grid: Vec<Rounds>,
    /// Runs that count writes and allocations; their times mean nothing.
    pub(crate) counted: Vec<Rounds>,
    /// Runs with so many requests held back, that count what each holds.
    pub(crate) held: Vec<(usize, Rounds)>,
    /// Ours, as [`ALONE`] and [`CROWDED`].
    pub(crate) crowded: Rounds,
    /// Each client at half of its own rate.
    pub(crate) paced: Rounds,
    /// The callers spread over ever more connections.
    pub(crate) connections: Vec<Rounds>,
    pub(crate) codec: Vec<Comparison>,
    pub(crate) call_future_bytes: usize,
}

/// What is still to be measured.
#[derive(Debug)]
pub(crate) struct Bench {
    _server: Server,
    grid: Vec<Contest>,
    counted: Vec<Contest>,
    held: Vec<(usize, Contest)>,
    crowded: Contest,
    /// Its rates come from the grid.
    paced: Contest,
    connections: Vec<Contest>,
}

impl Bench {
    /// Builds what is missing, and starts the server.
    pub(crate) fn prepare(options: &RunOptions) -> Outcome<Self> {
        let server = Server::start()?;
        let plan = Plan { server: server.address(), published: foreign::published_transport(), options };
        let others = if options.quick { Vec::new() } else { informative_cells() };
        let connections: &[usize] = if options.quick { &[] } else { &[1, 4, 16, MOST_CONNECTIONS] };
        let clients = plan.clients()?;
        let spread =
            |&connections: &usize| plan.contest(Cell { connections, ..MOST }, &clients, plan.informative());
        let judged = CELLS.iter().map(|&cell| plan.grid_cell(cell, plan.judged()));
        let others = others.into_iter().map(|cell| plan.grid_cell(cell, plan.informative()));
        Ok(Self {
            grid: judged.chain(others).collect::<Outcome<_>>()?,
            counted: plan.counted()?,
            held: plan.held()?,
            crowded: plan.crowded()?,
            paced: Contest { what: "half load", ..plan.contest(MOST, &clients, plan.judged()) },
            connections: connections.iter().map(spread).collect(),
            _server: server,
        })
    }

    /// How long [`measure`](Self::measure) is expected to take.
    pub(crate) fn expected(&self) -> Duration {
        let Self { grid, counted, held, crowded, paced, connections, .. } = self;
        let lists = [grid, counted, connections].into_iter().flatten();
        let held = held.iter().map(|(_, contest)| contest);
        lists.chain(held).chain([crowded, paced]).map(Contest::expected).sum()
    }

    pub(crate) fn measure(mut self, progress: &Progress) -> Outcome<Figures> {
        let all = |contests: &[Contest]| {
            contests.iter().map(|contest| contest.run(progress)).collect::<Outcome<Vec<_>>>()
        };
        let grid = all(&self.grid)?;
        let held = self.held.iter().map(|(pending, contest)| Ok((*pending, contest.run(progress)?)));
        for Contender { name, extra, .. } in &mut self.paced.contenders {
            let full = grid.iter().find(|rounds| rounds.cell == MOST);
            let most = full.and_then(|rounds| rounds.figure(name, Figure::Rate)).ok_or("no rate to halve")?;
            extra.rate = Some((most.median / 2.0) as u64);
        }
        Ok(Figures {
            counted: all(&self.counted)?,
            held: held.collect::<Outcome<_>>()?,
            crowded: self.crowded.run(progress)?,
            paced: self.paced.run(progress)?,
            connections: all(&self.connections)?,
            grid,
            codec: codec::compare(CODEC_ROUNDS)?,
            call_future_bytes: call_future_bytes()?,
        })
    }
}

/// How often, and for how long.
#[derive(Clone, Copy)]
struct Effort {
    rounds: usize,
    millis: u64,
}

/// Makes contests.
struct Plan<'a> {
    server: SocketAddr,
    /// The published transport of the same name, where it could be built.
    published: Option<Program>,
    options: &'a RunOptions,
}

impl Plan<'_> {
    /// For what a target is judged by.
    const fn judged(&self) -> Effort {
        Effort { rounds: self.options.rounds(), millis: self.options.millis() }
    }

    /// For what only shows how a figure grows.
    fn informative(&self) -> Effort {
        let Effort { rounds, millis } = self.judged();
        Effort { rounds: rounds.min(INFORMATIVE_ROUNDS), millis: millis.min(INFORMATIVE_MILLIS) }
    }

    fn clients(&self) -> Outcome<[Program; 3]> {
        let [raw, raw_full, ours] = CLIENTS.map(Program::kind);
        Ok([raw?, raw_full?, ours?])
    }

    fn contest(&self, cell: Cell, programs: &[Program], effort: Effort) -> Contest {
        let extra = Extra { millis: effort.millis, ..Extra::default() };
        let contender = |program: &Program| Contender::new(program.clone(), self.server, extra);
        Contest {
            what: "transports",
            cell,
            contenders: programs.iter().map(contender).collect(),
            rounds: effort.rounds,
        }
    }

    /// The clients side by side, each where it can be.
    fn grid_cell(&self, cell: Cell, effort: Effort) -> Outcome<Contest> {
        let mut programs = self.clients()?.to_vec();
        if cell.in_flight == 1 {
            programs.push(Program::kind("ping-pong")?);
        }
        programs.extend(self.published.clone());
        Ok(self.contest(cell, &programs, effort))
    }

    /// The clients in the program that counts.
    fn counting(&self, cell: Cell, rounds: usize) -> Outcome<Contest> {
        let programs = CLIENTS.into_iter().map(Program::counting).collect::<Outcome<Vec<_>>>()?;
        let contest = self.contest(cell, &programs, Effort { rounds, ..self.informative() });
        Ok(Contest { what: "writes and allocations", ..contest })
    }

    fn counted(&self) -> Outcome<Vec<Contest>> {
        let contest = |in_flight| self.counting(Cell { in_flight, ..MOST }, COUNTING_ROUNDS);
        [16, MOST.in_flight].map(contest).into_iter().collect()
    }

    fn held(&self) -> Outcome<Vec<(usize, Contest)>> {
        let held = |pending| {
            let mut contest = Contest { what: "heap of what waits", ..self.counting(MOST, 1)? };
            for contender in &mut contest.contenders {
                contender.extra.pending = pending;
            }
            Ok((pending, contest))
        };
        [10_000, MANY_PENDING].map(held).into_iter().collect()
    }

    fn crowded(&self) -> Outcome<Contest> {
        let ours = Program::kind(OURS)?;
        let mut contest = self.contest(MOST, &[ours.clone(), ours], self.judged());
        contest.what = "beside what waits";
        let as_what = [(ALONE, 1), (CROWDED, MANY_PENDING)];
        for (contender, (name, pending)) in contest.contenders.iter_mut().zip(as_what) {
            name.clone_into(&mut contender.name);
            contender.extra.pending = pending;
        }
        Ok(contest)
    }
}

/// The cells of the grid that no target asks for.
fn informative_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for workers in WORKERS {
        for body in BODIES {
            cells.extend(IN_FLIGHT.map(|in_flight| Cell::new(in_flight, body, workers)));
        }
    }
    cells.retain(|cell| !CELLS.contains(cell));
    cells
}

pub(crate) const OURS: &str = "ours";
const CLIENTS: [&str; 3] = ["raw", "raw-full", OURS];
pub(crate) const IN_FLIGHT: [usize; 4] = [1, 16, 256, 4_096];
pub(crate) const BODIES: [usize; 3] = [SMALL, 1_024, 16_384];
pub(crate) const WORKERS: [usize; 2] = [1, 2];
/// The body of most comparisons, in bytes.
pub(crate) const SMALL: usize = 128;
/// Requests held back to see whether they cost those that are not.
pub(crate) const MANY_PENDING: usize = 100_000;
pub(crate) const ALONE: &str = "ours, 1 pending";
pub(crate) const CROWDED: &str = "ours, 100 000 pending";
pub(crate) const INFORMATIVE_ROUNDS: usize = 5;
pub(crate) const INFORMATIVE_MILLIS: u64 = 300;
/// Counts hardly differ from run to run.
const COUNTING_ROUNDS: usize = 3;
const CODEC_ROUNDS: usize = 101;
