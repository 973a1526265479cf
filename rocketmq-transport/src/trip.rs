//! What is known of a request on its way, so that it can fail at any point with all of it.

use std::{future::Future, net::SocketAddr, pin::pin};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::{
    Code, Opaque, Peer, PendingRequestOwner, Stage, StageClock, TransportError, TransportErrorKind,
    error::Report, request::Terms, stage::FrameFate,
};

/// A request's way through the stages: its terms, its clock, and where it is.
#[derive(Debug)]
pub(crate) struct Trip<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) code: Code,
    pub(crate) terms: Terms,
    pub(crate) clock: StageClock,
    /// What admission charges.
    pub(crate) bytes: u64,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) generation: Option<PendingRequestOwner>,
    pub(crate) opaque: Option<Opaque>,
    stage: Stage,
}

impl<'a> Trip<'a> {
    /// A request that enters admission at `now`; `clock` is what was spent before.
    pub(crate) fn start(
        peer: &'a Peer,
        code: Code,
        terms: Terms,
        clock: Option<StageClock>,
        now: Instant,
    ) -> Self {
        let mut clock = clock.unwrap_or_else(|| StageClock::start(Stage::Admission, now));
        clock.enter(Stage::Admission, now);
        Self {
            peer,
            code,
            terms,
            clock,
            bytes: 0,
            remote: None,
            generation: None,
            opaque: None,
            stage: Stage::Admission,
        }
    }

    /// The next stage begins, unless the request must not go on.
    pub(crate) fn enter(&mut self, stage: Stage, now: Instant) -> Result<(), TransportError> {
        self.check(now)?;
        self.clock.enter(stage, now);
        self.stage = stage;
        Ok(())
    }

    /// Fails where the request must not start any more.
    pub(crate) fn check(&mut self, now: Instant) -> Result<(), TransportError> {
        self.terms.late_start(now).map_or(Ok(()), |kind| Err(self.fail(kind)))
    }

    /// Waits for `future` until the request must not start any more, or `closed`. Cancel safe if `future` is.
    pub(crate) async fn until<F: Future>(
        &mut self,
        closed: &CancellationToken,
        future: F,
    ) -> Result<F::Output, TransportError> {
        let limit = self.terms.start_limit();
        let mut expired = pin!(sleep_until(limit.unwrap_or_else(Instant::now)));
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = closed.cancelled() => Err(self.fail(TransportErrorKind::Closed)),
            () = &mut expired, if limit.is_some() => Err(self.expired(Instant::now())),
        }
    }

    /// The request must not start any more at `now`.
    pub(crate) fn expired(&mut self, now: Instant) -> TransportError {
        self.fail(self.terms.late_start(now).unwrap_or(TransportErrorKind::DeadlineExpired))
    }

    /// The request ends here and now.
    pub(crate) fn fail(&mut self, kind: TransportErrorKind) -> TransportError {
        self.clock.stop(Instant::now());
        self.report(kind, self.stage, FrameFate::MayBeWhole, None)
    }

    /// The request has ended in `stage`, with its clock stopped; the peer was last heard at `heard`.
    pub(crate) fn report(
        &self,
        kind: TransportErrorKind,
        stage: Stage,
        fate: FrameFate,
        heard: Option<Instant>,
    ) -> TransportError {
        TransportError::new(Report {
            certainty: kind.certainty(stage, fate),
            kind,
            stage,
            clock: self.clock,
            peer: self.peer.clone(),
            remote: self.remote,
            generation: self.generation,
            opaque: self.opaque,
            code: self.code,
            budget: self.terms.deadline.budget(),
            bytes: self.bytes,
            last_heard: heard.map(|heard| Instant::now().saturating_duration_since(heard)),
        })
    }
}
