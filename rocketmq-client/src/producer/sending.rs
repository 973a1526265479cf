//! One send from its start to its end: route, attempts, pauses.

mod delivery;

use std::{
    borrow::Cow,
    marker::PhantomData,
    num::NonZeroU32,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use rocketmq_transport::{CallOptions, Permit, Request, RequestDeadline, Stage, StageClock};
use tokio::time::{Instant, sleep_until};

pub(super) use self::delivery::{Acknowledged, Oneway, read};
use self::delivery::{Delivery, Ended, Sent, decision};
use crate::{
    attempt::{Attempt, Attempts},
    error::{SendError, SendErrorKind, SendReport},
    message::{Message, UniqueKey},
    producer::{
        Producer, SendOptions, Shared,
        select::{Pick, Tried},
        within,
    },
    protocol::{code, send::SendRequest},
    queue::MessageQueue,
    retry::{self, Again, AttemptPlan, Decision, Duplicates, Prospect},
    routes::{DEFAULT_TOPIC, DEFAULT_TOPIC_QUEUES, PublishRoute},
};

/// One send, which waits for what `D` waits for.
pub(super) struct Sending<'p, D> {
    shared: &'p Shared,
    message: Message,
    message_id: UniqueKey,
    queue: Option<MessageQueue>,
    deadline: RequestDeadline,
    duplicates: Duplicates,
    /// How many requests it may make.
    limit: u32,
    /// How many it has made.
    made: u32,
    attempts: Attempts,
    tried: Tried,
    clock: StageClock,
    /// When the clock was read last: at the start, and after each wait. What takes no wait takes no reading.
    now: Instant,
    delivery: PhantomData<D>,
}

/// What is the same in all attempts.
struct Prepared {
    /// `None` where the unique key is the only one.
    properties: Option<String>,
    born_timestamp: i64,
    /// The claim on memory for a body that is kept for a repetition.
    _kept: Option<Permit>,
}

impl<'p, D: Delivery> Sending<'p, D> {
    /// Carries a send out.
    pub(super) async fn run(
        producer: &'p Producer,
        message: Message,
        options: SendOptions,
    ) -> Result<D::Receipt, SendError> {
        producer.start_heartbeats();
        let mut sending = Self::new(&producer.0, message, options);
        // Counted before it is asked whether sends are still taken: a shutdown that begins later waits for
        // this one.
        let _in_progress = sending.shared.sends.token();
        match sending.deliver().await {
            Ok(done) => Ok(sending.receipt(done)),
            Err(kind) => Err(sending.failed(kind)),
        }
    }

    /// Inlined, so that it is made in its place and not copied there.
    #[inline(always)]
    fn new(shared: &'p Shared, message: Message, options: SendOptions) -> Self {
        let now = Instant::now();
        let policy = &shared.policy;
        Self {
            shared,
            message,
            message_id: shared.keys.next(now),
            queue: options.queue,
            deadline: options.deadline.unwrap_or_else(|| RequestDeadline::from(now, policy.timeout)),
            duplicates: options.duplicates.unwrap_or(policy.duplicates),
            limit: options.attempts.map_or(policy.attempts, NonZeroU32::get),
            made: 0,
            attempts: Attempts::default(),
            tried: Tried::default(),
            clock: StageClock::start(Stage::Route, now),
            now,
            delivery: PhantomData,
        }
    }

    async fn deliver(&mut self) -> Result<D::Done, SendErrorKind> {
        let cached = self.shared.routes.cached(self.message.topic(), self.now);
        let prepared = self.prepare(cached.as_deref())?;
        let route = match cached {
            Some(route) => route,
            None => self.look_up_route().await?,
        };
        if let Some(queue) = self.queue.as_ref().filter(|queue| route.find(queue).is_none()) {
            return Err(SendErrorKind::NoSuchQueue(queue.clone()));
        }
        let turn = route.take_turn();
        loop {
            let pick = match &self.queue {
                Some(queue) => self.tried.pick_wanted(&route, queue),
                None => self.tried.pick(&route, turn),
            };
            let Some(pick) = pick else { return Err(self.last_failure()) };
            if let Some(ready_at) = pick.ready_at {
                self.pause_until(ready_at).await?;
            }
            let decision = match self.attempt(&route, &pick, &prepared).await {
                Ok(done) => return Ok(done),
                Err(decision) => decision,
            };
            self.shared.routes.suspect(self.message.topic());
            let Decision::Next(again) = decision else { return Err(self.last_failure()) };
            self.made += u32::from(self.counts(again));
            self.tried.note(pick.broker.name(), again, self.now, &self.shared.policy.backoff);
            if self.made >= self.limit || !retry::is_worth_starting(self.deadline.remaining(self.now)) {
                return Err(self.last_failure());
            }
        }
    }

    /// Whether an attempt counts that may be followed by another. A broker that is backing off was not asked at all, and
    /// neither was one that could not be dialled: a send which may make several requests rides out its restart.
    fn counts(&self, again: Again) -> bool {
        match again {
            Again::AfterBackoff(_) => false,
            Again::AfterDial => self.limit == 1,
            Again::Now | Again::AfterJitter | Again::Never => true,
        }
    }

