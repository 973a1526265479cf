//! A thousand callers with little time, and a peer that reads in small pieces: no frame is ever torn.

use bytes::Bytes;
use rocketmq_transport::{
    Command, FrameLimits, decode_frame,
    test_support::{ScriptedPeer, settle},
};
use tokio::task::{AbortHandle, JoinSet};

use crate::support::*;

/// Numbers that look random and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// A request that says of itself what it is: its body is filled with the low byte of the number in its field.
fn self_consistent(number: u64, numbers: &mut Numbers) -> Ask {
    let largest = if number.is_multiple_of(50) { 64 << 10 } else { 2 << 10 };
    let body = vec![number as u8; numbers.below(largest) as usize];
    ask(ms(1 + numbers.below(50))).field(format!("{number}/{}", body.len())).body(body)
}

fn assert_self_consistent(frame: &Command) {
    let field = frame.field(FIELD).unwrap();
    let (number, len) = field.split_once('/').unwrap();
    let (number, len): (u64, usize) = (number.parse().unwrap(), len.parse().unwrap());
    assert_eq!(frame.body().len(), len, "the body of another request than {number}");
    assert!(frame.body().iter().all(|byte| *byte == number as u8), "bytes of another request in {number}");
}

/// Reads in chunks of 1 to 37 bytes until nothing comes any more, lets a millisecond pass and drops a caller now and
/// then, and checks each whole frame. What is left is a frame that is not whole.
async fn read_in_chunks(
    peer: &mut ScriptedPeer,
    numbers: &mut Numbers,
    dropped: &mut Vec<AbortHandle>,
) -> (u64, usize) {
    let mut stream = bytes::BytesMut::new();
    let (mut frames, mut chunks) = (0, 0);
    loop {
        settle_if_empty(peer).await;
        let most = (peer.accepted() - peer.bytes_seen()).min(1 + numbers.below(37));
        if most == 0 {
            return (frames, stream.len());
        }
        stream.extend_from_slice(&peer.read_bytes(most as usize).await);
        while let Some(frame) = decode_frame(&mut stream, &FrameLimits::default()).unwrap() {
            assert_self_consistent(&frame);
            frames += 1;
        }
        chunks += 1;
        if chunks % 400 == 0 {
            tokio::time::advance(ms(1)).await;
            for call in dropped.drain(dropped.len().saturating_sub(10)..) {
                call.abort();
            }
        }
    }
}

async fn settle_if_empty(peer: &ScriptedPeer) {
    if peer.accepted() == peer.bytes_seen() {
        settle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_thousand_hasty_requests_each_frame_that_began_is_whole_and_its_own() {
    for (seed, pipe_bytes) in [(1, 64), (2, 1 << 10), (3, 16 << 10)] {
        let (client, mut network) = scene(pipe_bytes);
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15 ^ seed);
        let mut peer = connected(&client, &mut network).await;
        let mut calls = JoinSet::new();
        let mut dropped = Vec::new();
        for number in 0..1_000 {
            let call = calls.spawn(client.begin(self_consistent(number, &mut numbers)));
            if numbers.below(3) == 0 {
                dropped.push(call);
            }
        }
        let (frames, left) = read_in_chunks(&mut peer, &mut numbers, &mut dropped).await;
        assert!(dropped.is_empty(), "callers were left to be dropped when all was over");
        while let Some(ended) = calls.join_next().await {
            assert!(!matches!(ended, Ok(Ok(_))), "nobody has answered");
        }
        assert!(frames > 10, "{frames} frames");
        assert_eq!(left, 0, "a frame was begun and not finished");
        assert_eq!(network.dials(), 1);
        assert_only_tombstones(&client, client.usage().tombstones);

        // The connection is as good as new.
        let next = client.call(ask(SECOND).body(Bytes::from_static(b"next")));
        let request = peer.expect().await;
        assert_eq!(request.body(), b"next");
        peer.respond(&request).await;
        next.succeeds().await;
    }
}
