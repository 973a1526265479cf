//! What one generation awaits: an index from opaque to the records, and the door that retiring shuts.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::{
    completed::Completed,
    entries::Entries,
    limits::{Limits, Watch},
};
use crate::{
    Command, Completion, Opaque, PendingRequestOwner, RetireReason,
    request::{Delivery, Freed, RequestRecord},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

/// What one generation awaits, keyed by opaque, and whether it takes more.
#[derive(Debug)]
pub(crate) struct GenerationTable {
    owner: PendingRequestOwner,
    first_opaque: i32,
    /// How many opaques there are, and how many of them have been asked for. A number of its own is all that is
    /// asked of the counter, hence `Relaxed`.
    opaques: u64,
    asked: AtomicU64,
    /// Whether the phase is [`Phase::Accepting`]: a hint, kept under the lock and read without it, hence `Relaxed`.
    accepting: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    entries: Entries<Entry>,
    limits: Limits,
    /// Buried entries by age; some of them may have been answered since.
    graves: VecDeque<(Instant, i32)>,
    buried: usize,
    /// The earliest instant at which the peer's silence is to be judged by a buried entry.
    judge_at: Option<Instant>,
    tally: Tally,
}

#[derive(Debug)]
struct Entry {
    record: Arc<RequestRecord>,
    grave: Grave,
}

/// Whether an entry is a tombstone, and when the peer is judged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grave {
    /// Its caller waits.
    None,
    /// A tombstone that is not judged: its frame is not written, or it was judged already.
    Quiet,
    /// A tombstone by which the peer's silence is judged.
    JudgedAt(Instant),
}

/// The states of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Accepting,
    /// Retired: admits nothing more, finishes what is in flight.
    Draining(RetireReason, Instant),
    Closed,
}

/// Whether somebody has to see to a generation that a record has just left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vacancy {
    /// No: others wait on it, or it takes more.
    None,
    /// It was retired, and nobody waits on it any more.
    Drained,
}

/// What became of a generation by one more tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Burial {
    pub(crate) tombstones: usize,
    /// Whether this tombstone is judged before all others.
    pub(crate) judged_earlier: bool,
    pub(crate) vacancy: Vacancy,
}

/// Why a registration was refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The request must not start any more.
    Expired,
    /// The generation takes no more; the request may go elsewhere.
    Retired,
    /// The opaque is in use; the request takes another.
    KeyTaken,
}

/// What is pending, and what has ended so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) waiting: u64,
    pub(crate) tombstones: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// Requests that the peer sent to us, which are dropped.
    pub(crate) peer_requests: u64,
    /// Responses to requests that had ended.
    pub(crate) late: u64,
    /// Responses that nobody waited for and nothing remembered.
    pub(crate) unsolicited: u64,
}

impl Tally {
    pub(crate) const fn add(&mut self, other: Self) {
        self.waiting += other.waiting;
        self.tombstones += other.tombstones;
        self.answered += other.answered;
        self.failed += other.failed;
        self.peer_requests += other.peer_requests;
        self.late += other.late;
        self.unsolicited += other.unsolicited;
    }
}

impl GenerationTable {
    /// An empty table that accepts; `opaques` of them are issued, from `first_opaque` on, none twice.
    pub(crate) fn new(owner: PendingRequestOwner, first_opaque: i32, opaques: u64) -> Self {
        let inner = Inner {
            phase: Phase::Accepting,
            entries: Entries::new(first_opaque),
            limits: Limits::default(),
            graves: VecDeque::new(),
            buried: 0,
            judge_at: None,
            tally: Tally::default(),
        };
        Self {
            owner,
            first_opaque,
            opaques,
            asked: AtomicU64::new(0),
            accepting: AtomicBool::new(true),
            inner: Mutex::new(inner),
        }
    }

    pub(crate) const fn owner(&self) -> PendingRequestOwner {
        self.owner
    }

    /// The next opaque; `None` once they are used up.
    #[inline]
    pub(crate) fn issue_opaque(&self) -> Option<Opaque> {
        let before = self.asked.fetch_add(1, Relaxed);
        (before < self.opaques).then(|| Opaque(self.opaque(before)))
    }

    /// The opaque that is issued after `before` others.
    const fn opaque(&self, before: u64) -> i32 {
        self.first_opaque.wrapping_add((before as u32).cast_signed())
    }