    /// Everything that can be refused without asking anybody. A topic that has a route was checked before its lookup.
    fn prepare(&self, route: Option<&PublishRoute>) -> Result<Prepared, SendErrorKind> {
        if self.shared.sends.is_closed() {
            return Err(SendErrorKind::Closed);
        }
        let limits = &self.shared.policy.limits;
        let checked = match route {
            Some(_) => limits.check_content(&self.message),
            None => limits.check(&self.message),
        };
        checked.map_err(SendErrorKind::InvalidMessage)?;
        if let Some(queue) = self.queue.as_ref().filter(|queue| queue.topic() != self.message.topic()) {
            return Err(SendErrorKind::NoSuchQueue(queue.clone()));
        }
        if self.deadline.is_expired(self.now) {
            return Err(SendErrorKind::DeadlineExpired);
        }
        let bytes = self.message.body().len() as u64;
        let kept = (self.limit > 1).then(|| self.shared.transport.retain(bytes)).transpose();
        let born = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Prepared {
            properties: self.message.encode_properties(&self.message_id),
            born_timestamp: i64::try_from(born.as_millis()).unwrap_or(i64::MAX),
            _kept: kept.map_err(SendErrorKind::QueueSaturated)?,
        })
    }

    async fn look_up_route(&mut self) -> Result<Arc<PublishRoute>, SendErrorKind> {
        let route = self.shared.routes.publish(self.message.shared_topic());
        let route = tokio::select! {
            biased;
            route = within(self.deadline, route) => route.ok_or(SendErrorKind::DeadlineExpired)?,
            () = self.shared.abandon.cancelled() => return Err(SendErrorKind::Closed),
        };
        self.now = Instant::now();
        route.map_err(SendErrorKind::Route)
    }

    /// Waits until a broker may be asked; not at all where that leaves no time to ask it.
    async fn pause_until(&mut self, ready_at: Instant) -> Result<(), SendErrorKind> {
        if ready_at <= self.now {
            return Ok(());
        }
        if !retry::is_worth_starting(self.deadline.remaining(ready_at)) {
            return Err(self.last_failure());
        }
        self.clock.pause(self.now);
        tokio::select! {
            biased;
            () = self.shared.abandon.cancelled() => return Err(SendErrorKind::Closed),
            () = sleep_until(ready_at) => {}
        }
        self.now = Instant::now();
        self.clock.enter(Stage::Route, self.now);
        Ok(())
    }

    async fn attempt(
        &mut self,
        route: &PublishRoute,
        pick: &Pick<'_>,
        prepared: &Prepared,
    ) -> Result<D::Done, Decision> {
        let started = self.now;
        let plan = AttemptPlan::new(self.deadline, started, self.prospect(route, pick), self.duplicates);
        let properties = prepared.properties.as_deref().unwrap_or_else(|| self.message_id.as_property());
        let header = SendRequest {
            group: Cow::Borrowed(&self.shared.policy.group),
            topic: Cow::Borrowed(self.message.topic()),
            default_topic: Cow::Borrowed(DEFAULT_TOPIC),
            default_topic_queue_nums: DEFAULT_TOPIC_QUEUES.cast_signed(),
            queue_id: pick.queue_id.cast_signed(),
            sys_flag: 0,
            born_timestamp: prepared.born_timestamp,
            flag: self.message.flag(),
            properties: Cow::Borrowed(properties),
            reconsume_times: 0,
            batch: false,
            broker: Cow::Borrowed(pick.broker.name()),
        };
        let request =
            Request { code: code::SEND_MESSAGE_V2, header: &header, body: self.message.body().clone() };
        let mut options = CallOptions::from(plan.deadline(self.deadline, started));
        options.start_by = plan.start_by(started);
        options.clock = Some(self.clock);
        let called = D::call(&self.shared.transport, &pick.broker.master, request, options).await;
        self.now = Instant::now();
        let Ended { outcome, clock, carrier, stage } = called.map_or_else(Ended::failed, D::ended);
        self.clock = clock;
        let (done, failure) = match outcome {
            Ok(done) => (Ok(done), None),
            Err(failure) => (Err(decision(&failure, self.duplicates)), Some(Box::new(failure))),
        };
        self.attempts.push(Attempt {
            number: self.attempts.next_number(),
            queue: pick.queue(),
            peer: pick.broker.master.clone(),
            carrier,
            stage,
            elapsed: self.now - started,
            plan,
            failure,
        });
        done
    }

    fn prospect(&self, route: &PublishRoute, pick: &Pick<'_>) -> Prospect {
        let more = self.made + 1 < self.limit && self.queue.is_none();
        if more && self.tried.leaves_another(route, pick.broker) { Prospect::Another } else { Prospect::Last }
    }

    /// What ended the last attempt, which is what ends the send.
    fn last_failure(&self) -> SendErrorKind {
        let failure = self.attempts.last().and_then(Attempt::error);
        failure.expect("a send that runs out of brokers, attempts or time has made an attempt").clone()
    }

    /// Inlined for the same reason as [`new`](Self::new).
    #[inline(always)]
    fn receipt(&mut self, done: D::Done) -> D::Receipt {
        self.clock.stop(self.now);
        let attempts = self.attempts.take_list();
        let last = attempts.as_slice().last().expect("a send that succeeds has made an attempt");
        D::receipt(
            done,
            Sent {
                message_id: self.message_id,
                queue: last.queue.clone(),
                attempts,
                clock: self.clock,
                budget: self.deadline.budget(),
            },
        )
    }

    #[cold]
    fn failed(&mut self, kind: SendErrorKind) -> SendError {
        let now = Instant::now();
        if let SendErrorKind::QueueSaturated(_) = kind {
            self.clock.enter(Stage::Admission, now);
        }
        self.clock.stop(now);
        let error = SendError::new(SendReport {
            kind,
            topic: self.message.shared_topic().clone(),
            message_id: self.message_id,
            bytes: self.message.body().len(),
            attempts: std::mem::take(&mut self.attempts),
            clock: self.clock,
            budget: self.deadline.budget(),
        });
        self.shared.log.send(&error);
        error
    }
}
