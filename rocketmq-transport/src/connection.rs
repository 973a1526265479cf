//! One socket from open to close: encode, register, enqueue; the order of closing.

use std::{
    borrow::Cow,
    fmt,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    task::JoinError,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::{
    CloseCause, EncodeError, Opaque, Peer, Permit, Request, RetireReason, StageClock, TransportConfig,
    codec::Outgoing,
    command::FLAG_ONEWAY,
    link::Link,
    pending::Refused,
    reader::{ReadEnd, Reader},
    request::{Frame, Kind, RequestRecord, Terms},
    stream::{Stream, WriteHalf},
    writer::{Stopped, Writer},
};

/// One generation: a socket, its tasks, and what is pending on it.
pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    pub(crate) remote: Option<SocketAddr>,
    stop: OnceLock<Stop>,
    stopping: CancellationToken,
    end: OnceLock<End>,
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
pub(crate) struct End {
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
    /// Takes over `stream`, with a reader, a writer, and a task that closes them in order.
    pub(crate) fn open(stream: Stream, link: Link, peer: &Peer) -> Arc<Self> {
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
            end: OnceLock::new(),
            ended: CancellationToken::new(),
            cut: CancellationToken::new(),
        });
        tokio::spawn(drive(Arc::clone(&connection), reader, writer).instrument(span));
        connection
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
            let head = self.encode(&signed, opaque).map_err(Rejected::Invalid)?;
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
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.get()
    }

    /// Whether every task of it has ended and nothing is pending.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until every task of it has ended and nothing is pending. Cancel safe.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    fn encode(&self, signed: &Signed<'_>, opaque: Opaque) -> Result<Vec<u8>, EncodeError> {
        let config = &*self.link.config;
        outgoing(signed, opaque, config).encode_head(&config.frame_limits())
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
            .field("end", &self.end.get())
            .finish_non_exhaustive()
    }
}

/// Runs reader and writer until one of them ends or the connection is to stop, and then closes in order: the
/// cause is recorded, new work refused, the writer stopped and its count final, what the socket holds read, and
/// only then the waiters ended.
async fn drive(connection: Arc<Connection>, reader: Reader, writer: Writer) {
    let mut guard = EndGuard { connection: &connection, cause: CloseCause::Aborted };
    let link = &connection.link;
    let stop_reader = CancellationToken::new();
    let mut reader = tokio::spawn(reader.run(stop_reader.clone()).in_current_span());
    let mut writer = tokio::spawn(writer.run().in_current_span());
    let (mut read_end, mut write_end) = (None, None);
    tokio::select! {
        () = connection.stopping.cancelled() => {}
        end = &mut reader => read_end = Some(end),
        end = &mut writer => write_end = Some(end),
    }
    let stop = connection.stop.get();
    guard.cause = cause_of(stop, read_end.as_ref(), write_end.as_ref());
    tracing::info!(cause = %guard.cause, "connection closing");
    // Before anybody is refused: who looks for another connection finds out why this one is of no use.
    let _ = connection.end.set(End { cause: guard.cause.clone(), at: Instant::now() });
    link.table.close();
    link.lanes.close();
    let write_end = match write_end {
        Some(end) => end,
        None => writer.await,
    };
    let until = stop.and_then(|stop| stop.farewell).map(|farewell| Instant::now() + farewell);
    let write_half = write_end.ok().map(|(_, half)| half);
    let write_half = connection.cut.run_until_cancelled(shut_down(write_half, until)).await.flatten();
    stop_reader.cancel();
    let read_end = match read_end {
        Some(end) => end,
        None => reader.await,
    };
    if let Ok(ReadEnd::Told(reader)) = read_end {
        match until {
            Some(until) => {
                let _ = connection.cut.run_until_cancelled(reader.read_to_end(until)).await;
            }
            None => reader.read_what_is_there().await,
        }
    }
    drop(write_half);
    drop(guard);
}

/// Why the connection ends: because it was told to, or because of the task that ended first.
fn cause_of(
    stop: Option<&Stop>,
    read_end: Option<&Result<ReadEnd, JoinError>>,
    write_end: Option<&Result<(Stopped, WriteHalf), JoinError>>,
) -> CloseCause {
    if let Some(stop) = stop {
        return stop.cause.clone();
    }
    match (read_end, write_end) {
        (Some(Ok(ReadEnd::Failed(cause))), _) | (_, Some(Ok((Stopped::Failed(cause), _)))) => cause.clone(),
        (Some(Err(error)), _) | (_, Some(Err(error))) if error.is_panic() => CloseCause::Panicked,
        _ => CloseCause::Aborted,
    }
}

/// Shuts our side down where there is time for it, so that the peer sees the end of the stream.
async fn shut_down(half: Option<WriteHalf>, until: Option<Instant>) -> Option<WriteHalf> {
    let (Some(mut half), Some(until)) = (half, until) else { return None };
    // A peer that does not take our last bytes in time gets the close all the same.
    let _ = timeout_at(until, half.shutdown()).await;
    Some(half)
}

/// Ends what is pending, whatever ends the task that drives the connection.
struct EndGuard<'a> {
    connection: &'a Connection,
    cause: CloseCause,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        let (connection, at) = (self.connection, Instant::now());
        let _ = connection.end.set(End { cause: self.cause.clone(), at });
        connection.link.close(&self.cause, at);
        connection.ended.cancel();
    }
}
