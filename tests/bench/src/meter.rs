//! What is read of the system before and after the measured part.

use std::{
    env, fs,
    sync::atomic::{AtomicU64, Ordering},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

use crate::{Outcome, line::STARTED_UNIX_NS};

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

/// User and system time of all threads: the sum that `getrusage` gives, without its rounding to microseconds.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How many threads the process has now, and the most memory it has had resident, in bytes.
pub(crate) fn threads_and_peak() -> Outcome<(u64, u64)> {
    let status = fs::read_to_string("/proc/self/status")?;
    let number = |name: &str| {
        let rest = status.lines().find_map(|line| line.strip_prefix(name));
        let word = rest.and_then(|rest| rest.split_whitespace().next());
        word.and_then(|word| word.parse::<u64>().ok())
            .ok_or_else(|| format!("/proc/self/status has no {name}"))
    };
    Ok((number("Threads:")?, number("VmHWM:")? * 1_024))
}

/// Nanoseconds since the process was started, where its starter has said when that was.
pub(crate) fn since_start_ns() -> Option<u64> {
    let started = env::var(STARTED_UNIX_NS).ok()?.parse::<u64>().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    (now.as_nanos() as u64).checked_sub(started)
}
