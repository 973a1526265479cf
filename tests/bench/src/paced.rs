//! The open loop: requests are made when they are due, whether or not those before them were answered.

use std::{
    mem,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use tokio::{runtime::Runtime, task};

use crate::{
    Outcome, ResultLine,
    args::Plan,
    load::{Measured, Multiplexed, SAMPLED, line},
    meter::Reading,
    system::since_start_ns,
};

/// Makes `rate` requests a second, spread over `callers`, and reports on the measured part. A time is taken from the
/// instant at which the request was due, so that it holds what the pacing adds: up to [`TICK`] and the wake-up.
pub(crate) fn paced<C: Multiplexed + Sync>(
    client: &str,
    plan: &Plan,
    runtime: &Runtime,
    mut callers: Vec<C>,
    rate: u64,
) -> Outcome<ResultLine> {
    for caller in &mut callers {
        runtime.block_on(caller.call())?;
    }
    let first_ns = since_start_ns();
    let answers = Arc::new(Answers::default());
    let pace = Pace { runtime, callers: callers.into(), answers: Arc::clone(&answers), rate };
    pace.keep(plan.warm_up());
    answers.take_times();
    let (requests_before, before) = (answers.count.load(Ordering::Relaxed), Reading::take(None));
    pace.keep(plan.measured());
    let (requests_after, after) = (answers.count.load(Ordering::Relaxed), Reading::take(None));

    let mut times = Histogram::<u64>::new(3)?;
    for time in answers.take_times() {
        times.record(time.max(1))?;
    }
    let measured =
        Measured { requests: requests_after - requests_before, spent: before.spent_until(&after), times };
    line(client, plan, &measured, first_ns)
}

struct Pace<'a, C> {
    runtime: &'a Runtime,
    callers: Arc<[C]>,
    answers: Arc<Answers>,
    rate: u64,
}

impl<C: Multiplexed + Sync> Pace<'_, C> {
    /// Each request is a task of its own. Those that are due together are made by one task within the runtime, which
    /// is woken once for all of them.
    fn keep(&self, time: Duration) {
        let start = Instant::now();
        let gap = Duration::from_secs(1).div_f64(self.rate as f64);
        let mut made = 0;
        while start.elapsed() < time {
            let due = (start.elapsed().as_secs_f64() * self.rate as f64) as u32;
            let (callers, answers) = (Arc::clone(&self.callers), Arc::clone(&self.answers));
            self.runtime.spawn(async move {
                for place in made..due {
                    let mut caller = callers[place as usize % callers.len()].clone();
                    let sampled = u64::from(place).is_multiple_of(SAMPLED).then(|| start + gap * place);
                    let answers = Arc::clone(&answers);
                    task::spawn(async move {
                        if caller.call().await.is_ok() {
                            answers.note(sampled);
                        }
                    });
                }
            });
            made = due;
            thread::sleep(TICK);
        }
    }
}

#[derive(Default)]
struct Answers {
    count: AtomicU64,
    times: Mutex<Vec<u64>>,
}

impl Answers {
    fn note(&self, due: Option<Instant>) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(due) = due {
            let time = due.elapsed().as_nanos() as u64;
            self.times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        }
    }

    fn take_times(&self) -> Vec<u64> {
        mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How long the pacing sleeps at a time.
const TICK: Duration = Duration::from_micros(100);
