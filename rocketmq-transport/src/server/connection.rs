//! One client's connection, from its first byte to its last.

use std::{
    collections::HashMap,
    future,
    net::SocketAddr,
    sync::{Arc, atomic::Ordering},
};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    Answering, Reply, ResponseEncoding, Service,
    output::{Output, failure},
};
use crate::{
    CloseCause, Command, EncodeOptions, FrameError, HeaderEncoding, Opaque, RequestDeadline, Response,
    Stream, decode_frame,
    stream::{ReadHalf, WriteHalf},
};

/// One task reads, starts requests and writes their responses. So nothing is read while too many requests
/// are in flight or too many bytes wait for the socket, and the client feels it.
pub(super) struct Connection<H: Answering> {
    input: BytesMut,
    /// A task for each request in flight.
    requests: JoinSet<Reply>,
    /// Those of them that want a response.
    asked: HashMap<Id, Asked>,
    output: Output,
    ending: Option<Ending>,
    /// The last field, since fields are dropped in order and the requests go first.
    open: Open<H>,
}

/// What a response must know of its request.
struct Asked {
    opaque: Opaque,
    encoding: HeaderEncoding,
}

/// Nothing more is read; what is in flight may go on until then.
struct Ending {
    cause: CloseCause,
    until: RequestDeadline,
}

/// How a request's task has ended.
type Ended = Result<(Id, Reply), JoinError>;

impl<H: Answering> Connection<H> {
    pub(super) fn open(service: Service<H>, remote: SocketAddr) -> Self {
        Self {
            input: BytesMut::new(),
            requests: JoinSet::new(),
            asked: HashMap::new(),
            output: Output::default(),
            ending: None,
            open: Open::new(service, remote),
        }
    }

    /// Serves the client until it leaves, a fault ends the stream, or it is told to stop.
    pub(super) async fn run(mut self, stream: Stream, stop: CancellationToken) -> CloseCause {
        let (mut read, mut write) = stream.into_halves();
        let cause = match self.exchange(&mut read, &mut write, &stop).await {
            Ok(Ending { cause, until }) => {
                tokio::select! {
                    biased;
                    // The client may have gone by now, and there is no response left that it could miss.
                    _ = write.shutdown() => {}
                    () = reached(until) => {}
                }
                cause
            }
            Err(cause) => cause,
        };
        self.log_end(&cause);
        drop((read, write));
        self.requests.shutdown().await;
        cause
    }

    /// Ends in order once everything is answered and written or the drain is over; any fault ends it at once.
    async fn exchange(
        &mut self,
        read: &mut ReadHalf,
        write: &mut WriteHalf,
        stop: &CancellationToken,
    ) -> Result<Ending, CloseCause> {
        loop {
            let wants_more = self.start_requests().map_err(CloseCause::Malformed)? && self.ending.is_none();
            let idle = self.requests.is_empty() && !self.output.is_pending();
            let now = Instant::now();
            if let Some(ending) = self.ending.take_if(|ending| idle || ending.until.is_expired(now)) {
                return Ok(ending);
            }
            let until = self.ending.as_ref().map_or(RequestDeadline::never(), |ending| ending.until);
            if wants_more {
                self.input.reserve(READ_BYTES);
            }
            tokio::select! {
                got = read.read_buf(&mut self.input), if wants_more => {
                    if got.map_err(lost)? == 0 {
                        self.end(CloseCause::EndOfStream);
                    }
                }
                Some(ended) = self.requests.join_next_with_id(), if !self.output.is_full() => {
                    self.answer_all(ended);
                }
                written = self.output.write(write), if self.output.is_pending() => written.map_err(lost)?,
                () = stop.cancelled(), if self.ending.is_none() => {
                    self.input.clear();
                    self.end(CloseCause::Closed);
                }
                () = reached(until) => {}
            }
        }
    }

