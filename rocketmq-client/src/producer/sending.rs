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
    message::Message,
    producer::{
        SendOptions, Shared,
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
    message_id: String,
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
    delivery: PhantomData<D>,
}

/// What is the same in all attempts.
struct Prepared {
    properties: String,
    born_timestamp: i64,
    /// The claim on memory for a body that is kept for a repetition.
    _kept: Option<Permit>,
}

impl<'p, D: Delivery> Sending<'p, D> {
    pub(super) fn new(shared: &'p Shared, message: Message, options: SendOptions) -> Self {
        let now = Instant::now();
        let policy = &shared.policy;
        Self {
            shared,
            message,
            message_id: shared.keys.next(),
            queue: options.queue,
            deadline: options.deadline.unwrap_or_else(|| RequestDeadline::from(now, policy.timeout)),
            duplicates: options.duplicates.unwrap_or(policy.duplicates),
            limit: options.attempts.map_or(policy.attempts, NonZeroU32::get),
            made: 0,
            attempts: Attempts::default(),
            tried: Tried::default(),
            clock: StageClock::start(Stage::Route, now),
            delivery: PhantomData,
        }
    }

    pub(super) async fn run(mut self) -> Result<D::Receipt, SendError> {
        // Counted before it is asked whether sends are still taken: a shutdown that begins later waits for
        // this one.
        let _in_progress = self.shared.sends.token();
        match self.deliver().await {
            Ok(receipt) => Ok(receipt),
            Err(kind) => {
                let log = &self.shared.log;
                let error = self.failed(kind);
                log.send(&error);
                Err(error)
            }
        }
    }

