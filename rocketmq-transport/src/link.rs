//! What caller, reader, writer and keeper share of one generation: the record's decisions carried out in lane
//! and table, and the connection's pulse.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    runtime::{self, Handle},
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{
    Command, Completion, Fold, InFlight, InFlightRequest, LateAnswer, Peer, PendingRequestOwner,
    PendingRequestTable, RetirePolicy, RetireReason, Storm, TransportConfig, Verdict,
    lane::Lanes,
    pending::{Completed, Exit, GenerationTable, Phase, Refused, Vacancy, Watch},
    pulse::Pulse,
    request::{Delivery, End, Ending, Place, RequestRecord, Settled},
    spare::SpareHeads,
};

/// One generation as its tasks and callers see it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) table: Arc<GenerationTable>,
    pub(crate) lanes: Lanes,
    pub(crate) pulse: Pulse,
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) spares: Arc<SpareHeads>,
    pending: Arc<PendingRequestTable>,
    attention: Arc<Attention>,
    /// Told of every late answer, and of every tombstone that waits for none any more.
    late: Arc<Notify>,
    /// Where its tasks run, if it has any.
    runtime: Option<runtime::Id>,
    /// Tells the watcher of a limit before the one it waits for.
    earlier: Notify,
}

impl Link {
    /// One whose tasks run in this runtime.
    pub(crate) fn new(
        config: Arc<TransportConfig>,
        pending: Arc<PendingRequestTable>,
        attention: Arc<Attention>,
        spares: Arc<SpareHeads>,
        now: Instant,
    ) -> Self {
        let table = pending.open(config.first_opaque, config.opaques_per_connection);
        Self {
            table,
            lanes: Lanes::new(),
            pulse: Pulse::new(now),
            config,
            spares,
            pending,
            attention,
            late: Arc::default(),
            runtime: this_runtime(),
            earlier: Notify::new(),
        }
    }

    /// Enters `record` into the table. False where the caller has to end it at its limit: the watcher does so only for
    /// callers of its own runtime, since another may go on while this one stands still.
    #[inline]
    pub(crate) fn register(&self, record: &Arc<RequestRecord>, now: Instant) -> Result<bool, Refused> {
        let watched = self.runtime.is_some() && this_runtime() == self.runtime;
        if self.table.register(record, watched, now)? == Watch::ToTell {
            self.earlier.notify_one();
        }
        Ok(watched)
    }

    /// Ends each watched request at its limit. Cancel safe.
    pub(crate) async fn watch_limits(&self) -> Infallible {
        let mut due = Vec::new();
        loop {
            let now = Instant::now();
            let next = self.table.take_due(now, MAX_ENDED_AT_ONCE, &mut due);
            let more = due.len() == MAX_ENDED_AT_ONCE;
            for record in due.drain(..) {
                if let Some(end) = record.terms.due(now) {
                    self.end(&record, end, now);
                }
            }
            if more {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                () = self.earlier.notified() => {}
                () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
            }
        }
    }

    pub(crate) fn owner(&self) -> PendingRequestOwner {
        self.table.owner()
    }

    /// A deadline, a start-by instant or the drop of a caller.
    pub(crate) fn end(&self, record: &Arc<RequestRecord>, end: End, now: Instant) {
        match record.end(end, now) {
            Ending::Withdrawn => self.discard(record),
            Ending::Removed => self.unlink(record, Exit::Failed),
            Ending::Buried { written } => {
                self.bury(record, written, now);
                if end == End::Deadline && written.is_some() {
                    self.note_response_timeout(now);
                }
            }
            Ending::Noted | Ending::Nothing => {}
        }
    }

    /// What the writer's poll made of an offered or half-written frame.
    #[inline]
    pub(crate) fn settle(
        &self,
        record: &Arc<RequestRecord>,
        (settled, stray): (Settled, Option<Delivery>),
        now: Instant,
    ) {
        match settled {
            Settled::Queued | Settled::Started => {}
            Settled::Withdrawn => self.discard(record),
            Settled::Finished => self.unlink(record, Exit::Answered),
            Settled::Removed => self.unlink(record, Exit::Failed),
            Settled::Buried { written } => self.bury(record, written, now),
        }
        match stray {
            Some(Delivery::Late { by }) => {
                self.table.count_late();
                self.note_late(record.opaque.0, by);
            }
            Some(_) => {
                self.table.count_unsolicited();
                self.note_unsolicited(record.opaque.0, true);
            }
            None => {}
        }
    }

