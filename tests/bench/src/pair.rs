//! Two clients in turn, for whoever changes one of them.

use crate::{
    Outcome,
    process::{Extra, Program, Server},
    rounds::{Cell, Figure, Rounds},
    spread::Spread,
};

/// Runs `first` and `second` in turn, and prints what each gave and the ratio of the two.
pub(crate) fn print(first: &str, second: &str, cell: Cell, pairs: usize, millis: u64) -> Outcome<()> {
    let server = Server::start()?;
    let programs = [Program::named(first)?, Program::named(second)?];
    let rounds = Rounds::run(&server, cell, &programs, pairs, Extra { millis, ..Extra::default() })?;
    let names = rounds.clients();
    let (first, second) = (names.first().ok_or("no runs")?, names.last().ok_or("no runs")?);
    println!("{cell:?}, medians of {pairs} pairs, quartiles in brackets");
    for (label, figure) in SHOWN {
        let shown = |spread: Option<Spread>, digits| {
            spread.map_or_else(
                || "not measured".to_owned(),
                |Spread { median, lower_quartile, upper_quartile, .. }| {
                    format!("{median:.digits$} [{lower_quartile:.digits$} {upper_quartile:.digits$}]")
                },
            )
        };
        println!(
            "{label:<16} {first} {}  {second} {}  ratio {}",
            shown(rounds.figure(first, figure), 2),
            shown(rounds.figure(second, figure), 2),
            shown(rounds.ratio(first, second, figure), 3),
        );
    }
    Ok(())
}

const SHOWN: [(&str, Figure); 5] = [
    ("requests/s", Figure::Rate),
    ("CPU us/request", Figure::Cpu),
    ("p50 us", Figure::P50),
    ("p99 us", Figure::P99),
    ("p99/p50", Figure::Tail),
];
