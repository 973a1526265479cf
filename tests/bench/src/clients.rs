//! The clients: one module per kind, each as its users would write it.

mod ours;
mod ping_pong;
mod pipe;
mod producer;
mod raw;
mod raw_full;
mod raw_producer;
mod sender;

pub(crate) use self::ours::call_future_bytes;
use clap::ValueEnum;
use tokio::runtime::Runtime;

use crate::{
    HeapProbe, Outcome, ResultLine,
    args::Plan,
    load::{self, Caller, Multiplexed},
    paced, pending,
};

/// Which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Header bytes made once and patched with the opaque, batched writes, opaque to oneshot.
    Raw,
    /// As raw, with the header encoded, the answer's header parsed and a deadline timer in each call.
    RawFull,
    /// One task that writes and then reads.
    PingPong,
    /// `rocketmq_transport::Transport`.
    Ours,
    /// `rocketmq_client::Producer`; the server is a name server.
    Producer,
    /// As raw, with real sends of a key each, and the answer's fields read; the server is a broker.
    RawProducer,
}

impl Kind {
    /// As the command line names it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::RawFull => "raw-full",
            Self::PingPong => "ping-pong",
            Self::Ours => "ours",
            Self::Producer => "producer",
            Self::RawProducer => "raw-producer",
        }
    }
}

/// Measures one client and prints its line.
pub(crate) fn run(kind: Kind, plan: Plan, heap: Option<HeapProbe>) -> Outcome<()> {
    let process = Process { name: kind.name(), runtime: load::runtime(&plan)?, plan, heap };
    let runtime = &process.runtime;
    let line = match kind {
        Kind::Raw => process.measure(&runtime.block_on(raw::Raw::connect(&process.plan))?)?,
        Kind::RawFull => process.measure(&runtime.block_on(raw_full::RawFull::connect(&process.plan))?)?,
        Kind::Ours => process.measure(&ours::Ours::each(&process.plan)?)?,
        Kind::PingPong => {
            let caller = runtime.block_on(ping_pong::PingPong::connect(&process.plan))?;
            process.closed(vec![caller])?
        }
        Kind::Producer => {
            let producer = runtime.block_on(async { producer::OurProducer::new(&process.plan) })?;
            process.closed(vec![producer; process.plan.cell.in_flight])?
        }
        Kind::RawProducer => {
            process.closed(runtime.block_on(raw_producer::RawProducer::connect(&process.plan))?)?
        }
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

/// What is the same for every client.
struct Process {
    name: &'static str,
    plan: Plan,
    heap: Option<HeapProbe>,
    runtime: Runtime,
}

impl Process {
    /// Measures callers that share connections, of which there is one in `connections` each.
    fn measure<C: Multiplexed + Sync>(&self, connections: &[C]) -> Outcome<ResultLine> {
        let Self { name, plan, heap, runtime } = self;
        let callers = connections.iter().cycle().cloned();
        if let Some(rate) = plan.rate {
            return paced::paced(name, plan, runtime, connections.to_vec(), rate);
        }
        let mut held = None;
        if plan.pending > 0 {
            let first = connections.first().ok_or("no connection")?;
            held = pending::hold(runtime, first, plan.pending, *heap)?;
        }
        let line = self.closed(callers.take(plan.cell.in_flight).collect())?;
        Ok(ResultLine { heap_per_pending: held, ..line })
    }

    fn closed<C: Caller>(&self, callers: Vec<C>) -> Outcome<ResultLine> {
        load::closed(self.name, &self.plan, self.heap, &self.runtime, callers)
    }
}
