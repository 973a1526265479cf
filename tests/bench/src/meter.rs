//! What is read of the system before and after the measured part.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

use crate::system::process_cpu_ns;

/// What the process has asked of its heap so far.
#[derive(Clone, Copy, Debug)]
pub struct HeapUse {
    /// Allocations, growing ones included.
    pub allocations: u64,
    /// Bytes asked for and not given back.
    pub live_bytes: i64,
}

/// Reads the counters of the allocator.
pub type HeapProbe = fn() -> HeapUse;

/// Socket writes of this process, where they are counted.
pub(crate) static WRITES: AtomicU64 = AtomicU64::new(0);

/// The counters at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    at: Instant,
    cpu_ns: u64,
    writes: u64,
    allocations: Option<u64>,
}

/// What happened between two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) wall_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) writes: u64,
    pub(crate) allocations: Option<u64>,
}

impl Reading {
    pub(crate) fn take(heap: Option<HeapProbe>) -> Self {
        Self {
            cpu_ns: process_cpu_ns(),
            writes: WRITES.load(Ordering::Relaxed),
            allocations: heap.map(|probe| probe().allocations),
            at: Instant::now(),
        }
    }

    pub(crate) fn spent_until(&self, later: &Self) -> Spent {
        Spent {
            wall_ns: (later.at - self.at).as_nanos() as u64,
            cpu_ns: later.cpu_ns - self.cpu_ns,
            writes: later.writes - self.writes,
            allocations: later.allocations.zip(self.allocations).map(|(later, earlier)| later - earlier),
        }
    }
}
