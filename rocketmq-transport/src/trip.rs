//! What is known of a request on its way, so that it can fail at any point with all of it.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    Admission, CallOptions, Certainty, Code, Peer, Stage, StageClock, TransportError, TransportErrorKind,
    connection::Connection,
    error::Report,
    request::{Kind, Late, RequestRecord, Terms},
    stage::FrameFate,
};

/// A request's way through the stages: its terms, its clock, and where it is.
#[derive(Debug)]
pub(crate) struct Trip<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) terms: Terms,
    pub(crate) clock: StageClock,
    pub(crate) admission: Admission,
    /// When the clock was read last: at the start, and after each wait. What takes no wait takes no reading.
    pub(crate) now: Instant,
    /// The connection it is on, from signing on.
    pub(crate) connection: Option<Arc<Connection>>,
    /// Its record there.
    pub(crate) record: Option<Arc<RequestRecord>>,
    stage: Stage,
    /// What earlier attempts under the same clock have waited for their responses.
    waited_before: Duration,
}

impl<'a> Trip<'a> {
    /// A request that enters the transport now.
    pub(crate) fn start(peer: &'a Peer, code: Code, kind: Kind, options: &CallOptions) -> Self {
        let CallOptions { deadline, start_by, class, admission, suspend, clock } = *options;
        let now = Instant::now();
        let mut clock = clock.unwrap_or_else(|| StageClock::start(Stage::Admission, now));
        clock.enter(Stage::Admission, now);
        let terms = Terms { code, bytes: 0, class, kind, deadline, start_by, suspend };
        let waited_before = clock.spent(Stage::AwaitingResponse).unwrap_or_default();
        let stage = Stage::Admission;
        Self { peer, terms, clock, admission, now, connection: None, record: None, stage, waited_before }
    }

    /// The next stage begins, unless the request must not go on.
    pub(crate) fn enter(&mut self, stage: Stage) -> Result<(), TransportError> {
        self.check()?;
        self.clock.enter(stage, self.now);
        self.stage = stage;
        Ok(())
    }

    /// Fails where the request must not start any more.
    pub(crate) fn check(&mut self) -> Result<(), TransportError> {
        if self.terms.may_start(self.now) { Ok(()) } else { Err(self.expired(self.now)) }
    }

    /// Waits for `future` until the request must not start any more, or `closed`. Cancel safe if `future` is.
    ///
    /// Boxed, since only a request that has to wait here pays for it, and every call's future would otherwise be
    /// larger by all of it.
    pub(crate) fn until<F: Future + Send>(
        &mut self,
        closed: &CancellationToken,
        future: F,
    ) -> Pin<Box<impl Future<Output = Result<F::Output, TransportError>> + Send>> {
        Box::pin(self.wait(closed, future))
    }

    async fn wait<F: Future>(
        &mut self,
        closed: &CancellationToken,
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
            () = closed.cancelled() => Err(self.fail(TransportErrorKind::Closed)),
            () = &mut expired, if limit.is_some() => Err(self.expired(Instant::now())),
        }
    }

    /// The request must not start any more at `now`.
    pub(crate) fn expired(&mut self, now: Instant) -> TransportError {
        self.fail(self.terms.late_start(now).unwrap_or(TransportErrorKind::DeadlineExpired))
    }

    /// The request ends here and now.
    #[cold]
    pub(crate) fn fail(&mut self, kind: TransportErrorKind) -> TransportError {
        self.clock.stop(Instant::now());
        self.report(kind, self.stage, FrameFate::MayBeWhole)
    }

    /// The request has ended in `stage`, with its clock stopped.
    pub(crate) fn report(&self, kind: TransportErrorKind, stage: Stage, fate: FrameFate) -> TransportError {
        let now = Instant::now();
        let connection = self.connection.as_ref();
        let awaiting = connection.filter(|_| stage == Stage::AwaitingResponse);
        let heard = awaiting.and_then(|on| on.link.pulse.last_heard());
        let late_by = self.terms.deadline.at().map(|at| now.saturating_duration_since(at));
        let unpolled = awaiting.map_or(Duration::ZERO, |on| on.link.pulse.unpolled(now));
        let stall = late_by
            .filter(|_| matches!(kind, TransportErrorKind::DeadlineExpired))
            .map(|by| by.max(unpolled));
        let certainty = kind.certainty(stage, fate);
        let unknown = self.record.as_ref().filter(|_| certainty == Certainty::Unknown);
        let awaited = unknown.filter(|record| !matches!(record.late(), Late::Gone));
        TransportError::new(Report {
            certainty,
            kind,
            stage,
            clock: self.clock,
            peer: self.peer.clone(),
            remote: connection.and_then(|on| on.remote),
            generation: connection.map(|on| on.link.owner()),
            opaque: self.record.as_ref().map(|record| record.opaque),
            code: self.terms.code,
            budget: self.terms.deadline.budget(),
            bytes: self.terms.bytes,
            // The caller may look long after its request has ended.
            last_heard: heard.map(|heard| self.clock.marked_at().saturating_duration_since(heard)),
            waited: self
                .clock
                .spent(Stage::AwaitingResponse)
                .and_then(|all| all.checked_sub(self.waited_before)),
            client_stalled: stall.filter(|stall| *stall >= MIN_STALL),
            late: awaited.zip(connection).map(|(record, on)| on.link.late_answer(record)),
        })
    }
}

/// A deadline noticed, or a reader unpolled, so much too late is our own process's doing.
const MIN_STALL: Duration = Duration::from_millis(50);
