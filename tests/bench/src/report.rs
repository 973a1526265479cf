//! The page of figures, in Markdown.

mod growth;

use std::{
    fmt::{Display, Write},
    fs,
    process::Command,
    thread,
};

use crate::{
    codec::Comparison,
    producers,
    rounds::{Cell, Figure, Rounds},
    run::Measured,
    spread::Spread,
    targets::{self, CELLS, number},
    transport::{ALONE, BODIES, CROWDED, Figures, INFORMATIVE_MILLIS, INFORMATIVE_ROUNDS, WORKERS},
};

/// Everything that was measured.
pub(crate) fn page(measured: &Measured) -> String {
    let Measured { transport, producers, rounds, millis } = measured;
    let mut page = Page(String::new());
    page.line("# Figures of the benchmark\n");
    page.line(
        "Written by `tests/bench`; what is measured and how is in [performance.md](../performance.md).\n",
    );
    page.line(format_args!("{}\n", machine()));
    let judged = CELLS.map(|cell| cell.to_string()).join("; ");
    page.line(format_args!(
        "Medians of alternating rounds, quartiles in brackets: {rounds} of {millis} ms each where a target is judged by \
         it ({judged}; half load; 100 000 pending), {} of {} ms elsewhere. Ratios are taken within each round. A target is \
         judged by the median as it is shown.\n",
        INFORMATIVE_ROUNDS.min(*rounds),
        INFORMATIVE_MILLIS.min(*millis),
    ));
    page.line("## Targets\n");
    page.line(targets::table(&measured.targets()));
    page.line(growth::section(transport));
    page.line(paced(transport));
    page.pending(transport);
    page.counts(transport);
    page.codec(&transport.codec);
    page.line("");
    if let Some(producers) = producers {
        page.line(producers::section(producers));
    }
    page.grid(transport);
    page.processes(transport);
    page.0
}

/// Each client at half of its own full rate.
pub(crate) fn paced(figures: &Figures) -> String {
    let mut page = Page(String::new());
    page.line("## At half of its own full rate (open loop, 256 callers, 128 bytes, 1 worker)\n");
    page.line("Times are taken from when a request was due; the pacing itself adds up to 0.2 ms to each.\n");
    page.columns(&["client", "requests/s", "CPU us/request", "p50 us", "p99 us"]);
    let rounds = &figures.paced;
    for client in rounds.clients() {
        let columns = [Figure::Rate, Figure::Cpu, Figure::P50, Figure::P99];
        let columns = columns.map(|figure| shown(rounds.figure(client, figure)));
        page.line(format_args!("| {client} | {} |", columns.join(" | ")));
    }
    page.0
}

struct Page(String);

impl Page {
    fn line(&mut self, line: impl Display) {
        // Writing to a text does not fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn heading(&mut self, title: &str, columns: &[&str]) {
        self.line(format_args!("## {title}\n"));
        self.columns(columns);
    }

    fn columns(&mut self, columns: &[&str]) {
        self.line(format_args!("| {} |", columns.join(" | ")));
        self.line(format_args!("|{}", "---|".repeat(columns.len())));
    }

    fn grid(&mut self, figures: &Figures) {
        self.line("## The grid\n");
        for workers in WORKERS {
            for body in BODIES {
                let here = |rounds: &&Rounds| (rounds.cell.workers, rounds.cell.body) == (workers, body);
                self.line(format_args!("### Bodies of {body} bytes, workers: {workers}\n"));
                self.columns(&with_first("in flight"));
                for rounds in figures.grid.iter().filter(here) {
                    self.clients(rounds.cell.in_flight, rounds);
                }
                self.line("");
            }
        }
    }

    /// A row for each client under the same load.
    fn clients(&mut self, first: usize, rounds: &Rounds) {
        for client in rounds.clients() {
            let figure = |figure| shown(rounds.figure(client, figure));
            let ratio = |figure| shown(rounds.ratio(client, "raw", figure));
            self.line(format_args!(
                "| {first} | {client} | {} | {} | {} | {} | {} | {} |",
                figure(Figure::Rate),
                figure(Figure::Cpu),
                figure(Figure::P50),
                figure(Figure::P99),
                ratio(Figure::Rate),
                ratio(Figure::Cpu),
            ));
        }
    }

