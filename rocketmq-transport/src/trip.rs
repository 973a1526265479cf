//! What is known of a request on its way to a connection, so that it can fail at any point with all of it.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{
    Admission, CallOptions, Certainty, Code, Peer, Permit, Signature, Stage, StageClock, TransportError,
    TransportErrorKind,
    closed::Closed,
    codec::OpenHead,
    connection::Connection,
    error::Report,
    request::{End, Kind, Late, RequestRecord, Terms},
    stage::FrameFate,
};

/// A request's way through the stages before its frame: its terms, its clock, and what it has got so far.
#[derive(Debug)]
pub(crate) struct Trip<'a> {
    pub(crate) origin: Origin<'a>,
    pub(crate) terms: Terms,
    pub(crate) clock: StageClock,
    pub(crate) admission: Admission,
    /// When the clock was read last: at the start, and after each wait. What takes no wait takes no reading.
    pub(crate) now: Instant,
    /// Written to know what to ask of the budget, and kept for the frame where that takes no wait.
    pub(crate) head: Option<OpenHead>,
    /// From admission on.
    pub(crate) claim: Option<Claim>,
    /// The connection it was last meant for.
    pub(crate) connection: Option<Arc<Connection>>,
    /// From signing on; one signature serves every connection.
    pub(crate) signature: Option<Signature>,
    stage: Stage,
}

/// What a request takes through admission to its frame and record.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The count and the overhead.
    pub(crate) request: Permit,
    /// The bytes of the frame.
    pub(crate) bytes: Permit,
}

/// What a report of a request needs to know from its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    peer: &'a Peer,
    /// What earlier attempts under the same clock have waited for their responses.
    waited_before: Duration,
}

/// How a request ended that failed, with its clock stopped.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: TransportErrorKind,
    pub(crate) stage: Stage,
    pub(crate) fate: FrameFate,
    pub(crate) clock: StageClock,
}

/// Where a request failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    pub(crate) connection: &'a Connection,
    /// From its registration on.
    pub(crate) record: Option<&'a Arc<RequestRecord>>,
}

impl<'a> Trip<'a> {
    /// A request that entered the transport at `now`.
    #[inline]
    pub(crate) fn start(peer: &'a Peer, code: Code, kind: Kind, options: &CallOptions, now: Instant) -> Self {
        let CallOptions { deadline, start_by, class, admission, suspend, clock } = *options;
        let mut clock = clock.unwrap_or_else(|| StageClock::start(Stage::Admission, now));
        clock.enter(Stage::Admission, now);
        Self {
            origin: Origin { peer, waited_before: clock.spent(Stage::AwaitingResponse).unwrap_or_default() },
            terms: Terms { code, bytes: 0, class, kind, deadline, start_by, suspend },
            clock,
            admission,
            now,
            head: None,
            claim: None,
            connection: None,
            signature: None,
            stage: Stage::Admission,
        }
    }

    /// The next stage begins, with no time passed since the clock was read.
    #[inline]
    pub(crate) fn enter(&mut self, stage: Stage) {
        self.clock.enter(stage, self.now);
        self.stage = stage;
    }

    /// Fails where the request must not start any more.
    #[inline]
    pub(crate) fn check(&mut self) -> Result<(), TransportError> {
        if self.terms.may_start(self.now) { Ok(()) } else { Err(self.expired(self.now)) }
    }

    /// Waits for `future` until the request must not start any more, or `closed`. Cancel safe if `future` is.
    pub(crate) async fn until<F: Future>(
        &mut self,
        closed: &Closed,
        future: F,
    ) -> Result<F::Output, TransportError> {
        let limit = self.terms.start_limit();
        let mut expired = pin!(sleep_until(limit.unwrap_or_else(Instant::now)));
        tokio::select! {
            biased;
            output = future => {
                self.now = Instant::now();
                Ok(output)
            }
            () = closed.told() => Err(self.fail(TransportErrorKind::Closed)),
            () = &mut expired, if limit.is_some() => Err(self.expired(Instant::now())),
        }
    }

    /// The request must not start any more at `now`.
    #[cold]
    pub(crate) fn expired(&mut self, now: Instant) -> TransportError {
        self.fail(self.terms.due(now).and_then(End::kind).unwrap_or(TransportErrorKind::DeadlineExpired))
    }

    /// The request ends here and now.
    #[cold]
    pub(crate) fn fail(&mut self, kind: TransportErrorKind) -> TransportError {
        self.clock.stop(Instant::now());
        let place = self.connection.as_deref().map(|connection| Place { connection, record: None });
        let failure = Failure { kind, stage: self.stage, fate: FrameFate::MayBeWhole, clock: self.clock };
        self.origin.report(&self.terms, place, failure)
    }
}

impl Origin<'_> {
    /// The error of a request asked with `terms` that ended as `failure` says.
    #[cold]
    pub(crate) fn report(&self, terms: &Terms, place: Option<Place<'_>>, failure: Failure) -> TransportError {
        let Failure { kind, stage, fate, clock } = failure;
        let now = Instant::now();
        let connection = place.map(|place| place.connection);
        let record = place.and_then(|place| place.record);
        let awaiting = connection.filter(|_| stage == Stage::AwaitingResponse);
        let heard = awaiting.and_then(|on| on.link.pulse.last_heard());
        let late_by = terms.deadline.at().map(|at| now.saturating_duration_since(at));
        let unpolled = awaiting.map_or(Duration::ZERO, |on| on.link.pulse.unpolled(now));
        let stall = late_by
            .filter(|_| matches!(kind, TransportErrorKind::DeadlineExpired))
            .map(|by| by.max(unpolled));
        let certainty = kind.certainty(stage, fate);
        let unknown = record.filter(|_| certainty == Certainty::Unknown);
        let awaited = unknown.filter(|record| !matches!(record.late(), Late::Gone));
        TransportError::new(Report {
            certainty,
            kind,
            stage,
            clock,
            peer: self.peer.clone(),
            remote: connection.and_then(|on| on.remote),
            generation: connection.map(|on| on.link.owner()),
            opaque: record.map(|record| record.opaque),
            code: terms.code,
            budget: terms.deadline.budget(),
            bytes: terms.bytes,
            // The caller may look long after its request has ended.
            last_heard: heard.map(|heard| clock.marked_at().saturating_duration_since(heard)),
            waited: clock.spent(Stage::AwaitingResponse).and_then(|all| all.checked_sub(self.waited_before)),
            client_stalled: stall.filter(|stall| *stall >= MIN_STALL),
            late: awaited.zip(connection).map(|(record, on)| on.link.late_answer(record)),
        })
    }
}

/// A deadline noticed, or a reader unpolled, so much too late is our own process's doing.
const MIN_STALL: Duration = Duration::from_millis(50);
