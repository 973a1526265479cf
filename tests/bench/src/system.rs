//! What a measured process reads of the system. The programs around the published crates, which live in a workspace of
//! their own, include this file too.

use std::{
    env, fs,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::time::{ClockId, clock_gettime};

use crate::Outcome;

/// User and system time of all threads: the sum that `getrusage` gives, without its rounding to microseconds.
pub(crate) fn process_cpu_ns() -> u64 {
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

/// The environment variable in which the orchestrator tells a process when it started it, in nanoseconds since the
/// Unix epoch.
pub(crate) const STARTED_UNIX_NS: &str = "BENCH_STARTED_UNIX_NS";
