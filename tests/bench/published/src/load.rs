//! The closed loop: callers that ask again as soon as they have their answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde::Serialize;
use tokio::time::sleep;

use crate::{
    Options, Outcome,
    meter::{process_cpu_ns, since_start_ns, threads_and_peak},
};

/// How a call ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// With its answer.
    Yes,
    /// The client's own admission refused it.
    Refused,
}

/// The line that `bench` reads.
#[derive(Debug, Serialize)]
struct Line<'a> {
    client: &'a str,
    in_flight: usize,
    body: usize,
    workers: usize,
    requests: u64,
    wall_ns: u64,
    cpu_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    writes: Option<u64>,
    allocations: Option<u64>,
    threads: u64,
    peak_rss_bytes: u64,
    first_ns: Option<u64>,
}

#[derive(Default)]
struct State {
    answered: AtomicU64,
    refused: AtomicU64,
    measuring: AtomicBool,
    stopped: AtomicBool,
}

/// Calls in a closed loop from as many tasks as are to be in flight, once alone before all else, and prints the line.
/// What the client refuses is asked again a millisecond later, and is told on standard error.
///
/// # Errors
///
/// The first call that fails.
pub async fn closed<F, C>(client: &str, options: &Options, call: C) -> Outcome<()>
where
    C: Fn(u64) -> F + Clone + Send + 'static,
    F: Future<Output = Outcome<Answered>> + Send + 'static,
{
    call(0).await?;
    let first_ns = since_start_ns();
    let state = Arc::new(State::default());
    let spawn = |_| tokio::spawn(ask_until_stopped(call.clone(), Arc::clone(&state)));
    let tasks = Vec::from_iter((0..options.in_flight).map(spawn));

    sleep(options.warm_up()).await;
    state.measuring.store(true, Ordering::Relaxed);
    let requests = || state.answered.load(Ordering::Relaxed);
    let (requests_before, cpu_before, started) = (requests(), process_cpu_ns(), Instant::now());
    sleep(options.measured()).await;
    let (requests_after, cpu_after, wall) = (requests(), process_cpu_ns(), started.elapsed());
    let (threads, peak_rss_bytes) = threads_and_peak()?;
    state.stopped.store(true, Ordering::Relaxed);

    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    times.sort_unstable();
    let quantile = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    let line = Line {
        client,
        in_flight: options.in_flight,
        body: options.body,
        workers: options.workers,
        requests: requests_after - requests_before,
        wall_ns: wall.as_nanos() as u64,
        cpu_ns: cpu_after - cpu_before,
        p50_ns: quantile(50),
        p99_ns: quantile(99),
        writes: None,
        allocations: None,
        threads,
        peak_rss_bytes,
        first_ns,
    };
    println!("{}", serde_json::to_string(&line)?);
    let refused = state.refused.load(Ordering::Relaxed);
    if refused > 0 {
        eprintln!("{client}: refused {refused} requests beside the {} it answered", requests());
    }
    Ok(())
}

async fn ask_until_stopped<F, C>(call: C, state: Arc<State>) -> Outcome<Vec<u64>>
where
    C: Fn(u64) -> F + Send,
    F: Future<Output = Outcome<Answered>>,
{
    let mut times = Vec::new();
    let mut count = 1;
    while !state.stopped.load(Ordering::Relaxed) {
        let started = Instant::now();
        match call(count).await? {
            Answered::Yes => {
                state.answered.fetch_add(1, Ordering::Relaxed);
                if count % SAMPLED == 0 && state.measuring.load(Ordering::Relaxed) {
                    times.push(started.elapsed().as_nanos() as u64);
                }
                count += 1;
            }
            Answered::Refused => {
                state.refused.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(1)).await;
            }
        }
    }
    Ok(times)
}

/// One request in so many is timed.
const SAMPLED: u64 = 7;
