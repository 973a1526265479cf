//! What the programs around the published crates share: their options, the closed loop, and the line they print. They
//! do as `bench client` does, so that its figures and theirs can stand side by side.

#[path = "../../src/line.rs"]
mod line;
mod load;
#[path = "../../src/system.rs"]
mod system;

use std::{
    error::Error,
    fmt::Display,
    net::SocketAddr,
    process::{self, ExitCode},
    time::Duration,
};

use clap::Parser;
use rocketmq_runtime::{RuntimeConfig, RuntimeOwner};

pub use crate::load::{Answered, closed};

/// What a step ends with; its text is for the person at the terminal.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The options of `bench client`.
#[derive(Clone, Debug, Parser)]
pub struct Options {
    /// The server.
    #[arg(long)]
    pub server: SocketAddr,
    /// How many callers wait for an answer at the same time.
    #[arg(long, default_value_t = 256)]
    pub in_flight: usize,
    /// Bytes of each request's body.
    #[arg(long, default_value_t = 128)]
    pub body: usize,
    /// Worker threads of the runtime.
    #[arg(long, default_value_t = 1)]
    pub workers: usize,
    /// Milliseconds of load before the measured part.
    #[arg(long, default_value_t = 200)]
    warm_up_ms: u64,
    /// Milliseconds of the measured part.
    #[arg(long, default_value_t = 700)]
    millis: u64,
    /// Connections that the callers are spread over; these clients have one to a server.
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Requests that are never answered and wait beside those that are measured; not supported.
    #[arg(long, default_value_t = 0)]
    pending: usize,
}

impl Options {
    /// Those of the command line; refuses what these programs do not do.
    fn from_command_line() -> Outcome<Self> {
        let options = Self::parse();
        if options.connections != 1 || options.pending != 0 {
            return Err("one connection, and nothing held back".into());
        }
        Ok(options)
    }

    pub(crate) const fn warm_up(&self) -> Duration {
        Duration::from_millis(self.warm_up_ms)
    }

    pub(crate) const fn measured(&self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// The runtime that the published crates insist on, with as many workers as were asked for.
    fn runtime(&self) -> Outcome<RuntimeOwner> {
        let config = RuntimeConfig { worker_threads: self.workers, ..RuntimeConfig::default() };
        let plan = RuntimeOwner::plan(config).map_err(|violation| format!("{violation:?}"))?;
        Ok(plan.build().map_err(text)?)
    }
}

/// Runs `measure` on the runtime that the command line asks for, and ends the process at once: the published clients' own
/// end takes seconds, and the line is out.
#[must_use]
pub fn run(measure: impl AsyncFnOnce(&Options, &RuntimeOwner) -> Outcome<()>) -> ExitCode {
    let measured = Options::from_command_line().and_then(|options| {
        let runtime = options.runtime()?;
        let measured = runtime.block_on(measure(&options, &runtime));
        // Its owner wants to be asked to end.
        drop(runtime.shutdown_background());
        measured
    });
    match measured {
        Ok(()) => process::exit(0),
        Err(error) => {
            eprintln!("published: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The text of an error whose type cannot be passed on.
pub fn text(error: impl Display) -> String {
    error.to_string()
}