    /// Starts the whole requests that have been read, as far as the limits allow. True when all are started
    /// and there is room for more.
    fn start_requests(&mut self) -> Result<bool, FrameError> {
        let config = self.open.service.config;
        while self.requests.len() < config.max_in_flight.get() && !self.output.is_full() {
            let Some(command) = decode_frame(&mut self.input, &config.limits)? else { return Ok(true) };
            if command.is_response() {
                self.open.service.counts.ignored.fetch_add(1, Ordering::Relaxed);
                let (code, opaque) = (command.code().0, command.opaque().0);
                tracing::debug!(remote = %self.open.remote, code, opaque, "ignored a response to no request");
            } else {
                self.start(command);
            }
        }
        Ok(false)
    }

    fn start(&mut self, request: Command) {
        let asked = Asked { opaque: request.opaque(), encoding: request.encoding() };
        let wants_response = !request.is_oneway();
        let (handler, remote) = (Arc::clone(&self.open.service.handler), self.open.remote);
        let manner = handler.manner(&request, remote);
        let task = self.requests.spawn(async move { handler.answer(request, remote, manner).await });
        if wants_response {
            self.asked.insert(task.id(), asked);
        }
    }

    /// Encodes the responses of `first` and of all other requests that have ended by now.
    fn answer_all(&mut self, first: Ended) {
        let mut next = Some(first);
        while let Some(ended) = next {
            self.answer(ended);
            next = if self.output.is_full() { None } else { self.requests.try_join_next_with_id() };
        }
    }

    fn answer(&mut self, ended: Ended) {
        match ended {
            Ok((id, reply)) => {
                if let Some(asked) = self.asked.remove(&id) {
                    self.reply(&reply, asked);
                }
            }
            Err(panicked) => {
                let asked = self.asked.remove(&panicked.id());
                // What it panicked with may quote a message, so that is left to the panic hook.
                let opaque = asked.as_ref().map(|asked| asked.opaque.0);
                tracing::error!(remote = %self.open.remote, opaque, "a handler panicked");
                if let Some(asked) = asked {
                    self.respond(&failure("the handler panicked".into()), &asked);
                }
            }
        }
    }

    fn reply(&mut self, reply: &Reply, asked: Asked) {
        self.output.push_raw(&reply.raw);
        let asked = Asked { opaque: reply.opaque.unwrap_or(asked.opaque), ..asked };
        for response in reply.response.iter().cycle().take(reply.copies) {
            self.respond(response, &asked);
        }
    }

    fn respond(&mut self, response: &Response, asked: &Asked) {
        let config = &self.open.service.config;
        let encoding = match config.response_encoding {
            ResponseEncoding::Json => HeaderEncoding::Json,
            ResponseEncoding::AsRequest => asked.encoding,
        };
        let options = EncodeOptions { encoding, version: config.version };
        if let Err(error) = self.output.push(response, asked.opaque, options, &config.limits) {
            let opaque = asked.opaque.0;
            tracing::error!(remote = %self.open.remote, opaque, %error, "no response fits the limits");
        }
    }

    fn end(&mut self, cause: CloseCause) {
        self.ending =
            Some(Ending { cause, until: RequestDeadline::after(self.open.service.config.max_drain) });
    }

    fn log_end(&self, cause: &CloseCause) {
        let remote = self.open.remote;
        if let CloseCause::Malformed(error) = cause {
            tracing::warn!(%remote, %error, "malformed frame, closed the connection");
        } else {
            tracing::debug!(%remote, %cause, "connection ended");
        }
    }
}

/// A connection that counts as open; its end is told to the handler, whatever ends it.
struct Open<H: Answering> {
    service: Service<H>,
    remote: SocketAddr,
}

impl<H: Answering> Open<H> {
    fn new(service: Service<H>, remote: SocketAddr) -> Self {
        service.counts.open.fetch_add(1, Ordering::Relaxed);
        Self { service, remote }
    }
}

impl<H: Answering> Drop for Open<H> {
    fn drop(&mut self) {
        self.service.handler.disconnected(self.remote);
        self.service.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn reached(deadline: RequestDeadline) {
    match deadline.at() {
        Some(instant) => sleep_until(instant).await,
        None => future::pending().await,
    }
}

fn lost(error: std::io::Error) -> CloseCause {
    CloseCause::Io(Arc::new(error))
}

/// What one read asks for at least.
const READ_BYTES: usize = 16 << 10;
