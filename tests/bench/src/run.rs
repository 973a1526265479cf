//! The whole benchmark: every cell of the grid, and what is measured beside it.

use std::fs;

use crate::{
    Outcome,
    args::RunOptions,
    clients::call_future_bytes,
    codec::{self, Comparison},
    foreign, plot,
    process::{Extra, MOST_CONNECTIONS, Program, Server},
    producers::{self, Producers},
    report,
    rounds::{Cell, Figure, Rounds},
    spread::Spread,
    targets::{self, Target},
};

/// Everything that was measured in one run.
#[derive(Debug)]
pub(crate) struct Figures {
    /// The grid.
    pub(crate) grid: Vec<Rounds>,
    /// Runs that count writes and allocations; their times mean nothing.
    pub(crate) counted: Vec<Rounds>,
    /// Runs with so many requests held back, that count what each holds.
    pub(crate) held: Vec<(usize, Rounds)>,
    /// The processor time of a request with [`MANY_PENDING`] others waiting over that with one.
    pub(crate) crowded: Option<Spread>,
    /// Each client at half of its own rate.
    pub(crate) paced: Vec<Rounds>,
    /// The callers spread over ever more connections.
    pub(crate) connections: Vec<Rounds>,
    pub(crate) codec: Vec<Comparison>,
    pub(crate) call_future_bytes: usize,
    /// The producers at a real broker; `None` where they were left out.
    pub(crate) producers: Option<Producers>,
    pub(crate) rounds: usize,
    pub(crate) millis: u64,
}

/// Measures, and writes tables and plot, or prints the targets of a quick run.
pub(crate) fn run(options: &RunOptions) -> Outcome<()> {
    let rounds = if options.quick { QUICK_ROUNDS } else { options.rounds };
    let bench =
        Bench { server: Server::start()?, published: foreign::published_transport(), options, rounds };
    let figures = bench.measure()?;
    println!("{}", targets::table(&figures.targets()));
    if options.quick {
        return Ok(());
    }
    for path in [&options.figures, &options.plot] {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
    }
    fs::write(&options.figures, report::page(&figures))?;
    plot::draw(&figures, &options.plot)
}

impl Figures {
    /// What transport and producer are held to.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let mut targets = targets::of_transport(self);
        targets.extend(self.producers.iter().flat_map(producers::targets));
        targets
    }
}

struct Bench<'a> {
    server: Server,
    /// The published transport of the same name, where it could be built.
    published: Option<Program>,
    options: &'a RunOptions,
    rounds: usize,
}

impl Bench<'_> {
    fn measure(&self) -> Outcome<Figures> {
        let cells = if self.options.quick { targets::CELLS.to_vec() } else { all_cells() };
        let grid = cells.into_iter().map(|cell| self.grid_cell(cell)).collect::<Outcome<Vec<_>>>()?;
        let counting = ["raw", "raw-full", "ours"].map(Program::counting);
        let counting = counting.into_iter().collect::<Outcome<Vec<_>>>()?;
        let counted = [16, 256].map(|in_flight| {
            self.rounds(Cell::new(in_flight, SMALL, 1), &counting, COUNTING_ROUNDS, self.extra())
        });
        let held = [10_000, MANY_PENDING].map(|pending| {
            let extra = Extra { pending, ..self.extra() };
            Ok((pending, self.rounds(Cell::new(256, SMALL, 1), &counting, 1, extra)?))
        });
        let paced = if self.options.quick { Vec::new() } else { self.paced(&grid)? };
        let connections = if self.options.quick { Vec::new() } else { self.connections()? };
        Ok(Figures {
            grid,
            counted: counted.into_iter().collect::<Outcome<_>>()?,
            held: held.into_iter().collect::<Outcome<_>>()?,
            crowded: self.crowded()?,
            paced,
            connections,
            codec: codec::compare(CODEC_ROUNDS)?,
            call_future_bytes: call_future_bytes()?,
            producers: (!self.options.transport_only)
                .then(|| producers::measure(self.options.producers()))
                .transpose()?,
            rounds: self.rounds,
            millis: self.options.millis,
        })
    }

    fn extra(&self) -> Extra {
        Extra { millis: self.options.millis, ..Extra::default() }
    }

    fn rounds(&self, cell: Cell, programs: &[Program], rounds: usize, extra: Extra) -> Outcome<Rounds> {
        eprintln!("{cell:?}");
        Rounds::run(&self.server, cell, programs, rounds, extra)
    }

    /// The clients side by side, each where it can be.
    fn grid_cell(&self, cell: Cell) -> Outcome<Rounds> {
        let mut programs =
            ["raw", "raw-full", "ours"].map(Program::kind).into_iter().collect::<Outcome<Vec<_>>>()?;
        if cell.in_flight == 1 {
            programs.push(Program::kind("ping-pong")?);
        }
        programs.extend(self.published.clone());
        self.rounds(cell, &programs, self.rounds, self.extra())
    }

    fn crowded(&self) -> Outcome<Option<Spread>> {
        let ours = [Program::kind("ours")?];
        let mut ratios = Vec::new();
        for _ in 0..self.rounds {
            let cpu = |pending| {
                let extra = Extra { pending, ..self.extra() };
                let rounds = self.rounds(Cell::new(256, SMALL, 1), &ours, 1, extra)?;
                rounds.figure("ours", Figure::Cpu).map(|cpu| cpu.median).ok_or("no figure".into())
            };
            let few: Outcome<f64> = cpu(1);
            ratios.push(cpu(MANY_PENDING)? / few?);
        }
        Ok(Spread::of(ratios))
    }

    fn paced(&self, grid: &[Rounds]) -> Outcome<Vec<Rounds>> {
        let cell = Cell::new(256, SMALL, 1);
        let full = grid
            .iter()
            .find(|rounds| rounds.cell == cell)
            .ok_or("the grid lacks the cell of most targets")?;
        let half_load = |name| {
            let most = full.figure(name, Figure::Rate).ok_or("no rate")?.median;
            let extra = Extra { rate: Some((most / 2.0) as u64), ..self.extra() };
            self.rounds(cell, &[Program::kind(name)?], self.rounds, extra)
        };
        ["raw", "raw-full", "ours"].map(half_load).into_iter().collect()
    }

    fn connections(&self) -> Outcome<Vec<Rounds>> {
        let programs =
            ["raw", "raw-full", "ours"].map(Program::kind).into_iter().collect::<Outcome<Vec<_>>>()?;
        let with = |connections| {
            let cell = Cell { connections, ..Cell::new(256, SMALL, 1) };
            self.rounds(cell, &programs, self.rounds, self.extra())
        };
        [1, 4, 16, MOST_CONNECTIONS].map(with).into_iter().collect()
    }
}

fn all_cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for workers in WORKERS {
        for body in BODIES {
            cells.extend(IN_FLIGHT.map(|in_flight| Cell::new(in_flight, body, workers)));
        }
    }
    cells
}

pub(crate) const IN_FLIGHT: [usize; 4] = [1, 16, 256, 4_096];
pub(crate) const BODIES: [usize; 3] = [SMALL, 1_024, 16_384];
pub(crate) const WORKERS: [usize; 2] = [1, 2];
/// The body of most comparisons, in bytes.
pub(crate) const SMALL: usize = 128;
/// Requests held back to see whether they cost those that are not.
pub(crate) const MANY_PENDING: usize = 100_000;
const QUICK_ROUNDS: usize = 3;
/// Counts hardly differ from run to run.
const COUNTING_ROUNDS: usize = 3;
const CODEC_ROUNDS: usize = 101;