    /// Enters `record`, in this order: not expired, owner accepting, key free. Where it is `watched`, the watcher of the
    /// generation ends it at its limit.
    #[inline]
    pub(crate) fn register(
        &self,
        record: &Arc<RequestRecord>,
        watched: bool,
        now: Instant,
    ) -> Result<Watch, Refused> {
        let limit = record.terms.start_limit();
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        if limit.is_some_and(|limit| limit <= now) {
            return Err(Refused::Expired);
        }
        if inner.phase != Phase::Accepting {
            return Err(Refused::Retired);
        }
        let entry = Entry { record: Arc::clone(record), grave: Grave::None };
        if !inner.entries.insert(record.opaque.0, entry) {
            return Err(Refused::KeyTaken);
        }
        match limit {
            Some(limit) if watched => {
                let waiting = inner.waiting();
                let Inner { entries, limits, .. } = inner;
                Ok(limits.add(limit, record.opaque.0, waiting, |opaque| is_waiting(entries, opaque)))
            }
            _ => Ok(Watch::InTime),
        }
    }

    /// Puts at most `most` watched requests whose limit has come at `now` into `due`, and says when to look again; `None`
    /// means when told.
    pub(crate) fn take_due(
        &self,
        now: Instant,
        most: usize,
        due: &mut Vec<Arc<RequestRecord>>,
    ) -> Option<Instant> {
        let mut guard = self.inner.lock();
        let Inner { entries, limits, .. } = &mut *guard;
        while due.len() < most
            && let Some(opaque) = limits.next_due(now, |opaque| is_waiting(entries, opaque))
        {
            let Some(entry) = entries.get(opaque) else { continue };
            if let Some(at) = entry.record.terms.deadline.at().filter(|at| *at > now) {
                // Only its start was due.
                limits.add(at, opaque, entries.len(), |opaque| is_waiting(entries, opaque));
            }
            due.push(Arc::clone(&entry.record));
        }
        limits.armed()
    }

    /// Hands each of `responses` to the request of this generation that has its opaque, under one lock.
    #[inline]
    pub(crate) fn complete(
        &self,
        responses: impl Iterator<Item = Command>,
        now: Instant,
        completed: &mut Completed,
    ) {
        let mut inner = self.inner.lock();
        for response in responses {
            let opaque = response.opaque().0;
            let completion = match inner.complete(response, now, completed) {
                Some(completion) => completion,
                None => Completion::Unsolicited { ever_used: self.ever_used(opaque) },
            };
            // Under the same lock, so that whoever has a late answer finds it counted.
            match completion {
                Completion::Late { .. } => inner.tally.late += 1,
                Completion::Unsolicited { .. } => inner.tally.unsolicited += 1,
                Completion::Completed { .. } | Completion::ForeignOwner => {}
            }
            completed.note(opaque, completion);
        }
    }

    /// As [`complete`](Self::complete), for one response.
    #[cfg(any(test, feature = "test-support"))]
    pub(crate) fn complete_one(&self, response: Command, now: Instant) -> Completion {
        let mut completed = Completed::default();
        self.complete(std::iter::once(response), now, &mut completed);
        completed.release();
        let notable = completed.notable().next();
        notable.map_or(Completion::Completed { vacancy: Vacancy::None }, |(_, completion)| completion)
    }

    /// Takes `record` out, if it is still in.
    pub(crate) fn unlink(&self, record: &Arc<RequestRecord>, exit: Exit) -> Vacancy {
        let mut inner = self.inner.lock();
        let opaque = record.opaque.0;
        let holds = inner.entries.get(opaque).is_some_and(|entry| Arc::ptr_eq(&entry.record, record));
        let removed = if holds { inner.remove(opaque, exit) } else { None };
        let vacancy = inner.vacancy();
        drop(inner);
        drop(removed);
        vacancy
    }