    /// As [`discard`](Self::discard), of one that the writer has taken out of its lane.
    pub(crate) fn discard_taken(&self, record: &Arc<RequestRecord>) {
        self.lanes.give_up_unwritten(record);
        self.unlink(record, Exit::Failed);
    }

    /// A request was withdrawn: out of lane and table with it.
    pub(crate) fn discard(&self, record: &Arc<RequestRecord>) {
        self.lanes.unlink(record);
        self.unlink(record, Exit::Failed);
    }

    /// Responses were read: takes them out of `responses` and ends what they answer; `completed` is room for that.
    pub(crate) fn deliver(&self, responses: &mut Vec<Command>, completed: &mut Completed, now: Instant) {
        self.pulse.mark_response(now);
        match self.pending.of(self.owner()) {
            Ok(table) => table.complete(responses.drain(..), now, completed),
            Err(completion) => {
                for response in responses.drain(..) {
                    self.table.count_unsolicited();
                    completed.note(response.opaque().0, completion);
                }
            }
        }
        completed.release();
        for (opaque, completion) in completed.notable() {
            self.note(opaque, completion);
        }
    }

    fn note(&self, opaque: i32, completion: Completion) {
        match completion {
            Completion::Completed { vacancy: Vacancy::Drained } => self.attention.call(),
            Completion::Completed { vacancy: Vacancy::None } => {}
            Completion::Late { by } => {
                self.note_late(opaque, by);
                if self.table.phase() != Phase::Accepting {
                    // It may have been the last thing that a retired generation remembered.
                    self.attention.call();
                }
            }
            Completion::Unsolicited { ever_used } => self.note_unsolicited(opaque, ever_used),
            Completion::ForeignOwner => tracing::warn!(opaque, "response for a foreign owner"),
        }
    }

    /// The answer to a request that has ended, should it still come.
    pub(crate) fn late_answer(&self, record: &Arc<RequestRecord>) -> LateAnswer {
        LateAnswer::new(Arc::clone(record), Arc::clone(&self.late))
    }

    /// Forgets the tombstones that were made at `horizon` or before, and says when the oldest that is left was made.
    pub(crate) fn forget_until(&self, horizon: Option<Instant>) -> Option<Instant> {
        let (forgotten, oldest) = self.table.forget_until(horizon);
        if !forgotten.is_empty() {
            forgotten.iter().for_each(|record| record.forget());
            self.late.notify_waiters();
        }
        oldest
    }

    /// The reader looked, as it was asked to, and found the socket empty.
    pub(crate) fn found_empty(&self, now: Instant) {
        self.pulse.mark_found_empty(now);
        self.attention.call();
    }

    /// Admits nothing more; what is in flight is finished. While as many generations as may drain have waiters,
    /// silence and timeouts retire none: another would have to take theirs away from them.
    pub(crate) fn retire(&self, reason: RetireReason, now: Instant) {
        let by_evidence = matches!(reason, RetireReason::Silence | RetireReason::Timeout);
        if !(by_evidence && self.attention.is_crowded()) && self.table.retire(reason, now) {
            tracing::info!(generation = self.owner().get(), %reason, "connection retired");
            self.attention.call();
        }
    }

    /// Ends what is still pending, once the writer has stopped and the reader has read what there was.
    pub(crate) fn close(&self, cause: &crate::CloseCause, now: Instant) {
        self.table.close();
        self.lanes.close();
        for record in self.table.drain() {
            record.close(cause, now);
        }
        self.lanes.clear();
        self.late.notify_waiters();
        self.pending.remove(self.owner());
        self.attention.call();
    }

