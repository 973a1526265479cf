//! The closed loop: callers that ask again as soon as they have their answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use hdrhistogram::Histogram;
use tokio::runtime::{Builder, Runtime};

use crate::{
    HeapProbe, Outcome, ResultLine,
    args::Plan,
    meter::{Reading, Spent},
    system::{since_start_ns, threads_and_peak},
};

/// A caller: it asks once and waits for the answer.
pub(crate) trait Caller: Send + 'static {
    /// One request, from making it to having its answer.
    fn call(&mut self) -> impl Future<Output = Outcome<()>> + Send;
}

/// A caller that shares its connection with any number of its clones.
pub(crate) trait Multiplexed: Caller + Clone {
    /// One request that the server takes in and does not answer.
    fn held(&mut self) -> impl Future<Output = Outcome<()>> + Send;
}

/// The runtime that every client of ours is measured in: the scheduler of several threads, also for one worker, so
/// that the main thread takes no part.
pub(crate) fn runtime(plan: &Plan) -> Outcome<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(plan.cell.workers).enable_all().build()?)
}

/// Runs `callers` in a closed loop, the first of them once alone before all else, and reports on the measured part.
pub(crate) fn closed<C: Caller>(
    client: &str,
    plan: &Plan,
    heap: Option<HeapProbe>,
    runtime: &Runtime,
    mut callers: Vec<C>,
) -> Outcome<ResultLine> {
    let first = callers.first_mut().ok_or("no callers")?;
    runtime.block_on(first.call())?;
    let first_ns = since_start_ns();

    let state = Arc::new(State::default());
    let tasks = Vec::from_iter(callers.into_iter().map(|caller| {
        let answered = Arc::new(Answered(AtomicU64::new(0)));
        let task = runtime.spawn(ask_until_stopped(caller, Arc::clone(&state), Arc::clone(&answered)));
        (answered, task)
    }));
    let answered = || tasks.iter().map(|(answered, _)| answered.0.load(Ordering::Relaxed)).sum::<u64>();

    thread::sleep(plan.warm_up());
    state.measuring.store(true, Ordering::Relaxed);
    let (requests_before, before) = (answered(), Reading::take(heap));
    thread::sleep(plan.measured());
    let (requests_after, after) = (answered(), Reading::take(heap));
    state.stopped.store(true, Ordering::Relaxed);

    let mut times = Histogram::<u64>::new(3)?;
    for (_, task) in tasks {
        for time in runtime.block_on(task)?? {
            times.record(time.max(1))?;
        }
    }
    let measured =
        Measured { requests: requests_after - requests_before, spent: before.spent_until(&after), times };
    line(client, plan, &measured, first_ns)
}

/// What the measured part gave.
pub(crate) struct Measured {
    pub(crate) requests: u64,
    pub(crate) spent: Spent,
    /// Nanoseconds from request to answer.
    pub(crate) times: Histogram<u64>,
}

/// The line of a process whose measured part has just ended.
pub(crate) fn line(
    client: &str,
    plan: &Plan,
    measured: &Measured,
    first_ns: Option<u64>,
) -> Outcome<ResultLine> {
    let Measured { requests, spent, times } = measured;
    let (threads, peak_rss_bytes) = threads_and_peak()?;
    Ok(ResultLine {
        client: client.to_owned(),
        in_flight: plan.cell.in_flight,
        body: plan.cell.body,
        workers: plan.cell.workers,
        requests: *requests,
        wall_ns: spent.wall_ns,
        cpu_ns: spent.cpu_ns,
        p50_ns: times.value_at_quantile(0.5),
        p99_ns: times.value_at_quantile(0.99),
        writes: plan.count_writes.then_some(spent.writes),
        allocations: spent.allocations,
        threads,
        peak_rss_bytes,
        first_ns,
        heap_per_pending: None,
    })
}

#[derive(Default)]
struct State {
    measuring: AtomicBool,
    stopped: AtomicBool,
}

/// A counter with a cache line of its own, so that counting costs the callers nothing.
#[repr(align(128))]
struct Answered(AtomicU64);

/// The times of some of the requests: of every seventh, so that reading the clock costs little beside the request.
async fn ask_until_stopped<C: Caller>(
    mut caller: C,
    state: Arc<State>,
    answered: Arc<Answered>,
) -> Outcome<Vec<u64>> {
    let mut times = Vec::with_capacity(EXPECTED_TIMES);
    for count in 1_u64.. {
        let started = count.is_multiple_of(SAMPLED).then(Instant::now);
        caller.call().await?;
        answered.0.store(count, Ordering::Relaxed);
        if let Some(started) = started
            && state.measuring.load(Ordering::Relaxed)
        {
            times.push(started.elapsed().as_nanos() as u64);
        }
        if state.stopped.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(times)
}

/// One request in so many is timed.
pub(crate) const SAMPLED: u64 = 7;
/// Room from the start for the times of one caller among many.
const EXPECTED_TIMES: usize = 256;