    /// Marks `record` as its own tombstone, by which the peer is judged at `judge_at`.
    pub(crate) fn bury(
        &self,
        record: &Arc<RequestRecord>,
        judge_at: Option<Instant>,
        now: Instant,
    ) -> Burial {
        let opaque = record.opaque.0;
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        let Some(entry) = inner.entries.get_mut(opaque).filter(|entry| Arc::ptr_eq(&entry.record, record))
        else {
            return Burial { tombstones: inner.buried, judged_earlier: false, vacancy: inner.vacancy() };
        };
        if entry.grave == Grave::None {
            inner.graves.push_back((now, opaque));
            inner.buried += 1;
            inner.tally.failed += 1;
            entry.grave = Grave::Quiet;
        }
        // The writer, which has finished the frame, may come here before the caller, who ended it earlier.
        if let Some(at) = judge_at {
            entry.grave = Grave::JudgedAt(at);
        }
        let judged_earlier = judge_at.is_some_and(|at| inner.judge_at.is_none_or(|earliest| at < earliest));
        if judged_earlier {
            inner.judge_at = judge_at;
        }
        Burial { tombstones: inner.buried, judged_earlier, vacancy: inner.vacancy() }
    }

    pub(crate) fn count_peer_request(&self) {
        self.inner.lock().tally.peer_requests += 1;
    }

    pub(crate) fn count_late(&self) {
        self.inner.lock().tally.late += 1;
    }

    pub(crate) fn count_unsolicited(&self) {
        self.inner.lock().tally.unsolicited += 1;
    }

    /// When the peer was last due to be judged by a tombstone, up to `until`; none is asked twice.
    pub(crate) fn take_judgement(&self, until: Instant) -> Option<Instant> {
        let mut inner = self.inner.lock();
        if inner.judge_at.is_none_or(|at| at > until) {
            return None;
        }
        let (mut due, mut next) = (None::<Instant>, None::<Instant>);
        for entry in inner.entries.values_mut() {
            match entry.grave {
                Grave::JudgedAt(at) if at <= until => {
                    entry.grave = Grave::Quiet;
                    due = due.max(Some(at));
                }
                Grave::JudgedAt(at) => next = Some(next.map_or(at, |next| next.min(at))),
                Grave::None | Grave::Quiet => {}
            }
        }
        inner.judge_at = next;
        due
    }

    /// Takes out the tombstones that were made at `horizon` or before, and says when the oldest that is left was
    /// made.
    pub(crate) fn forget_until(
        &self,
        horizon: Option<Instant>,
    ) -> (Vec<Arc<RequestRecord>>, Option<Instant>) {
        let mut forgotten = Vec::new();
        let mut guard = self.inner.lock();
        let inner = &mut *guard;
        while let Some(&(made, opaque)) = inner.graves.front() {
            let buried = is_buried(&inner.entries, opaque);
            if buried && horizon.is_none_or(|horizon| made > horizon) {
                return (forgotten, Some(made));
            }
            inner.graves.pop_front();
            if buried {
                inner.buried -= 1;
                forgotten.extend(inner.entries.remove(opaque).map(|entry| entry.record));
            }
        }
        (forgotten, None)
    }

    /// Copies at most `most` of the records, in no order, and says how many there are.
    pub(crate) fn records(&self, most: usize) -> (Vec<Arc<RequestRecord>>, usize) {
        let inner = self.inner.lock();
        let records = inner.entries.values().take(most).map(|entry| Arc::clone(&entry.record)).collect();
        (records, inner.entries.len())
    }

    /// The instant of the next judgement.
    pub(crate) fn judge_at(&self) -> Option<Instant> {
        self.inner.lock().judge_at
    }

    /// Accepting → Draining; false where it was not accepting. A close by the owner takes the place of another
    /// reason, since it waits for no late response.
    pub(crate) fn retire(&self, reason: RetireReason, now: Instant) -> bool {
        let mut inner = self.inner.lock();
        match inner.phase {
            Phase::Accepting => {
                inner.phase = Phase::Draining(reason, now);
                self.accepting.store(false, Relaxed);
                return true;
            }
            Phase::Draining(_, since) if reason == RetireReason::Closed => {
                inner.phase = Phase::Draining(reason, since);
            }
            Phase::Draining(..) | Phase::Closed => {}
        }
        false
    }

    /// Whether it takes more, as far as that is known without the lock; [`register`](Self::register) decides.
    pub(crate) fn is_accepting(&self) -> bool {
        self.accepting.load(Relaxed)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.inner.lock().phase
    }

