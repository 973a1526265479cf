//! What a measured process says of itself. The programs around the published crates include this file too.

use serde::{Deserialize, Serialize};

/// The one line of JSON that a measured process prints on its standard output. Times and counts are of
/// the measured part alone, after the warm-up.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResultLine {
    /// Which client, as the command line names it.
    pub client: String,
    /// Requests that waited for an answer at the same time.
    pub in_flight: usize,
    /// Bytes of each body.
    pub body: usize,
    /// Worker threads of the runtime.
    pub workers: usize,
    /// Requests answered.
    pub requests: u64,
    /// How long they took together.
    pub wall_ns: u64,
    /// The processor time of the whole process, user and system.
    pub cpu_ns: u64,
    /// The median time from a request to its answer.
    pub p50_ns: u64,
    /// The time within which 99 of 100 were answered.
    pub p99_ns: u64,
    /// Writes to the socket; only where they were counted.
    pub writes: Option<u64>,
    /// Allocations, growing ones included; only where they were counted.
    pub allocations: Option<u64>,
    /// Threads of the process at the end of the measured part.
    pub threads: u64,
    /// The most memory that was resident at any time of the process, in bytes.
    pub peak_rss_bytes: u64,
    /// From the start of the process to its first answer; only where the starter has told when that was, in
    /// its environment.
    pub first_ns: Option<u64>,
    /// Bytes of heap for each request that waits for an answer, its task included and its body shared; only where
    /// requests were held back and allocations counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_per_pending: Option<f64>,
}