    async fn deliver(&mut self) -> Result<D::Receipt, SendErrorKind> {
        let prepared = self.prepare()?;
        let route = self.route().await?;
        let turn = route.take_turn();
        loop {
            let pick = match &self.queue {
                Some(queue) => self.tried.pick_wanted(&route, queue),
                None => self.tried.pick(&route, turn),
            };
            let Some(pick) = pick else { return Err(self.last_failure()) };
            self.pause(&pick).await?;
            let decision = match self.attempt(&route, &pick, &prepared).await {
                Ok(done) => {
                    let queue = self.queue_of(&pick);
                    return Ok(D::receipt(done, self.sent(queue)));
                }
                Err(decision) => decision,
            };
            self.shared.routes.suspect(self.message.topic());
            let Decision::Next(again) = decision else { return Err(self.last_failure()) };
            self.made += u32::from(self.counts(again));
            self.tried.note(&pick.broker.name, again, Instant::now(), &self.shared.policy.backoff);
            if self.made >= self.limit || !retry::is_worth_starting(self.deadline.remaining(Instant::now())) {
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

    /// Everything that can be refused without asking anybody.
    fn prepare(&self) -> Result<Prepared, SendErrorKind> {
        if self.shared.sends.is_closed() {
            return Err(SendErrorKind::Closed);
        }
        self.shared.policy.limits.check(&self.message).map_err(SendErrorKind::InvalidMessage)?;
        if let Some(queue) = self.queue.as_ref().filter(|queue| queue.topic() != self.message.topic()) {
            return Err(SendErrorKind::NoSuchQueue(queue.clone()));
        }
        if self.deadline.is_expired(Instant::now()) {
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

    async fn route(&self) -> Result<Arc<PublishRoute>, SendErrorKind> {
        let route = self.shared.routes.publish(self.message.shared_topic());
        let route = tokio::select! {
            biased;
            route = within(self.deadline, route) => route.ok_or(SendErrorKind::DeadlineExpired)?,
            () = self.shared.abandon.cancelled() => return Err(SendErrorKind::Closed),
        };
        let route = route.map_err(SendErrorKind::Route)?;
        match self.queue.as_ref().filter(|queue| route.find(queue).is_none()) {
            Some(queue) => Err(SendErrorKind::NoSuchQueue(queue.clone())),
            None => Ok(route),
        }
    }

    /// Waits until the picked broker may be asked; not at all where that leaves no time to ask it.
    async fn pause(&mut self, pick: &Pick<'_>) -> Result<(), SendErrorKind> {
        let now = Instant::now();
        let Some(ready_at) = pick.ready_at.filter(|ready_at| *ready_at > now) else { return Ok(()) };
        if !retry::is_worth_starting(self.deadline.remaining(ready_at)) {
            return Err(self.last_failure());
        }
        self.clock.pause(now);
        tokio::select! {
            biased;
            () = self.shared.abandon.cancelled() => return Err(SendErrorKind::Closed),
            () = sleep_until(ready_at) => {}
        }
        self.clock.enter(Stage::Route, Instant::now());
        Ok(())
    }

    async fn attempt(
        &mut self,
        route: &PublishRoute,
        pick: &Pick<'_>,
        prepared: &Prepared,
    ) -> Result<D::Done, Decision> {
        let started = Instant::now();
        let plan = AttemptPlan::new(self.deadline, started, self.prospect(route, pick), self.duplicates);
        let header = SendRequest {
            group: Cow::Borrowed(&self.shared.policy.group),
            topic: Cow::Borrowed(self.message.topic()),
            default_topic: Cow::Borrowed(DEFAULT_TOPIC),
            default_topic_queue_nums: DEFAULT_TOPIC_QUEUES.cast_signed(),
            queue_id: pick.queue.cast_signed(),
            sys_flag: 0,
            born_timestamp: prepared.born_timestamp,
            flag: self.message.flag(),
            properties: Cow::Borrowed(&prepared.properties),
            reconsume_times: 0,
            batch: false,
            broker: Cow::Borrowed(&pick.broker.name),
        };
        let request =
            Request { code: code::SEND_MESSAGE_V2, header: &header, body: self.message.body().clone() };
        let mut options = CallOptions::from(plan.deadline(self.deadline, started));
        options.start_by = plan.start_by(started);
        options.clock = Some(self.clock);
        let peer = &pick.broker.master;
        let Ended { outcome, clock, carrier, stage } =
            D::deliver(&self.shared.transport, peer, request, options).await;
        self.clock = clock;
        let (done, failure) = match outcome {
            Ok(done) => (Ok(done), None),
            Err(failure) => (Err(decision(&failure, self.duplicates)), Some(failure)),
        };
        self.attempts.push(Attempt {
            number: self.attempts.next_number(),
            queue: self.queue_of(pick),
            peer: peer.clone(),
            carrier,
            stage,
            elapsed: started.elapsed(),
            plan,
            failure,
        });
        done
    }

    fn prospect(&self, route: &PublishRoute, pick: &Pick<'_>) -> Prospect {
        let more = self.made + 1 < self.limit && self.queue.is_none();
        if more && self.tried.leaves_another(route, pick.broker) { Prospect::Another } else { Prospect::Last }
    }

    fn queue_of(&self, pick: &Pick<'_>) -> MessageQueue {
        MessageQueue::new(self.message.shared_topic().clone(), pick.broker.name.clone(), pick.queue)
    }

    /// What ended the last attempt, which is what ends the send.
    fn last_failure(&self) -> SendErrorKind {
        let failure = self.attempts.last().and_then(Attempt::error);
        failure.expect("a send that runs out of brokers, attempts or time has made an attempt").clone()
    }

    fn sent(&mut self, queue: MessageQueue) -> Sent {
        self.clock.stop(Instant::now());
        let attempts = std::mem::take(&mut self.attempts).into_list();
        let message_id = std::mem::take(&mut self.message_id);
        Sent { message_id, queue, attempts, clock: self.clock, budget: self.deadline.budget() }
    }

    fn failed(mut self, kind: SendErrorKind) -> SendError {
        let now = Instant::now();
        if let SendErrorKind::QueueSaturated(_) = kind {
            self.clock.enter(Stage::Admission, now);
        }
        self.clock.stop(now);
        SendError::new(SendReport {
            kind,
            topic: self.message.shared_topic().clone(),
            message_id: self.message_id,
            bytes: self.message.body().len(),
            attempts: self.attempts,
            clock: self.clock,
            budget: self.deadline.budget(),
        })
    }
}