    fn processes(&mut self, figures: &Figures) {
        self.heading(
            "Whole processes (1 worker)",
            &["body", "in flight", "client", "start to first answer ms", "threads", "peak memory MiB"],
        );
        for rounds in figures.grid.iter().filter(|rounds| rounds.cell.workers == 1) {
            for client in rounds.clients() {
                let figure = |figure| shown(rounds.figure(client, figure));
                let (first, threads, peak) =
                    (figure(Figure::First), figure(Figure::Threads), figure(Figure::Peak));
                let Cell { body, in_flight, .. } = rounds.cell;
                self.line(format_args!("| {body} | {in_flight} | {client} | {first} | {threads} | {peak} |"));
            }
        }
        self.line("");
    }

    fn counts(&mut self, figures: &Figures) {
        self.heading(
            "Counts (128 bytes, 1 worker)",
            &["in flight", "client", "socket writes per request", "allocations per request"],
        );
        for rounds in &figures.counted {
            for client in rounds.clients() {
                let figure = |figure| shown(rounds.figure(client, figure));
                let (writes, allocations) = (figure(Figure::Writes), figure(Figure::Allocations));
                self.line(format_args!(
                    "| {} | {client} | {writes} | {allocations} |",
                    rounds.cell.in_flight
                ));
            }
        }
        self.line("");
    }

    fn pending(&mut self, figures: &Figures) {
        self.heading("Requests that wait for an answer", &["pending", "client", "heap bytes each"]);
        for (pending, rounds) in &figures.held {
            for client in rounds.clients() {
                let heap = shown(rounds.figure(client, Figure::HeapPerPending));
                self.line(format_args!("| {pending} | {client} | {heap} |"));
            }
        }
        self.line("\nWhat they cost the 256 requests that are answered beside them:\n");
        self.columns(&["client", "requests/s", "CPU us/request", "CPU ÷ with 1 pending"]);
        let rounds = &figures.crowded;
        for client in [ALONE, CROWDED] {
            let (rate, cpu) = (rounds.figure(client, Figure::Rate), rounds.figure(client, Figure::Cpu));
            let ratio = shown(rounds.ratio(client, ALONE, Figure::Cpu));
            self.line(format_args!("| {client} | {} | {} | {ratio} |", shown(rate), shown(cpu)));
        }
        self.line("");
    }

    fn codec(&mut self, comparisons: &[Comparison]) {
        self.heading("Codec against code made by hand", &["operation", "codec ns", "by hand ns", "ratio"]);
        for Comparison { operation, codec, by_hand, ratio } in comparisons {
            let [codec, by_hand, ratio] = [codec, by_hand, ratio].map(|spread| shown(Some(*spread)));
            self.line(format_args!("| {operation} | {codec} | {by_hand} | {ratio} |"));
        }
    }
}

fn with_first(first: &'static str) -> [&'static str; 8] {
    [first, "client", "requests/s", "CPU us/request", "p50 us", "p99 us", "rate ÷ raw", "CPU ÷ raw"]
}

/// Median and quartiles; nothing where there is nothing.
pub(crate) fn shown(spread: Option<Spread>) -> String {
    spread.map_or_else(String::new, |Spread { median, lower_quartile, upper_quartile, .. }| {
        format!("{} [{}, {}]", number(median), number(lower_quartile), number(upper_quartile))
    })
}

/// What the figures were taken on.
fn machine() -> String {
    let cores = thread::available_parallelism().map_or_else(|_| "?".to_owned(), |cores| cores.to_string());
    let processor = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let processor = processor.unwrap_or_else(|| "processor unknown".to_owned());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_else(|_| "unknown".to_owned());
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map_or_else(
        |_| "rustc unknown".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    format!("Machine: {cores} cores ({processor}), Linux {}, {compiler}.", kernel.trim())
}
