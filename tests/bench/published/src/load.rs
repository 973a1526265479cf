//! The closed loop: callers that ask again as soon as they have their answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    Options, Outcome,
    line::ResultLine,
    system::{process_cpu_ns, since_start_ns, threads_and_peak},
};

/// How a call ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// With its answer.
    Yes,
    /// The client's own admission refused it.
    Refused,
}

#[derive(Default)]
struct State {
    answered: AtomicU64,
    measuring: AtomicBool,
    stopped: AtomicBool,
}

/// Calls in a closed loop from as many tasks as are to be in flight, once alone before all else, and prints the line.
/// What the client refuses is asked again a millisecond later, and does not count.
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
    let line = ResultLine {
        client: client.to_owned(),
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
        heap_per_pending: None,
    };
    println!("{}", serde_json::to_string(&line)?);
    Ok(())
}

async fn ask_until_stopped<F, C>(call: C, state: Arc<State>) -> Outcome<Vec<u64>>
where
    C: Fn(u64) -> F + Send,
    F: Future<Output = Outcome<Answered>>,
{
    let mut times = Vec::new();
    let mut count = 1_u64;
    while !state.stopped.load(Ordering::Relaxed) {
        let started = count.is_multiple_of(SAMPLED).then(Instant::now);
        match call(count).await? {
            Answered::Yes => {
                state.answered.fetch_add(1, Ordering::Relaxed);
                if let Some(started) = started
                    && state.measuring.load(Ordering::Relaxed)
                {
                    times.push(started.elapsed().as_nanos() as u64);
                }
                count += 1;
            }
            Answered::Refused => sleep(Duration::from_millis(1)).await,
        }
    }
    Ok(times)
}

/// One request in so many is timed.
const SAMPLED: u64 = 7;
