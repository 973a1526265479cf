//! Whole calls over a pipe in memory, the answering peer in the same runtime.

use std::{ops::Range, time::Duration};

use bytes::{Buf, BytesMut};
use rocketmq_transport::{
    Code, HeaderEncoding, Opaque, Peer, RequestDeadline, Transport, TransportConfig,
    test_support::{Network, PipeEnd},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    runtime::Runtime,
};

use super::samples::{FIRST_OPAQUE, MAX_BODY, send, stored_frame};

/// Each call begins when the one before has ended.
pub(super) fn one_in_flight(count: u64) {
    paused_runtime().block_on(async {
        let transport = answered_transport().await;
        calls(&transport, count).await;
    });
}

/// So many callers, each of which begins its next call when its last one has ended.
pub(super) fn many_in_flight(count: u64) {
    assert!(count.is_multiple_of(CALLERS), "every caller makes as many calls");
    paused_runtime().block_on(async {
        let transport = answered_transport().await;
        let callers = (0..CALLERS).map(|_| {
            let transport = transport.clone();
            tokio::spawn(async move { calls(&transport, count / CALLERS).await })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.expect("no call panics");
        }
    });
}

/// One thread, and a clock that stands still while anybody has something to do: what is done depends neither on the
/// time nor on the load.
pub(super) fn paused_runtime() -> Runtime {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime")
}

/// A transport whose connection to the broker is open and answered.
async fn answered_transport() -> Transport {
    let mut config = TransportConfig::default();
    config.first_opaque = FIRST_OPAQUE;
    let mut network = Network::new(1 << 20);
    let transport = Transport::builder(config).connector(network.connector()).build();
    let transport = transport.expect("settings in range");
    tokio::spawn(async move { answer(network.accept().await.into_stream()).await });
    calls(&transport, 1).await;
    transport
}

async fn calls(transport: &Transport, count: u64) {
    let broker: Peer = "broker.example:10911".parse().expect("an address");
    for _ in 0..count {
        let deadline = RequestDeadline::after(Duration::from_secs(30));
        let completed = transport.call(&broker, send(MAX_BODY), deadline).await;
        assert_eq!(completed.expect("it is answered").response.code(), Code::SUCCESS);
    }
}

/// Answers every request, at next to no cost: with the same bytes but for the opaque.
async fn answer(mut stream: PipeEnd) {
    let mut response = stored_frame(Opaque(FIRST_OPAQUE), HeaderEncoding::Json);
    let response_opaque = opaque_at(&response);
    let (mut requests, mut responses) = (BytesMut::new(), Vec::new());
    while stream.read_buf(&mut requests).await.is_ok_and(|read| read > 0) {
        while let Some(frame_len) = whole_frame(&requests) {
            let opaque = &requests[opaque_at(&requests[..frame_len])];
            response[response_opaque.clone()].copy_from_slice(opaque);
            responses.extend_from_slice(&response);
            requests.advance(frame_len);
        }
        requests.reserve(64 << 10);
        if stream.write_all(&responses).await.is_err() {
            return;
        }
        responses.clear();
    }
}

/// The length of the frame in front, where all of it is there.
fn whole_frame(buffer: &[u8]) -> Option<usize> {
    let announced = buffer.first_chunk().copied().map(u32::from_be_bytes)?;
    Some(4 + announced as usize).filter(|len| *len <= buffer.len())
}

/// Where the digits of the opaque are: at a fixed distance from the end of a JSON header without a remark.
fn opaque_at(frame: &[u8]) -> Range<usize> {
    let header_len = frame.get(4..).and_then(<[u8]>::first_chunk).copied().map(u32::from_be_bytes);
    let end = 8 + header_len.expect("a frame has a header") as usize - r#","version":479}"#.len();
    end - FIRST_OPAQUE.ilog10() as usize - 1..end
}

const CALLERS: u64 = 256;
