//! One socket from open to close: a request's encoding, its registration and its one wait.

mod driver;

use std::{
    borrow::Cow,
    fmt,
    future::{Future, poll_fn},
    net::SocketAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::driver::drive;
use crate::{
    CloseCause, EncodeError, Opaque, Peer, Permit, Request, RetireReason, StageClock, TransportConfig,
    codec::Outgoing,
    command::FLAG_ONEWAY,
    link::Link,
    pending::Refused,
    reader::Reader,
    request::{End, Frame, Kind, Outcome, RequestRecord, Terms},
    stream::Stream,
    writer::Writer,
};

/// One generation: a socket, its tasks, and what is pending on it.
pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    pub(crate) remote: Option<SocketAddr>,
    stop: OnceLock<Stop>,
    stopping: CancellationToken,
    closing: OnceLock<Closing>,
    ended: CancellationToken,
    /// Cuts a farewell short.
    cut: CancellationToken,
}

/// A request to stop.
#[derive(Debug)]
struct Stop {
    cause: CloseCause,
    /// How long the peer may still be listened to after our side was shut down.
    farewell: Option<Duration>,
}

/// Why a connection ended, and since when that is known.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) cause: CloseCause,
    pub(crate) at: Instant,
}

/// What a request takes through admission to its frame and record.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The count and the overhead.
    pub(crate) request: Permit,
    /// The bytes of the frame.
    pub(crate) bytes: Permit,
}

/// A request ready to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signed<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) signature: &'a [(Cow<'static, str>, String)],
    pub(crate) terms: Terms,
}

/// Why a request was not taken.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// It must not start any more.
    Expired,
    /// The generation takes no more; the claim goes on to the next.
    Retired(Claim),
    /// It cannot be written.
    Invalid(EncodeError),
}

impl Connection {
    /// Takes over `stream`. The task that is to be started runs a reader and a writer and closes them in order;
    /// dropped before its end, and also if it never runs, it ends what is pending.
    pub(crate) fn open(
        stream: Stream,
        link: Link,
        peer: &Peer,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let link = Arc::new(link);
        let (remote, acceptance) = (stream.remote, stream.acceptance);
        let (read, write) = stream.into_halves();
        let reader = Reader::new(Arc::clone(&link), read);
        let writer = Writer::new(Arc::clone(&link), write, acceptance);
        let span = tracing::info_span!(parent: None, "connection", %peer, generation = link.owner().get());
        let connection = Arc::new(Self {
            link,
            remote,
            stop: OnceLock::new(),
            stopping: CancellationToken::new(),
            closing: OnceLock::new(),
            ended: CancellationToken::new(),
            cut: CancellationToken::new(),
        });
        let task = drive(Arc::clone(&connection), reader, writer).instrument(span);
        (connection, task)
    }

    /// Registers a request and queues its frame; what becomes of it is in the record.
    pub(crate) fn submit(
        &self,
        signed: Signed<'_>,
        mut claim: Claim,
        clock: StageClock,
        now: Instant,
    ) -> Result<Arc<RequestRecord>, Rejected> {
        loop {
            let Some(opaque) = self.link.table.issue_opaque() else {
                self.link.retire(RetireReason::Opaques, now);
                return Err(Rejected::Retired(claim));
            };
            let head = self.encode(&signed, opaque, &claim).map_err(Rejected::Invalid)?;
            let frame = Frame { head, body: signed.request.body.clone(), bytes: claim.bytes };
            let record = Arc::new(RequestRecord::new(opaque, signed.terms, frame, claim.request, clock));
            let refused = match self.link.table.register(&record, now) {
                Ok(()) => {
                    self.link.pulse.mark_used(now);
                    // Closed lanes mean that whoever closed them ends the record.
                    let _ = self.link.lanes.push(&record);
                    return Ok(record);
                }
                Err(refused) => refused,
            };
            let parts = Arc::into_inner(record).and_then(RequestRecord::into_claim);
            let (request, bytes) = parts.expect("a record that was not registered is ours alone");
            claim = Claim { request, bytes };
            match refused {
                Refused::Expired => return Err(Rejected::Expired),
                Refused::Retired => return Err(Rejected::Retired(claim)),
                Refused::KeyTaken => {}
            }
        }
    }

