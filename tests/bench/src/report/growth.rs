//! How the cost of a request of ours grows with each of what it depends on.

use std::fmt::{Display, Write};

use super::shown;
use crate::{
    rounds::{Cell, Figure, Rounds},
    targets::{MOST, number},
    transport::{Figures, OURS},
};

/// One table for each, all else being that of [`MOST`].
pub(crate) fn section(figures: &Figures) -> String {
    let mut out =
        "## How cost grows\n\nOurs with 1 worker; 256 in flight, 128 bytes and 1 connection where the first \
                   column does not say otherwise. What is divided by the first row is the median.\n\n"
            .to_owned();
    let grid = |fits: fn(Cell) -> bool| {
        let mut rows = Vec::from_iter(figures.grid.iter().filter(|rounds| fits(rounds.cell)));
        rows.sort_by_key(|rounds| (rounds.cell.in_flight, rounds.cell.body));
        rows
    };
    let in_flight = grid(|cell| Cell { in_flight: MOST.in_flight, ..cell } == MOST);
    let bodies = grid(|cell| Cell { body: MOST.body, ..cell } == MOST);
    let connections = Vec::from_iter(&figures.connections);
    table(&mut out, "in flight", &in_flight, |cell| cell.in_flight);
    table(&mut out, "body bytes", &bodies, |cell| cell.body);
    table(&mut out, "connections", &connections, |cell| cell.connections);
    out
}

fn table<T: Display>(out: &mut String, first: &str, rows: &[&Rounds], key: fn(Cell) -> T) {
    let cpu = |rounds: &Rounds| rounds.figure(OURS, Figure::Cpu).map(|cpu| cpu.median);
    let least = rows.first().and_then(|rounds| cpu(rounds));
    let columns = [
        first,
        "requests/s",
        "CPU us/request",
        "÷ first row",
        "raw-full's CPU us/request",
        "CPU ÷ raw-full",
        "p50 us",
        "p99 us",
        "peak memory MiB",
    ];
    // Writing to a text does not fail.
    let _ = writeln!(out, "| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
    for rounds in rows {
        let ours = |figure| shown(rounds.figure(OURS, figure));
        let growth = cpu(rounds).zip(least).map_or_else(String::new, |(cpu, least)| number(cpu / least));
        let columns = [
            key(rounds.cell).to_string(),
            ours(Figure::Rate),
            ours(Figure::Cpu),
            growth,
            shown(rounds.figure("raw-full", Figure::Cpu)),
            shown(rounds.ratio(OURS, "raw-full", Figure::Cpu)),
            ours(Figure::P50),
            ours(Figure::P99),
            ours(Figure::Peak),
        ];
        let _ = writeln!(out, "| {} |", columns.join(" | "));
    }
    out.push('\n');
}
