//! The command line.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use bytes::Bytes;
use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::{broker::BrokerOptions, clients::Kind, rounds::Cell, server::ServerOptions};

/// The benchmark of the transport and of the producer.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answers frames until its standard input ends; prints its port first.
    Server(ServerOptions),
    /// Serves a name server and a broker until its standard input ends; prints their addresses first.
    Broker(BrokerOptions),
    /// Loads a server with one client and prints one line of JSON.
    Client {
        /// Which client.
        kind: Kind,
        #[command(flatten)]
        plan: Plan,
    },
    /// Measures everything in alternating rounds, and writes the tables and the plot.
    Run(RunOptions),
    /// Measures the producers alone, at a real Apache broker, and prints the targets and the figures.
    Producers(ProducerOptions),
    /// Measures two clients in turn, and prints the ratios of their figures.
    Pair {
        /// A client by its name, or the path of a program that takes the options of `client` and prints its line.
        first: String,
        /// Another.
        second: String,
        #[command(flatten)]
        cell: Cell,
        /// How often each is run.
        #[arg(long, default_value_t = 9)]
        pairs: usize,
        /// Milliseconds of the measured part of each run.
        #[arg(long, default_value_t = 500)]
        millis: u64,
    },
    /// Compares encoding and decoding with a writer and a parser made by hand.
    Codec {
        /// How many alternating rounds are made.
        #[arg(long, default_value_t = 101)]
        rounds: usize,
    },
}

/// What one measured process does.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Plan {
    /// The server; with several connections, the first of the addresses it listens on.
    #[arg(long)]
    pub(crate) server: SocketAddr,
    #[command(flatten)]
    pub(crate) cell: Cell,
    /// Milliseconds of load before the measured part.
    #[arg(long, default_value_t = 200)]
    pub(crate) warm_up_ms: u64,
    /// Milliseconds of the measured part.
    #[arg(long, default_value_t = 700)]
    pub(crate) millis: u64,
    /// Requests per second, made when they are due and not when others are answered; without it, callers ask again
    /// as soon as they have their answer.
    #[arg(long)]
    pub(crate) rate: Option<u64>,
    /// Requests that are never answered and wait beside those that are measured. The server must hold them.
    #[arg(long, default_value_t = 0)]
    pub(crate) pending: usize,
    /// Counts socket writes, which puts a counter between the client and its socket.
    #[arg(long)]
    pub(crate) count_writes: bool,
}

impl Plan {
    pub(crate) const fn warm_up(&self) -> Duration {
        Duration::from_millis(self.warm_up_ms)
    }

    pub(crate) const fn measured(&self) -> Duration {
        Duration::from_millis(self.millis)
    }

    /// What every request carries; clones share it.
    pub(crate) fn body(&self) -> Bytes {
        Bytes::from(vec![b'.'; self.cell.body])
    }

    /// Where each connection leads: the same port on one loopback address after another, so that each is a peer of
    /// its own.
    pub(crate) fn servers(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        (0..self.cell.connections).map(|place| match self.server.ip() {
            IpAddr::V4(first) => {
                let address = Ipv4Addr::from_bits(first.to_bits() + place as u32);
                SocketAddr::new(address.into(), self.server.port())
            }
            IpAddr::V6(_) => self.server,
        })
    }
}

/// How producers are measured.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct ProducerOptions {
    /// Three short rounds.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds at each number of requests in flight.
    #[arg(long, default_value_t = ROUNDS)]
    rounds: usize,
    /// Milliseconds of the measured part of each run.
    #[arg(long, default_value_t = PRODUCER_MILLIS)]
    millis: u64,
}

impl ProducerOptions {
    pub(crate) const fn rounds(&self) -> usize {
        if self.quick { QUICK_ROUNDS } else { self.rounds }
    }

    pub(crate) const fn millis(&self) -> u64 {
        if self.quick { QUICK_MILLIS } else { self.millis }
    }
}

/// How the whole benchmark is run.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct RunOptions {
    /// Three short rounds of what the targets ask for; prints the targets and writes nothing.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds of what a target is judged by. What only shows how figures grow takes at most five.
    #[arg(long, default_value_t = ROUNDS)]
    rounds: usize,
    /// Milliseconds of the measured part of each run; at most 300 where no target is judged.
    #[arg(long, default_value_t = 500)]
    millis: u64,
    /// Leaves out the producers, which need a JDK, Maven and a few minutes.
    #[arg(long)]
    pub(crate) transport_only: bool,
    /// Where the tables go.
    #[arg(long, default_value = "docs/performance/figures.md")]
    pub(crate) figures: PathBuf,
    /// Where the plot goes.
    #[arg(long, default_value = "docs/performance/throughput.svg")]
    pub(crate) plot: PathBuf,
}

impl RunOptions {
    pub(crate) const fn rounds(&self) -> usize {
        if self.quick { QUICK_ROUNDS } else { self.rounds }
    }

    pub(crate) const fn millis(&self) -> u64 {
        if self.quick { QUICK_MILLIS } else { self.millis }
    }

    /// How this has producers measured.
    pub(crate) const fn producers(&self) -> ProducerOptions {
        ProducerOptions { quick: self.quick, rounds: self.rounds, millis: PRODUCER_MILLIS }
    }
}

/// An odd number of alternating rounds has a median that was measured.
const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 3;
const QUICK_MILLIS: u64 = 200;
/// A broker is less even than the neutral server, so that each run takes longer.
const PRODUCER_MILLIS: u64 = 1_000;
