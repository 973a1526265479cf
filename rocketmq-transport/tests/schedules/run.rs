//! The runner: one schedule, one transport, one runtime on paused time, and the story of what came of it.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use rocketmq_transport::{
    CallOptions, Code, Completed, Request, RequestDeadline, StageClock, Transport, TransportError, Usage,
    Written, test_support::settle,
};
use tokio::{
    runtime::Builder,
    time::{Instant, sleep, sleep_until, timeout_at},
};

use crate::{
    plan::{End, Kind, RequestPlan, Schedule},
    world::{ConnectionLog, DialLog, ScheduledSigner, World, body, lock, name},
};

/// What came of a schedule.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) start: Instant,
    /// How each request ended; `None` where its task panicked or it did not end at all.
    pub(crate) told: Vec<Option<Told>>,
    pub(crate) connections: Vec<ConnectionLog>,
    pub(crate) dials: Vec<DialLog>,
    /// When the close began, its bound, and when it returned.
    pub(crate) close: Option<(Instant, Duration, Instant)>,
    /// What was in use once every caller had its outcome, and once nothing could come any more.
    pub(crate) in_use: Vec<InUse>,
    /// When everything had ended that ends by itself; what ends later is the owner's doing.
    pub(crate) quiet: Instant,
}

/// What was in use at some moment.
#[derive(Debug)]
pub(crate) struct InUse {
    pub(crate) moment: Moment,
    pub(crate) usage: Usage,
    pub(crate) in_flight: usize,
    /// Whether the client's whole limit could be had.
    pub(crate) whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Frames that are begun and tombstones may still be there.
    AllEnded,
    /// Nothing may.
    AllForgotten,
}

/// How one request ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) started: Instant,
    pub(crate) ended: Instant,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Completed),
    Written(Written),
    Failed(TransportError),
    Dropped,
}

impl Outcome {
    pub(crate) fn clock(&self) -> Option<&StageClock> {
        match self {
            Self::Answered(completed) => Some(&completed.clock),
            Self::Written(written) => Some(&written.clock),
            Self::Failed(error) => Some(error.stage_clock()),
            Self::Dropped => None,
        }
    }
}

/// Carries a schedule out.
pub(crate) fn run(schedule: &Schedule) -> Story {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(play(Arc::new(schedule.clone())))
}

async fn play(schedule: Arc<Schedule>) -> Story {
    let start = Instant::now();
    let world = World::new(&schedule);
    let transport = Transport::builder(schedule.config())
        .connector(Arc::clone(&world) as _)
        .signer(Arc::new(ScheduledSigner(Arc::clone(&schedule))))
        .build()
        .expect("settings in range");
    let told: Arc<Mutex<Vec<Option<Told>>>> = Arc::default();
    lock(&told).resize_with(schedule.requests.len(), || None);
    let callers: Vec<_> = (0..schedule.requests.len())
        .map(|number| {
            let (transport, plan, told) = (transport.clone(), schedule.requests[number], Arc::clone(&told));
            tokio::spawn(async move {
                sleep(Duration::from_millis(plan.at)).await;
                let ended = call(&transport, number, plan).await;
                lock(&told)[number] = Some(ended);
            })
        })
        .collect();
    let mut kept = Some(transport);
    if schedule.end == End::Dropped {
        kept = None;
    }
    let (mut in_use, mut close) = (Vec::new(), None);
    let (at, bound) = match schedule.end {
        End::ClosedAt { at, bound } => (at, bound),
        End::Closed | End::Dropped => (QUIET, 50),
    };
    sleep_until(start + Duration::from_millis(at)).await;
    let quiet = Instant::now();
    if let Some(transport) = &kept {
        if schedule.end == End::Closed && callers.iter().all(|caller| caller.is_finished()) {
            in_use.push(look(transport, &schedule, Moment::AllForgotten));
        }
        let bound = Duration::from_millis(bound);
        transport.close(bound).await;
        close = Some((quiet, bound, Instant::now()));
    }
    for caller in callers {
        // One that panics or never ends leaves no outcome, which is what is looked for.
        let _ = timeout_at(start + LAST, caller).await;
    }
    if let Some(transport) = kept.take() {
        settle().await;
        in_use.push(look(&transport, &schedule, Moment::AllEnded));
        sleep(Duration::from_secs(5)).await;
        in_use.push(look(&transport, &schedule, Moment::AllForgotten));
    }
    settle().await;
    let log = std::mem::take(&mut *world.log());
    let connections = log.connections.iter().map(|log| lock(log).clone()).collect();
    let told = std::mem::take(&mut *lock(&told));
    Story { start, told, connections, dials: log.dials, close, in_use, quiet }
}

async fn call(transport: &Transport, number: usize, plan: RequestPlan) -> Told {
    let (started, ms) = (Instant::now(), Duration::from_millis);
    let deadline = plan.budget.map_or(RequestDeadline::never(), |budget| RequestDeadline::after(ms(budget)));
    let mut options = CallOptions::from(deadline);
    options.start_by = plan.start_by.map(|wait| started + ms(wait));
    (options.class, options.admission) = (plan.class, plan.admission);
    let peer = name(plan.peer);
    let request = Request { code: Code(310), header: &(), body: body(number, plan.body).into() };
    let carried = async {
        let ended = match plan.kind {
            Kind::Call => transport.call(&peer, request, options).await.map(Outcome::Answered),
            Kind::Oneway => transport.oneway(&peer, request, options).await.map(Outcome::Written),
        };
        ended.unwrap_or_else(Outcome::Failed)
    };
    let outcome = match plan.dropped {
        None => carried.await,
        Some(wait) => timeout_at(started + ms(wait), carried).await.unwrap_or(Outcome::Dropped),
    };
    Told { started, ended: Instant::now(), outcome }
}

fn look(transport: &Transport, schedule: &Schedule, moment: Moment) -> InUse {
    let whole = transport.retain(schedule.config().client_limit.bytes).is_ok();
    InUse {
        moment,
        usage: transport.usage(),
        in_flight: transport.in_flight(usize::MAX).requests.len(),
        whole,
    }
}

/// By then every deadline has come, and every tombstone and stalled frame has gone, with some room.
const QUIET: u64 = 4_500;
/// No request is in flight for so long, whatever happens.
const LAST: Duration = Duration::from_secs(30);