    /// Waits for `record` to end: by its response, its deadline, its start-by instant, or the end of the
    /// connection.
    ///
    /// Dropping the wait abandons the request: a queued frame is withdrawn, a begun one is finished and leaves a
    /// tombstone.
    pub(crate) async fn outcome(&self, record: &Arc<RequestRecord>) -> (Outcome, StageClock) {
        let link = &self.link;
        let mut guard = Guard { link, record, armed: true };
        let (mut limit, mut end) = match (record.terms.start_by, record.terms.deadline.at()) {
            (Some(start_by), at) if at.is_none_or(|at| start_by < at) => (Some(start_by), End::StartBy),
            (_, at) => (at, End::Deadline),
        };
        let mut timer = pin!(sleep_until(limit.unwrap_or_else(Instant::now)));
        let ended = poll_fn(|cx| {
            loop {
                if let Poll::Ready(ended) = record.poll_outcome(cx) {
                    return Poll::Ready(ended);
                }
                if limit.is_none() {
                    return Poll::Pending;
                }
                std::task::ready!(timer.as_mut().poll(cx));
                link.end(record, end, Instant::now());
                // Ended by that, or started, or offered: then the writer ends it after its poll, and wakes us.
                limit = if end == End::StartBy { record.terms.deadline.at() } else { None };
                end = End::Deadline;
                if let Some(at) = limit {
                    timer.as_mut().reset(at);
                }
            }
        })
        .await;
        guard.armed = false;
        ended
    }

    /// Asks the connection to end. What is pending ends with `cause`; the first cause counts. With a farewell
    /// the write side is shut down and the peer listened to for so long; a later stop without one cuts it short.
    pub(crate) fn stop(&self, cause: CloseCause, farewell: Option<Duration>) {
        if farewell.is_none() {
            self.cut.cancel();
        }
        if self.stop.set(Stop { cause, farewell }).is_ok() {
            self.link.table.close();
            self.stopping.cancel();
        }
    }

    /// Why it ended or is about to.
    pub(crate) fn closing(&self) -> Option<&Closing> {
        self.closing.get()
    }

    /// Whether every task of it has ended and nothing is pending.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until every task of it has ended and nothing is pending. Cancel safe.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// The head of the frame, in the room that admission has found it to need. With a signature it is measured
    /// again: a signer announces no more than the bytes of its names and values.
    fn encode(&self, signed: &Signed<'_>, opaque: Opaque, claim: &Claim) -> Result<Vec<u8>, EncodeError> {
        let config = &*self.link.config;
        let outgoing = outgoing(signed, opaque, config);
        let room = match signed.signature {
            [] => claim.bytes.bytes() as usize - outgoing.body_len,
            _ => outgoing.head_bound(),
        };
        outgoing.encode_head(room, &config.frame_limits())
    }
}

/// The frame of a request, but for its body.
pub(crate) fn outgoing<'a>(signed: &Signed<'a>, opaque: Opaque, config: &TransportConfig) -> Outgoing<'a> {
    Outgoing {
        code: signed.request.code,
        opaque,
        flag: if signed.terms.kind == Kind::Oneway { FLAG_ONEWAY } else { 0 },
        version: config.version,
        remark: None,
        header: signed.request.header,
        signature: signed.signature,
        body_len: signed.request.body.len(),
        encoding: config.header_encoding,
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("generation", &self.link.owner())
            .field("remote", &self.remote)
            .field("closing", &self.closing.get())
            .finish_non_exhaustive()
    }
}

/// Abandons the request when the wait for it is dropped.
struct Guard<'a> {
    link: &'a Link,
    record: &'a Arc<RequestRecord>,
    armed: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.link.end(self.record, End::Drop, Instant::now());
        }
    }
}
