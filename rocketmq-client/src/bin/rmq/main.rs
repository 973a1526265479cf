//! `rmq`: sends messages to Apache RocketMQ, and runs a broker in memory.
//!
//! Exit codes: 0 when everything asked for was done, 1 when some of it was not, 2 for a command line that cannot
//! be followed, 130 when a second interrupt ended it at once.

mod args;
mod broker;
mod fault;
mod in_flight;
mod input;
mod interrupt;
mod outcome;
mod produce;
mod report;
mod tally;

use std::{fmt::Display, process::ExitCode};

use clap::Parser as _;
use tracing_subscriber::filter::LevelFilter;

use crate::{
    args::{Cli, Subcommand},
    report::{Log, to_stderr},
};

/// Why a subcommand ended without doing what it was asked for.
#[derive(Debug)]
enum Failure {
    /// Nothing was done, since the command line asks for something impossible.
    Usage(String),
    /// It failed on the way.
    Run(String),
}

impl Failure {
    fn usage(reason: impl Display) -> Self {
        Self::Usage(reason.to_string())
    }

    fn run(reason: impl Display) -> Self {
        Self::Run(reason.to_string())
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let log = log_to_stderr(cli.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(Failure::run(format_args!("the runtime cannot be started: {error}")))),
    };
    let ended = runtime.block_on(async {
        match cli.command {
            Subcommand::Broker(args) => broker::run(args).await,
            Subcommand::Produce(args) => produce::run(*args, log).await,
        }
    });
    runtime.shutdown_background();
    end(ended)
}

fn end(ended: Result<ExitCode, Failure>) -> ExitCode {
    let (reason, code) = match ended {
        Ok(code) => return code,
        Err(Failure::Usage(reason)) => (reason, USAGE),
        Err(Failure::Run(reason)) => (reason, NOT_DONE),
    };
    to_stderr(&format!("error: {reason}"));
    ExitCode::from(code)
}

/// The client's log, silent unless it is asked for: what the user must know is in the report.
fn log_to_stderr(verbose: u8) -> Log {
    let level = match verbose {
        0 => return Log::Off,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .init();
    Log::On
}

/// Some of what was asked for was not done.
const NOT_DONE: u8 = 1;
/// The command line cannot be followed.
const USAGE: u8 = 2;
