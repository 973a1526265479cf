//! Admission, and the pending-request table without sockets.

use std::{hint::black_box, time::Duration};

use bytes::BytesMut;
use rocketmq_transport::{
    Command, FrameLimits, HeaderEncoding, Opaque, RequestDeadline, TransportConfig, decode_frame,
    test_support::{PendingTable, Verdict},
};

use super::{
    call::paused_runtime,
    samples::{FIRST_OPAQUE, stored_frame},
};

/// One claim at client, peer and class, and its return.
pub(super) fn admit_and_release(count: u64) {
    paused_runtime().block_on(async {
        let table = PendingTable::new(TransportConfig::default());
        for _ in 0..count {
            drop(black_box(table.admit(black_box(2_048)).expect("there is room")));
        }
    });
}

/// A request from its admission, through the table, to its response, written in between.
pub(super) fn register_and_complete(count: u64) {
    paused_runtime().block_on(async {
        let table = PendingTable::new(TransportConfig::default());
        let generation = table.open(FIRST_OPAQUE);
        let deadline = RequestDeadline::after(Duration::from_secs(30));
        // As many of them, whatever the count, so that they cost the same in every run.
        let responses = (0..MOST).map(response).collect::<Vec<_>>();
        for response in responses.into_iter().take(usize::try_from(count).expect("a small count")) {
            let request = generation.register(deadline).expect("there is room");
            assert_eq!(table.complete_with(generation.owner(), response), Verdict::Completed);
            black_box(request.outcome());
        }
    });
}

/// A request from its admission, through table and lane, to its deadline, with nothing written.
pub(super) fn register_and_withdraw(count: u64) {
    paused_runtime().block_on(async {
        let table = PendingTable::new(TransportConfig::default());
        let generation = table.open(FIRST_OPAQUE);
        let deadline = RequestDeadline::after(Duration::from_secs(30));
        let _neighbours = (0..NEIGHBOURS).map(|_| generation.queue(deadline)).collect::<Vec<_>>();
        for _ in 0..count {
            let request = generation.queue(deadline).expect("there is room");
            request.expire();
            black_box(request.outcome());
        }
    });
}

/// The answer to the request of that number.
fn response(number: u64) -> Command {
    let opaque = Opaque(FIRST_OPAQUE + i32::try_from(number).expect("a small number"));
    let mut frame = BytesMut::from(&stored_frame(opaque, HeaderEncoding::Json)[..]);
    decode_frame(&mut frame, &FrameLimits::default()).ok().flatten().expect("it is a whole frame")
}

/// As many responses are made in advance.
pub(super) const MOST: u64 = 5_000;
/// As many requests are queued and stay so.
const NEIGHBOURS: u64 = 100;