    /// Refuses everything from now on.
    pub(crate) fn close(&self) {
        self.inner.lock().phase = Phase::Closed;
        self.accepting.store(false, Relaxed);
    }

    /// Takes out all records, for the one who ends them.
    pub(crate) fn drain(&self) -> Vec<Arc<RequestRecord>> {
        let mut inner = self.inner.lock();
        debug_assert_eq!(inner.phase, Phase::Closed, "closed before it is drained");
        let waiting = inner.waiting() as u64;
        inner.tally.failed += waiting;
        inner.graves.clear();
        inner.buried = 0;
        inner.judge_at = None;
        inner.limits = Limits::default();
        inner.entries.take().map(|entry| entry.record).collect()
    }

    /// How many callers wait.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.inner.lock().waiting()
    }

    pub(crate) fn tally(&self) -> Tally {
        let inner = self.inner.lock();
        Tally { waiting: inner.waiting() as u64, tombstones: inner.buried as u64, ..inner.tally }
    }

    fn ever_used(&self, opaque: i32) -> bool {
        let issued = self.asked.load(Relaxed).min(self.opaques);
        let back = u64::from(self.opaque(issued).wrapping_sub(opaque).cast_unsigned());
        (1..=issued).contains(&back) || (back == 0 && issued > u64::from(u32::MAX))
    }
}

fn is_waiting(entries: &Entries<Entry>, opaque: i32) -> bool {
    entries.get(opaque).is_some_and(|entry| entry.grave == Grave::None)
}

fn is_buried(entries: &Entries<Entry>, opaque: i32) -> bool {
    entries.get(opaque).is_some_and(|entry| entry.grave != Grave::None)
}

/// How a record leaves the table, for the tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Answered,
    Failed,
}

impl Inner {
    fn waiting(&self) -> usize {
        self.entries.len() - self.buried
    }

    #[inline]
    fn vacancy(&self) -> Vacancy {
        let drained = matches!(self.phase, Phase::Draining(..)) && self.waiting() == 0;
        if drained { Vacancy::Drained } else { Vacancy::None }
    }

    /// `None` where nothing has the opaque of `response`.
    fn complete(&mut self, response: Command, now: Instant, completed: &mut Completed) -> Option<Completion> {
        let opaque = response.opaque().0;
        let Some(entry) = self.entries.get(opaque) else {
            completed.strays.push(response);
            return None;
        };
        let (delivery, freed) = entry.record.respond(response, now).unwrap_or_else(|stray| {
            completed.strays.push(stray);
            (Delivery::Unsolicited, Freed::default())
        });
        let (removed, completion) = match delivery {
            Delivery::Completed => {
                let removed = self.remove(opaque, Exit::Answered);
                (removed, Completion::Completed { vacancy: self.vacancy() })
            }
            Delivery::Late { by } => (self.remove(opaque, Exit::Failed), Completion::Late { by }),
            Delivery::Noted => (None, Completion::Completed { vacancy: Vacancy::None }),
            Delivery::Unsolicited => (None, Completion::Unsolicited { ever_used: true }),
        };
        completed.freed.push(freed);
        completed.removed.extend(removed.map(|entry| entry.record));
        Some(completion)
    }

    #[inline]
    fn remove(&mut self, opaque: i32, exit: Exit) -> Option<Entry> {
        let entry = self.entries.remove(opaque)?;
        match (entry.grave, exit) {
            (Grave::None, Exit::Answered) => self.tally.answered += 1,
            (Grave::None, Exit::Failed) => self.tally.failed += 1,
            (Grave::Quiet | Grave::JudgedAt(_), _) => {
                self.buried -= 1;
                self.trim_graves();
            }
        }
        Some(entry)
    }

    /// Answered tombstones leave their grave empty; it goes when it comes to the front, or when more than half
    /// are empty.
    fn trim_graves(&mut self) {
        let entries = &self.entries;
        let buried = |opaque: &i32| is_buried(entries, *opaque);
        while self.graves.front().is_some_and(|(_, opaque)| !buried(opaque)) {
            self.graves.pop_front();
        }
        if self.graves.len() > 2 * self.buried {
            self.graves.retain(|(_, opaque)| buried(opaque));
        }
    }
}

#[cfg(all(test, rocketmq_loom))]
mod models;
#[cfg(all(test, not(rocketmq_loom)))]
mod tests;
