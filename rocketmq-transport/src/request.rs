//! The record of one request: its states and stage marks behind one lock, the only arbiter.
//!
//! Caller, lane and table share the record. Every contest — withdraw against offer, response against deadline,
//! drop against close — is one transition under its lock; being found or removed in lane or table decides
//! nothing. Transitions return what has to be dropped or woken, so that it happens outside every lock.

mod leftover;
mod state;
mod terms;

use std::{
    mem,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::Instant;

pub(crate) use self::{
    leftover::Freed,
    terms::{
        Accepted, Delivery, End, Ending, Frame, Kind, Late, Look, OVERHEAD, Offer, Outcome, Place, Settled,
        Terms,
    },
};
use self::{
    leftover::Leftover,
    state::{Noted, State, failed},
};
use crate::{
    CloseCause, Command, Opaque, Permit, Stage, StageClock, TransportErrorKind,
    stage::FrameFate,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

/// One request from its registration to its end, or to the end of its tombstone.
#[derive(Debug)]
pub(crate) struct RequestRecord {
    pub(crate) opaque: Opaque,
    pub(crate) terms: Terms,
    /// Its place in the lane; written and read under the lane's lock only, hence `Relaxed`.
    place: AtomicU32,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    clock: StageClock,
    waker: Option<Waker>,
    /// The count and the overhead, given back when the request ends; the frame has its own permit.
    permit: Option<Permit>,
}

impl RequestRecord {
    /// A queued request; `clock` has entered [`Stage::BeforeWrite`], and `waker` is woken when it ends.
    #[inline]
    pub(crate) fn new(
        opaque: Opaque,
        terms: Terms,
        (frame, permit): (Frame, Permit),
        clock: StageClock,
        waker: &Waker,
    ) -> Self {
        let (state, waker) = (State::Queued(frame), Some(waker.clone()));
        let inner = Inner { state, clock, waker, permit: Some(permit) };
        Self { opaque, terms, place: AtomicU32::new(u32::MAX), inner: Mutex::new(inner) }
    }

    /// Takes back the permit and the frame, where registration was refused.
    pub(crate) fn into_parts(self) -> Option<(Permit, Frame)> {
        let inner = self.inner.into_inner();
        match inner.state {
            State::Queued(frame) => Some((inner.permit?, frame)),
            _ => None,
        }
    }

    pub(crate) fn place(&self) -> u32 {
        self.place.load(Relaxed)
    }

    pub(crate) fn set_place(&self, place: u32) {
        self.place.store(place, Relaxed);
    }

    /// The outcome once there is one, with the clock stopped at it; registers the waker until then.
    #[inline]
    pub(crate) fn poll_outcome(&self, cx: &Context<'_>) -> Poll<(Outcome, StageClock)> {
        let mut inner = self.inner.lock();
        if let Some(outcome) = inner.state.take_untold() {
            return Poll::Ready((outcome, inner.clock));
        }
        let replaced = match &inner.waker {
            Some(waker) if waker.will_wake(cx.waker()) => None,
            _ => inner.waker.replace(cx.waker().clone()),
        };
        drop(inner);
        drop(replaced);
        Poll::Pending
    }

    /// The deadline, the start-by instant or the drop of the caller, at `now`.
    pub(crate) fn end(&self, end: End, now: Instant) -> Ending {
        let mut leftover = Leftover::default();
        let mut inner = self.inner.lock();
        if inner.cancel_before_start(end, now, &mut leftover) {
            return Ending::Withdrawn;
        }
        match (&mut inner.state, end) {
            (State::Offered(noted), _) => {
                noted.note(end);
                if end == End::Drop {
                    leftover.freed.waker = inner.waker.take();
                }
                Ending::Noted
            }
            (State::Writing { .. } | State::AwaitingResponse { .. }, End::Deadline | End::Drop) => {
                match inner.bury(end, &self.terms, now, &mut leftover) {
                    Settled::Buried { written } => Ending::Buried { written },
                    _ => Ending::Removed,
                }
            }
            (State::Writing { .. } | State::AwaitingResponse { .. }, End::StartBy)
            | (
                State::Queued(_) | State::Tombstone { .. } | State::AnsweredLate { .. } | State::Ended { .. },
                _,
            ) => Ending::Nothing,
        }
    }

    /// The writer wants the frame for one poll of the socket.
    #[inline]
    pub(crate) fn offer(&self, now: Instant) -> Offer {
        if let Some(end) = self.terms.due(now) {
            self.withdraw(end, now);
            return Offer::Gone;
        }
        let mut inner = self.inner.lock();
        match mem::replace(&mut inner.state, State::Offered(Noted::default())) {
            State::Queued(frame) => Offer::Frame(frame),
            other => {
                inner.state = other;
                Offer::Gone
            }
        }
    }

    fn withdraw(&self, end: End, now: Instant) {
        let mut leftover = Leftover::default();
        self.inner.lock().cancel_before_start(end, now, &mut leftover);
    }

    /// The poll the frame was offered for is over: applies what was noted meanwhile. A response that turns out
    /// to belong nowhere is returned for the classification.
    #[inline]
    pub(crate) fn settle(&self, accepted: Accepted, now: Instant) -> (Settled, Option<Delivery>) {
        if matches!(accepted, Accepted::All)
            && self.terms.kind == Kind::Call
            && self.inner.lock().settle_quietly(now)
        {
            return (Settled::Started, None);
        }
        self.settle_with_all_noted(accepted, now)
    }

    fn settle_with_all_noted(&self, accepted: Accepted, now: Instant) -> (Settled, Option<Delivery>) {
        let mut leftover = Leftover::default();
        let mut inner = self.inner.lock();
        let State::Offered(noted) = &mut inner.state else { return (Settled::Removed, None) };
        let noted = mem::take(noted);
        if let Accepted::Nothing(frame) = accepted {
            inner.state = State::Queued(frame);
            let stray = noted.response.is_some().then_some(Delivery::Unsolicited);
            leftover.response = noted.response;
            let withdrawn = noted.end.is_some_and(|end| inner.cancel_before_start(end, now, &mut leftover));
            return (if withdrawn { Settled::Withdrawn } else { Settled::Queued }, stray);
        }
        inner.clock.enter(Stage::Writing, now);
        inner.state = State::Writing { fate: FrameFate::MayBeWhole };
        let mut settled = Settled::Started;
        if matches!(accepted, Accepted::All) {
            settled = inner.written(&self.terms, now, &mut leftover);
        }
        let end = noted.end.filter(|end| *end != End::StartBy);
        let Some(response) = noted.response else {
            return match end {
                Some(end) if settled == Settled::Started => {
                    (inner.bury(end, &self.terms, now, &mut leftover), None)
                }
                _ => (settled, None),
            };
        };
        match end {
            Some(end) if !noted.response_first => {
                inner.bury(end, &self.terms, now, &mut leftover);
                inner.state.answer_late(response);
                (Settled::Removed, Some(Delivery::Late { by: Duration::ZERO }))
            }
            _ => {
                inner.clock.stop(now);
                inner.finish(State::Ended { untold: Some(Outcome::Answered(response)) }, &mut leftover);
                (Settled::Finished, None)
            }
        }
    }

    /// The socket has accepted the last byte of a frame that had been accepted in part.
    #[inline]
    pub(crate) fn finish(&self, now: Instant) -> Settled {
        let mut leftover = Leftover::default();
        let mut inner = self.inner.lock();
        match inner.state {
            State::Writing { .. } => inner.written(&self.terms, now, &mut leftover),
            State::Tombstone { .. } => Settled::Buried { written: Some(now) },
            State::Queued(_)
            | State::Offered(_)
            | State::AwaitingResponse { .. }
            | State::AnsweredLate { .. }
            | State::Ended { .. } => Settled::Removed,
        }
    }

    /// The writer has stopped for good with this frame begun and not finished, on a stream that vouches for
    /// what it did not accept.
    pub(crate) fn cut_short(&self) {
        if let State::Writing { fate } = &mut self.inner.lock().state {
            *fate = FrameFate::CutShort;
        }
    }

    /// A response with this record's opaque was read on its generation. It comes back where nobody waits for it: the
    /// request has not left, takes no response, or has had one.
    #[inline]
    pub(crate) fn respond(&self, response: Command, now: Instant) -> Result<(Delivery, Freed), Command> {
        let mut inner = self.inner.lock();
        match &mut inner.state {
            State::Writing { .. } | State::AwaitingResponse { .. } if self.terms.kind == Kind::Call => {
                inner.clock.stop(now);
                inner.state = State::Ended { untold: Some(Outcome::Answered(response)) };
                Ok((Delivery::Completed, inner.free()))
            }
            State::Offered(noted) if self.terms.kind == Kind::Call && noted.response.is_none() => {
                noted.response_first = noted.end.is_none_or(|end| end == End::StartBy);
                noted.response = Some(response);
                Ok((Delivery::Noted, Freed::default()))
            }
            State::Tombstone { ended, .. } => {
                let by = now.saturating_duration_since(*ended);
                inner.state.answer_late(response);
                Ok((Delivery::Late { by }, Freed::default()))
            }
            State::Queued(_)
            | State::Offered(_)
            | State::Writing { .. }
            | State::AwaitingResponse { .. }
            | State::AnsweredLate { .. }
            | State::Ended { .. } => Err(response),
        }
    }

    /// The generation ends. The writer has stopped, so no frame is offered, unless its poll panicked: that
    /// counts as having accepted all.
    pub(crate) fn close(&self, cause: &CloseCause, now: Instant) {
        // That is no success to tell a one-way request of.
        let accepted = if self.terms.kind == Kind::Oneway { Accepted::Some } else { Accepted::All };
        self.settle(accepted, now);
        let mut leftover = Leftover::default();
        let mut inner = self.inner.lock();
        let (stage, fate) = match &inner.state {
            State::Queued(_) => (Stage::BeforeWrite, FrameFate::MayBeWhole),
            State::Writing { fate } => (Stage::Writing, *fate),
            State::AwaitingResponse { .. } => (Stage::AwaitingResponse, FrameFate::MayBeWhole),
            State::Offered(_) | State::Tombstone { .. } => {
                inner.state.end();
                return;
            }
            State::AnsweredLate { .. } | State::Ended { .. } => return,
        };
        let kind = match cause {
            CloseCause::Closed => TransportErrorKind::Closed,
            cause => TransportErrorKind::ConnectionLost(cause.clone()),
        };
        inner.clock.stop(now);
        let untold = Some(Outcome::Failed { kind, stage, fate });
        inner.finish(State::Ended { untold }, &mut leftover);
    }

    /// The tombstone is forgotten; its answer, should it come, is nobody's.
    pub(crate) fn forget(&self) {
        let mut inner = self.inner.lock();
        if let State::Tombstone { .. } = inner.state {
            inner.state.end();
        }
    }

    /// Whether the answer to a request that has ended has come, or may still come.
    pub(crate) fn late(&self) -> Late {
        match &self.inner.lock().state {
            State::Tombstone { .. } => Late::MayCome,
            State::AnsweredLate { response, .. } => Late::Came(response.clone()),
            State::Queued(_)
            | State::Offered(_)
            | State::Writing { .. }
            | State::AwaitingResponse { .. }
            | State::Ended { .. } => Late::Gone,
        }
    }

    /// Where the request is, at `now`.
    pub(crate) fn look(&self, now: Instant) -> Look {
        let inner = self.inner.lock();
        let (place, since) = match &inner.state {
            State::Queued(_) | State::Offered(_) => (Place::Stage(Stage::BeforeWrite), None),
            State::Writing { .. } => (Place::Stage(Stage::Writing), None),
            State::AwaitingResponse { .. } => (Place::Stage(Stage::AwaitingResponse), None),
            State::Tombstone { ended, .. } => (Place::Tombstone, Some(*ended)),
            State::AnsweredLate { .. } | State::Ended { .. } => (Place::Ended, None),
        };
        let age = match since {
            Some(ended) => inner.clock.elapsed() + now.saturating_duration_since(ended),
            None => inner.clock.elapsed_at(now),
        };
        Look { place, age }
    }

    /// Whether the request is its own tombstone.
    #[cfg(test)]
    pub(crate) fn is_tombstone(&self) -> bool {
        matches!(self.inner.lock().state, State::Tombstone { .. })
    }
}

impl Inner {
    /// Queued → Ended: takes the frame back; true means not one byte of it reaches the socket.
    fn cancel_before_start(&mut self, end: End, now: Instant, leftover: &mut Leftover) -> bool {
        if !matches!(self.state, State::Queued(_)) {
            return false;
        }
        self.clock.stop(now);
        self.finish(State::Ended { untold: failed(end, Stage::BeforeWrite) }, leftover);
        true
    }

    /// Writing, AwaitingResponse → Tombstone; a one-way request leaves none.
    fn bury(&mut self, end: End, terms: &Terms, now: Instant, leftover: &mut Leftover) -> Settled {
        let (stage, written) = match self.state {
            State::AwaitingResponse { written } => (Stage::AwaitingResponse, Some(written)),
            _ => (Stage::Writing, None),
        };
        self.clock.stop(now);
        match terms.kind {
            Kind::Call => {
                let untold = (end == End::Deadline).then_some(stage);
                self.finish(State::Tombstone { ended: now, untold }, leftover);
                Settled::Buried { written }
            }
            Kind::Oneway => {
                self.finish(State::Ended { untold: failed(end, stage) }, leftover);
                Settled::Removed
            }
        }
    }

    /// Offered → AwaitingResponse, where nothing happened meanwhile: what most calls come to.
    #[inline]
    fn settle_quietly(&mut self, now: Instant) -> bool {
        let quiet = matches!(&self.state, State::Offered(noted) if noted.is_nothing());
        if quiet {
            self.clock.enter(Stage::Writing, now);
            self.await_response(now);
        }
        quiet
    }

    #[inline]
    fn await_response(&mut self, now: Instant) {
        self.clock.enter(Stage::AwaitingResponse, now);
        self.state = State::AwaitingResponse { written: now };
    }

    /// Writing → AwaitingResponse; for a one-way request that is its success.
    #[inline]
    fn written(&mut self, terms: &Terms, now: Instant, leftover: &mut Leftover) -> Settled {
        match terms.kind {
            Kind::Call => {
                self.await_response(now);
                Settled::Started
            }
            Kind::Oneway => {
                self.clock.stop(now);
                self.finish(State::Ended { untold: Some(Outcome::Written) }, leftover);
                Settled::Finished
            }
        }
    }

    fn finish(&mut self, state: State, leftover: &mut Leftover) {
        if let State::Queued(frame) = mem::replace(&mut self.state, state) {
            leftover.frame = Some(frame);
        }
        leftover.freed = self.free();
    }

    #[inline]
    fn free(&mut self) -> Freed {
        Freed { permit: self.permit.take(), waker: self.waker.take() }
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(all(test, rocketmq_loom))]
mod models;
#[cfg(all(test, not(rocketmq_loom)))]
mod tests;