    /// Takes `record` out of the table; the keeper closes a retired generation that nobody waits on any more.
    fn unlink(&self, record: &Arc<RequestRecord>, exit: Exit) {
        if self.table.unlink(record, exit) == Vacancy::Drained {
            self.attention.call();
        }
    }

    fn bury(&self, record: &Arc<RequestRecord>, written: Option<Instant>, now: Instant) {
        let judge_at = written.and_then(|written| record.terms.judge_at(written, self.config.min_silence));
        let burial = self.table.bury(record, judge_at, now);
        if burial.tombstones > self.config.max_tombstones {
            self.retire(RetireReason::Tombstones, now);
        }
        // The keeper has to be told of the first tombstone: the others it finds when that one's window ends.
        if burial.vacancy == Vacancy::Drained || burial.judged_earlier || burial.tombstones == 1 {
            self.attention.call();
        }
    }

    fn note_response_timeout(&self, now: Instant) {
        // If the reader does not get to it, the next response that is missed is not the peer's doing alone.
        self.pulse.ask_to_look(now);
        if self.config.retire == RetirePolicy::OnTimeout {
            self.retire(RetireReason::Timeout, now);
        }
    }

    fn note_late(&self, opaque: i32, by: Duration) {
        self.late.notify_waiters();
        let late_by_ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        tracing::debug!(opaque, generation = self.owner().get(), late_by_ms, "late response");
    }

    fn note_unsolicited(&self, opaque: i32, ever_used: bool) {
        let stray = Stray { opaque, generation: self.owner() };
        match self.attention.strays.note(ever_used, stray, Instant::now()) {
            Verdict::Pass(Stray { opaque, generation }) => {
                tracing::warn!(opaque, generation = generation.get(), ever_used, "unsolicited response");
            }
            Verdict::Opened(_) => self.attention.call(),
            Verdict::Folded => {}
        }
    }

    /// Adds what is in flight here to `seen`, up to `most` requests in it.
    pub(crate) fn look(&self, peer: &Peer, most: usize, seen: &mut InFlight) {
        let now = Instant::now();
        let (records, all) = self.table.records(most.saturating_sub(seen.requests.len()));
        seen.omitted += (all - records.len()) as u64;
        for record in records {
            let look = record.look(now);
            let (stage, budget_left) = match look.place {
                Place::Stage(stage) => (Some(stage), record.terms.deadline.remaining(now)),
                Place::Tombstone => (None, Duration::ZERO),
                Place::Ended => continue,
            };
            seen.requests.push(InFlightRequest {
                peer: peer.clone(),
                generation: self.owner(),
                opaque: record.opaque,
                code: record.terms.code,
                stage,
                age: look.age,
                budget_left,
                bytes: record.terms.bytes,
            });
        }
    }
}

fn this_runtime() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

/// So many requests are ended at their limit before others have a turn.
const MAX_ENDED_AT_ONCE: usize = 256;

/// A response that nobody waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stray {
    opaque: i32,
    generation: PendingRequestOwner,
}

/// How a channel's connections call its keeper, and what it tells them.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    called: Notify,
    /// Whether as many generations as may drain have waiters. It stands for itself, hence `Relaxed`.
    crowded: AtomicBool,
    /// Unsolicited responses that had no line of their own yet, by whether their opaque was ever used.
    pub(crate) strays: Storm<bool, Stray>,
}

impl Attention {
    /// There is something new to watch.
    pub(crate) fn call(&self) {
        self.called.notify_one();
    }

    /// Waits for a call, one from before included. Cancel safe.
    pub(crate) async fn called(&self) {
        self.called.notified().await;
    }

    /// Writes the lines of unsolicited responses that were folded.
    pub(crate) fn log_strays(folds: Vec<Fold<bool, Stray>>) {
        for Fold { key: ever_used, count, sample: Stray { opaque, generation }, .. } in folds {
            let generation = generation.get();
            tracing::warn!(opaque, generation, ever_used, folded = count, "more unsolicited responses");
        }
    }

    pub(crate) fn set_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Relaxed);
    }

    fn is_crowded(&self) -> bool {
        self.crowded.load(Relaxed)
    }
}
