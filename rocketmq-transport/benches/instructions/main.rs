//! Counts the instructions of the hot operations and compares them with the figures checked in.
//!
//! `tests/instructions` builds and starts it as the figures ask for. Each operation is performed by this same program
//! under callgrind, in two runs of different counts; their difference, divided by that of the counts, is what one
//! operation takes, since set-up and exit are the same in both.
//!
//! What made the counts differ from run to run is held still: time is paused, one thread does everything, and the
//! environment and the program's name are the same everywhere, so that memory is laid out alike. What is left are the
//! seeds of the hash maps whose keys come from outside, which cost the same whatever they are, and tokio's choice of
//! the branch of a `select!` that is polled first, which falls into the set-up.

mod callgrind;
mod figures;
mod operations;

use std::{env, error::Error, fs, path::Path, process::ExitCode};

use self::{
    callgrind::{Outcome, count_each, libc},
    figures::{Figure, Figures},
    operations::{OPERATIONS, Operation},
};

fn main() -> ExitCode {
    // Cargo adds this one to what it is given.
    let arguments = env::args().skip(1).filter(|argument| argument != "--bench").collect::<Vec<_>>();
    let arguments = arguments.iter().map(String::as_str).collect::<Vec<_>>();
    let done = match *arguments {
        [] => check(),
        ["run", name, count] => perform(name, count),
        _ => Err(usage()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Counts everything, and compares it with the figures or writes them anew.
fn check() -> Outcome<()> {
    let counted = count_all()?;
    let path = Path::new(FIGURES);
    if env::var_os("UPDATE_FIGURES").is_some() {
        fs::write(path, counted.to_string())?;
        println!("written: {}", path.display());
        return Ok(());
    }
    let expected = fs::read_to_string(path)?.parse::<Figures>()?;
    if expected.machine != counted.machine {
        println!("not compared: the figures are of {}, this is {}", expected.machine, counted.machine);
        return Ok(());
    }
    if expected.libc != counted.libc {
        println!("the figures are of {}, this is {}: its part is not compared", expected.libc, counted.libc);
    }
    let differences = figures::compare(&expected, &counted);
    if differences.is_empty() {
        return Ok(());
    }
    let lines = differences.iter().map(|difference| format!("  {difference}\n")).collect::<String>();
    Err(format!(
        "instructions per operation:\n{lines}\
        Undo what raised a count, or write down the new figures, so that the next change is held to them:\n  \
        UPDATE_FIGURES=1 tests/instructions"
    )
    .into())
}

fn count_all() -> Outcome<Figures> {
    let mut figures = Figures { machine: env::consts::ARCH.into(), libc: libc(), operations: Vec::new() };
    println!("{:<24} {:>8} {:>10}", "operation", "program", "with libc");
    for operation in OPERATIONS {
        let figure = count(operation)?;
        println!("{:<24} {:>8} {:>10}", figure.operation, figure.program, figure.whole);
        figures.operations.push(figure);
    }
    Ok(figures)
}

/// The instructions of one operation.
fn count(operation: &Operation) -> Outcome<Figure> {
    let [few, many] = count_each(operation.name, operation.counts)?;
    let performed = operation.counts[1] - operation.counts[0];
    let each = |few: u64, many: u64| many.saturating_sub(few).saturating_add(performed / 2) / performed;
    Ok(Figure {
        operation: operation.name.into(),
        program: each(few.program, many.program),
        whole: each(few.whole, many.whole),
    })
}

fn perform(name: &str, count: &str) -> Outcome<()> {
    let operation = OPERATIONS.iter().find(|operation| operation.name == name);
    let operation = operation.ok_or_else(usage)?;
    (operation.perform)(count.parse()?);
    Ok(())
}

fn usage() -> Box<dyn Error> {
    let names = OPERATIONS.iter().map(|operation| format!("  {}\n", operation.name)).collect::<String>();
    format!("usage: instructions [run OPERATION COUNT], with one of the operations\n{names}").into()
}

const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/figures.txt");
