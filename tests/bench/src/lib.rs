//! The benchmark: one neutral server, and clients side by side, each in a process of its own.
//!
//! `bench server` answers frames and knows nothing of what they mean. `bench client <kind>` loads it and prints one
//! [`ResultLine`]. `bench run` and `bench pair` only start such processes, in alternation, and compare their lines,
//! so that a client in any language can stand among them.

mod args;
mod broker;
mod clients;
mod codec;
mod counting;
mod foreign;
mod line;
mod load;
mod meter;
mod paced;
mod pair;
mod pending;
mod plot;
mod process;
mod producers;
mod progress;
mod report;
mod rounds;
mod run;
mod server;
mod spread;
mod syscalls;
mod system;
mod targets;
mod transport;
mod wire;

use std::{error::Error, process::ExitCode};

use clap::Parser;

use crate::args::{Args, Command};
pub use crate::{
    line::ResultLine,
    meter::{HeapProbe, HeapUse},
};

/// What any step of the benchmark ends with; its text is for the person at the terminal.
pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Runs the command line. With a `heap` probe the process is one that counts, and its times mean nothing.
#[must_use]
pub fn main(heap: Option<HeapProbe>) -> ExitCode {
    let done = match Args::parse().command {
        Command::Server(options) => server::serve(&options),
        Command::Broker(options) => broker::serve(options),
        Command::Client { kind, plan } => clients::run(kind, plan, heap),
        Command::Run(options) => run::run(&options),
        Command::Producers(options) => producers::run(options),
        Command::Pair { first, second, cell, pairs, millis } => {
            pair::print(&first, &second, cell, pairs, millis)
        }
        Command::Codec { rounds } => codec::print(rounds),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
