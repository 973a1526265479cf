//! Two clients in turn, for whoever changes one of them.

use crate::{
    Outcome,
    process::{Extra, Program, Server},
    progress::Progress,
    rounds::{Cell, Contender, Contest, Figure},
    spread::Spread,
};

/// Runs `first` and `second` in turn, and prints what each gave and the ratio of the two.
pub(crate) fn print(first: &str, second: &str, cell: Cell, pairs: usize, millis: u64) -> Outcome<()> {
    let server = Server::start()?;
    let extra = Extra { millis, ..Extra::default() };
    // A client may be compared with itself.
    let names = [format!("1:{first}"), format!("2:{second}")];
    let contender = |(name, program)| {
        Ok(Contender { name, ..Contender::new(Program::named(program)?, server.address(), extra) })
    };
    let contenders = names.iter().cloned().zip([first, second]).map(contender).collect::<Outcome<_>>()?;
    let rounds = Contest { what: "a pair", cell, contenders, rounds: pairs }.run(&Progress::hidden())?;
    let [first, second] = &names;
    println!("{cell}; medians of {pairs} pairs, quartiles in brackets");
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
