//! A request in the hands of a connection: its encoding and registration, and the caller's one wait, for its record
//! to end.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use tokio::time::{Instant, Sleep, sleep_until};

use crate::{
    Command, EncodeError, Opaque, PendingRequestOwner, Request, RetireReason, StageClock, TransportConfig,
    TransportError,
    codec::{OpenHead, Outgoing},
    command::FLAG_ONEWAY,
    connection::Connection,
    pending::Refused,
    request::{End, Frame, Kind, Outcome, RequestRecord},
    spare::SpareHeads,
    trip::{Claim, Failure, Origin, Place, Trip},
};

/// A request in the hands of a connection.
///
/// Dropping it abandons the request: a queued frame is withdrawn, a begun one is finished and leaves a tombstone.
#[derive(Debug)]
pub(crate) struct Sent<'a> {
    origin: Origin<'a>,
    connection: Arc<Connection>,
    record: Arc<RequestRecord>,
    /// Whether the connection ends it at its limit.
    watched: bool,
    ended: bool,
}

/// Why a connection did not take a request.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// It must not start any more.
    Expired,
    /// The generation takes no more; the request goes on to the next.
    Retired,
    /// It cannot be written.
    Invalid(EncodeError),
}

/// A request that has ended well.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` where it was one-way.
    pub(crate) response: Option<Command>,
    pub(crate) clock: StageClock,
    pub(crate) generation: PendingRequestOwner,
    pub(crate) opaque: Opaque,
}

/// The caller's one wait, polled first by the task that submitted.
pub(crate) struct Wait<'a> {
    sent: Sent<'a>,
    polled: bool,
    /// Where the connection does not end the request at its limit: what does.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<'a> Sent<'a> {
    /// Registers a request with the connection it has and queues its frame; what becomes of it is in the record, which
    /// wakes `waker`. It takes body, claim and connection; a request whose generation has retired has them back.
    #[inline]
    pub(crate) fn submit(
        trip: &mut Trip<'a>,
        request: &mut Request<'_>,
        waker: &Waker,
    ) -> Result<Self, Rejected> {
        let connection = trip.connection.as_ref().expect("a request has a connection before it is submitted");
        let link = &connection.link;
        let mut claim = trip.claim.take().expect("a request is admitted before it is submitted");
        loop {
            let Some(opaque) = link.table.issue_opaque() else {
                link.retire(RetireReason::Opaques, trip.now);
                trip.claim = Some(claim);
                return Err(Rejected::Retired);
            };
            let open = match trip.head.take() {
                Some(open) => Ok(open),
                None => open_head(request, trip, &link.config, &link.spares),
            };
            let close = |open: OpenHead| open.close(opaque, request.body.len(), &link.config.frame_limits());
            let head = open.and_then(close).map_err(Rejected::Invalid)?;
            let frame = Frame { head, body: mem::take(&mut request.body), bytes: claim.bytes };
            let retained = (frame, claim.request);
            let record = Arc::new(RequestRecord::new(opaque, trip.terms, retained, trip.clock, waker));
            let refused = match link.register(&record, trip.now) {
                Ok(watched) => {
                    // Closed lanes mean that whoever closed them ends the record.
                    let _ = link.lanes.push(&record);
                    let connection = trip.connection.take().expect("it had one");
                    return Ok(Self { origin: trip.origin, connection, record, watched, ended: false });
                }
                Err(refused) => refused,
            };
            let parts = Arc::into_inner(record).and_then(RequestRecord::into_parts);
            let (permit, frame) = parts.expect("a record that was not registered is ours alone");
            claim = Claim { request: permit, bytes: frame.bytes };
            request.body = frame.body;
            match refused {
                Refused::Expired => return Err(Rejected::Expired),
                Refused::Retired => {
                    trip.claim = Some(claim);
                    return Err(Rejected::Retired);
                }
                Refused::KeyTaken => {}
            }
        }
    }

    /// Waits for the record to end: by its response, its deadline, its start-by instant, or the end of the
    /// connection.
    #[inline]
    pub(crate) fn wait(self) -> Wait<'a> {
        let limit = if self.watched { None } else { self.record.terms.start_limit() };
        Wait { sent: self, polled: false, timer: limit.map(|at| Box::pin(sleep_until(at))) }
    }

    #[inline]
    fn output(&self, outcome: Outcome, clock: StageClock) -> Result<Ended, TransportError> {
        let response = match outcome {
            Outcome::Answered(response) => Some(response),
            Outcome::Written => None,
            Outcome::Failed { kind, stage, fate } => {
                let place = Place { connection: &self.connection, record: Some(&self.record) };
                let failure = Failure { kind, stage, fate, clock };
                return Err(self.origin.report(&self.record.terms, Some(place), failure));
            }
        };
        let (generation, opaque) = (self.connection.link.owner(), self.record.opaque);
        Ok(Ended { response, clock, generation, opaque })
    }
}

impl Future for Wait<'_> {
    type Output = Result<Ended, TransportError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let wait = self.get_mut();
        let (record, connection) = (&wait.sent.record, &wait.sent.connection);
        let (outcome, clock) = loop {
            // The record has had the waker of the first poll from the start.
            if mem::replace(&mut wait.polled, true)
                && let Poll::Ready(ended) = record.poll_outcome(cx)
            {
                break ended;
            }
            let Some(timer) = &mut wait.timer else { return Poll::Pending };
            ready!(timer.as_mut().poll(cx));
            let now = Instant::now();
            if let Some(end) = record.terms.due(now) {
                connection.link.end(record, end, now);
            }
            // Ended by that, or started, or offered: then the writer ends it after its poll, and wakes us.
            match record.terms.deadline.at().filter(|at| *at > now) {
                Some(at) => timer.as_mut().reset(at),
                None => wait.timer = None,
            }
        };
        wait.sent.ended = true;
        Poll::Ready(wait.sent.output(outcome, clock))
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.connection.link.end(&self.record, End::Drop, Instant::now());
        }
    }
}

/// The head of the frame, with all that there is of the signature, and with the longest opaque in the place of its own.
#[inline]
pub(crate) fn open_head(
    request: &Request<'_>,
    trip: &Trip<'_>,
    config: &TransportConfig,
    spares: &SpareHeads,
) -> Result<OpenHead, EncodeError> {
    let outgoing = Outgoing {
        code: request.code,
        opaque: Opaque(i32::MIN),
        flag: if trip.terms.kind == Kind::Oneway { FLAG_ONEWAY } else { 0 },
        version: config.version,
        remark: None,
        header: request.header,
        signature: trip.signature.as_deref().unwrap_or_default(),
        body_len: request.body.len(),
        encoding: config.header_encoding,
    };
    outgoing.open_head(spares.take())
}
