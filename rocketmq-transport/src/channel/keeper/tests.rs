use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::mpsc,
    time::sleep,
};

use crate::{
    Acceptance, Code, Command, Connecting, Connector, EncodeOptions, FrameLimits, Peer, Request,
    RequestDeadline, Response, Stream, Transport, TransportConfig, decode_frame,
};

/// Hands the peer's end of each connection to the test.
#[derive(Debug)]
struct Pipes {
    dialed: AtomicUsize,
    far_ends: mpsc::UnboundedSender<DuplexStream>,
}

impl Connector for Pipes {
    fn connect<'a>(&'a self, _: &'a Peer) -> Connecting<'a> {
        let (near, far) = duplex(64 << 10);
        self.dialed.fetch_add(1, Relaxed);
        let _ = self.far_ends.send(far);
        Box::pin(async { Ok(Stream::new(near, Acceptance::Exact)) })
    }
}

fn request() -> Request<'static> {
    Request { code: Code(34), header: &(), body: Bytes::new() }
}

async fn expect(far: &mut DuplexStream, input: &mut BytesMut) -> Command {
    loop {
        if let Some(command) = decode_frame(input, &FrameLimits::default()).unwrap() {
            return command;
        }
        assert_ne!(far.read_buf(input).await.unwrap(), 0, "a request");
    }
}

async fn answer(far: &mut DuplexStream, request: &Command) {
    let response = Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body: Bytes::new() };
    let frame = response.encode(request.opaque(), EncodeOptions::default(), &FrameLimits::default()).unwrap();
    far.write_all(&frame).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn silence_is_judged_by_the_next_tombstone_when_the_earliest_was_answered() {
    let (far_ends, mut accepted) = mpsc::unbounded_channel();
    let pipes = std::sync::Arc::new(Pipes { dialed: AtomicUsize::new(0), far_ends });
    let transport = Transport::builder(TransportConfig::default()).connector(pipes.clone()).build().unwrap();
    let peer: Peer = "broker:10911".parse().unwrap();
    let abandon = |after, budget| {
        let (transport, peer) = (transport.clone(), peer.clone());
        tokio::spawn(async move {
            let deadline = RequestDeadline::after(budget);
            tokio::select! {
                _ = transport.call(&peer, request(), deadline) => panic!("nobody answers in time"),
                () = sleep(after) => {}
            }
        })
    };
    let (first, second) = (abandon(MS * 500, MS * 2_000), abandon(MS * 600, MS * 5_000));
    let mut far = accepted.recv().await.unwrap();
    let mut input = BytesMut::new();
    let opening = expect(&mut far, &mut input).await;
    expect(&mut far, &mut input).await;
    first.await.unwrap();
    second.await.unwrap();
    answer(&mut far, &opening).await;

    // The first would have been judged at 2 s; the second is at 5 s, when nothing was heard for over 4 s.
    sleep(MS * 5_000).await;
    let late = RequestDeadline::after(MS);
    transport.call(&peer, request(), late).await.unwrap_err();
    assert_eq!(pipes.dialed.load(Relaxed), 2, "the silent connection was retired");
}

#[tokio::test(start_paused = true)]
async fn the_tombstone_of_a_call_without_a_deadline_is_forgotten_when_its_window_ends() {
    let (far_ends, mut accepted) = mpsc::unbounded_channel();
    let pipes = std::sync::Arc::new(Pipes { dialed: AtomicUsize::new(0), far_ends });
    let config = TransportConfig { max_idle: MS * 600_000, ..TransportConfig::default() };
    let transport = Transport::builder(config).connector(pipes).build().unwrap();
    let peer: Peer = "broker:10911".parse().unwrap();
    tokio::select! {
        _ = transport.call(&peer, request(), RequestDeadline::never()) => panic!("nobody answers"),
        () = sleep(MS * 10) => {}
    }
    let _far = accepted.recv().await.unwrap();
    let tombstones = || transport.usage().peers[0].tombstones;
    sleep(MS * 59_000).await;
    assert_eq!(tombstones(), 1);
    sleep(MS * 2_000).await;
    assert_eq!(tombstones(), 0);
}

const MS: Duration = Duration::from_millis(1);
