//! What a call costs: allocations, and the size of its future.
//!
//! The peer is a stream that answers by itself and allocates nothing, so that what is counted is the client's,
//! its tasks and wake-ups included.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use allocation_counter::measure;
use bytes::Bytes;
use rocketmq_transport::{
    Acceptance, Code, Connecting, Connector, EncodeOptions, Fields, FrameLimits, Header, HeaderEncoding,
    Opaque, Peer, Request, RequestDeadline, Response, Stream, Transport, TransportConfig,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::Runtime,
};

#[test]
fn a_call_over_a_warm_connection_allocates_hardly_more_than_its_record() {
    for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
        let bench = Bench::new(encoding, Answers::Each);
        bench.calls_in_turn(WARM_UP);
        let allocations = measure(|| bench.calls_in_turn(CALLS)).count_total;
        assert!(allocations <= CALLS + CALLS / 4, "{encoding:?}: {allocations} allocations in {CALLS} calls");
    }
}

#[test]
fn pipelined_calls_allocate_no_more_than_calls_in_turn() {
    let bench = Bench::new(HeaderEncoding::Binary, Answers::Each);
    bench.pipelined_calls(WARM_UP);
    let allocations = measure(|| bench.pipelined_calls(CALLS)).count_total;
    let (tasks, lists) = (CALLS, 1);
    assert!(
        allocations <= 4 * CALLS + tasks + lists,
        "{allocations} allocations in {CALLS} calls, each in a task of its own"
    );
}

#[test]
fn a_oneway_request_over_a_warm_connection_allocates_at_most_three_times() {
    let bench = Bench::new(HeaderEncoding::Binary, Answers::None);
    bench.oneway_requests(WARM_UP);
    let allocations = measure(|| bench.oneway_requests(CALLS)).count_total;
    assert!(allocations <= 3 * CALLS, "{allocations} allocations in {CALLS} one-way requests");
}

#[test]
fn the_future_of_a_call_is_small() {
    let bench = Bench::new(HeaderEncoding::Json, Answers::Each);
    let peer = peer();
    let _inside = bench.runtime.enter();
    let size = size_of_val(&bench.transport.call(&peer, request(), deadline()));
    assert!(size <= 128, "{size} bytes");
    let size = size_of_val(&bench.transport.oneway(&peer, request(), deadline()));
    assert!(size <= 128, "{size} bytes");
}

/// A transport whose every connection answers by itself.
struct Bench {
    runtime: Runtime,
    transport: Transport,
}

impl Bench {
    fn new(encoding: HeaderEncoding, answers: Answers) -> Self {
        let mut config = TransportConfig::default();
        config.header_encoding = encoding;
        // Of as many digits in every call that is made here.
        config.first_opaque = FIRST_OPAQUE;
        let connector = Arc::new(Echoes(encoding, answers));
        let transport = Transport::builder(config).connector(connector).build().expect("settings in range");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.expect("a runtime");
        Self { runtime, transport }
    }

    fn calls_in_turn(&self, calls: u64) {
        self.runtime.block_on(async {
            let peer = peer();
            for _ in 0..calls {
                let completed = self.transport.call(&peer, request(), deadline()).await;
                assert_eq!(completed.expect("it is answered").response.code(), Code::SUCCESS);
            }
        });
    }

    fn pipelined_calls(&self, calls: u64) {
        self.runtime.block_on(async {
            let peer = peer();
            let mut tasks = Vec::with_capacity(usize::try_from(calls).expect("not so many"));
            for _ in 0..calls {
                let (transport, peer) = (self.transport.clone(), peer.clone());
                tasks.push(tokio::spawn(async move {
                    transport.call(&peer, request(), deadline()).await.expect("it is answered");
                }));
            }
            for task in tasks {
                task.await.expect("no call panics");
            }
        });
    }

    fn oneway_requests(&self, requests: u64) {
        self.runtime.block_on(async {
            let peer = peer();
            for _ in 0..requests {
                self.transport.oneway(&peer, request(), deadline()).await.expect("it is written");
            }
        });
    }
}

/// Opens streams that answer by themselves.
#[derive(Debug)]
struct Echoes(HeaderEncoding, Answers);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Each,
    None,
}

