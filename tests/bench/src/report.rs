//! The page of figures, in Markdown.

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
    run::{BODIES, Figures, WORKERS},
    spread::Spread,
    targets::{self, number},
};

/// Everything that was measured.
pub(crate) fn page(figures: &Figures) -> String {
    let Figures { rounds, millis, .. } = figures;
    let mut page = Page(String::new());
    page.line("# Figures of the benchmark\n");
    page.line(
        "Written by `tests/bench`; what is measured and how is in [performance.md](../performance.md).\n",
    );
    page.line(format_args!("{}\n", machine()));
    page.line(format_args!(
        "Medians of {rounds} alternating rounds of {millis} ms each, quartiles in brackets. Ratios are taken within \
         each round. A target is judged by the median as it is shown.\n"
    ));
    page.line("## Targets\n");
    page.line(targets::table(&figures.targets()));
    page.grid(figures);
    page.beside_the_grid(figures);
    page.processes(figures);
    page.counts(figures);
    page.codec(&figures.codec);
    if let Some(producers) = &figures.producers {
        page.line("");
        page.line(producers::section(producers));
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

    fn beside_the_grid(&mut self, figures: &Figures) {
        self.heading(
            "Spread over connections (256 in flight, 128 bytes, 1 worker)",
            &with_first("connections"),
        );
        for rounds in &figures.connections {
            self.clients(rounds.cell.connections, rounds);
        }
        self.line("");
        self.line("## At half of its own full rate (open loop, 128 bytes, 1 worker)\n");
        self.line(
            "Times are taken from when a request was due; the pacing itself adds up to 0.2 ms to each.\n",
        );
        self.columns(&["client", "requests/s", "CPU us/request", "p50 us", "p99 us"]);
        for rounds in &figures.paced {
            for client in rounds.clients() {
                let figure = |figure| shown(rounds.figure(client, figure));
                let (rate, cpu) = (figure(Figure::Rate), figure(Figure::Cpu));
                let (p50, p99) = (figure(Figure::P50), figure(Figure::P99));
                self.line(format_args!("| {client} | {rate} | {cpu} | {p50} | {p99} |"));
            }
        }
        self.line("");
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
        self.heading("Requests that wait for an answer", &["pending", "client", "heap bytes each"]);
        for (pending, rounds) in &figures.held {
            for client in rounds.clients() {
                let heap = shown(rounds.figure(client, Figure::HeapPerPending));
                self.line(format_args!("| {pending} | {client} | {heap} |"));
            }
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