impl Connector for Echoes {
    fn connect<'a>(&'a self, _: &'a Peer) -> Connecting<'a> {
        let stream = Stream::new(Echo::new(self.0, self.1), Acceptance::Exact);
        Box::pin(async { Ok(stream) })
    }
}

/// Takes whole requests, and offers for each the same response under its opaque. All its memory is there from
/// the start.
struct Echo {
    /// The response, empty where there is none, and where in it and in each request the opaque is.
    response: Vec<u8>,
    opaque_at: Opaques,
    requests: Vec<u8>,
    responses: Vec<u8>,
    reader: Option<Waker>,
}

/// How the opaque of a frame is found.
#[derive(Clone, Copy)]
enum Opaques {
    /// As the digits after this name.
    Named(&'static [u8]),
    /// As a word at this place.
    At(usize),
}

impl Opaques {
    /// The range of the opaque in `frame`.
    fn find(self, frame: &[u8]) -> std::ops::Range<usize> {
        match self {
            Self::At(at) => at..at + 4,
            Self::Named(name) => {
                let at = frame.windows(name.len()).position(|window| window == name);
                let start = at.expect("a header has an opaque") + name.len();
                start..start + OPAQUE_DIGITS
            }
        }
    }
}

impl Echo {
    fn new(encoding: HeaderEncoding, answers: Answers) -> Self {
        let response =
            Response { code: Code::SUCCESS, remark: None, header: Box::new(Offset), body: Bytes::new() };
        let options = EncodeOptions { encoding, version: 479 };
        let response = match answers {
            Answers::Each => response.encode(Opaque(FIRST_OPAQUE), options, &FrameLimits::default()),
            Answers::None => Ok(Vec::new()),
        };
        let opaque_at = match encoding {
            HeaderEncoding::Json => Opaques::Named(b"\"opaque\":"),
            // Two length words, code, language and version come before it.
            HeaderEncoding::Binary => Opaques::At(8 + 2 + 1 + 2),
        };
        Self {
            response: response.expect("a small response"),
            opaque_at,
            requests: Vec::with_capacity(ROOM),
            responses: Vec::with_capacity(ROOM),
            reader: None,
        }
    }

    /// Answers the requests that are there to their last byte.
    fn answer(&mut self) {
        let mut taken = 0;
        while let Some(length) = self.requests[taken..].first_chunk() {
            let end = taken + 4 + u32::from_be_bytes(*length) as usize;
            let Some(frame) = self.requests.get(taken..end) else { break };
            taken = end;
            if self.response.is_empty() {
                continue;
            }
            let start = self.responses.len();
            self.responses.extend_from_slice(&self.response);
            let range = self.opaque_at.find(&self.response);
            self.responses[start + range.start..start + range.end]
                .copy_from_slice(&frame[self.opaque_at.find(frame)]);
        }
        self.requests.drain(..taken);
        assert!(self.responses.len() < ROOM, "the client reads what it asked for");
    }
}

impl AsyncWrite for Echo {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.requests.extend_from_slice(bytes);
        self.answer();
        if let (false, Some(reader)) = (self.responses.is_empty(), self.reader.take()) {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Echo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.responses.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let read = buffer.remaining().min(self.responses.len());
        buffer.put_slice(&self.responses[..read]);
        self.responses.drain(..read);
        Poll::Ready(Ok(()))
    }
}

struct Offset;

impl Header for Offset {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("topic", "orders");
        fields.int("queueId", 3);
        fields.int("offset", 1_700_000_000);
    }
}

fn request() -> Request<'static> {
    Request { code: Code(310), header: &Offset, body: Bytes::from_static(&[b'.'; 1_024]) }
}

fn peer() -> Peer {
    "broker:10911".parse().expect("an address")
}

fn deadline() -> RequestDeadline {
    RequestDeadline::after(Duration::from_secs(30))
}

const FIRST_OPAQUE: i32 = 1_000_000;
const OPAQUE_DIGITS: usize = 7;
/// The calls that fill every pool, and those that are counted.
const WARM_UP: u64 = 256;
const CALLS: u64 = 256;
/// More than all calls of a round write or are answered at once.
const ROOM: usize = 1 << 20;
