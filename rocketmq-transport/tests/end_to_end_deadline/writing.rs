//! Once a byte has left: the frame is finished while the connection lives, and the certainty follows the bytes.

use std::io;

use rocketmq_transport::{
    Acceptance, Certainty, CloseCause, Stage, TransportError, TransportErrorKind,
    test_support::{Then, settle},
};

use crate::support::*;

fn lost(error: &TransportError) -> &CloseCause {
    match error.kind() {
        TransportErrorKind::ConnectionLost(cause) => cause,
        kind => panic!("the connection was not lost: {kind}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_mebibyte_through_64_bytes_ends_at_its_deadline_and_is_finished_all_the_same() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let large = client.call(ask(ms(500)).body(vec![9; 1 << 20]));
    let behind = client.call(ask(5 * SECOND).code(1));
    let error = large.fails().await;
    assert_ended(&error, Stage::Writing, Certainty::Unknown);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    assert_eq!(error.elapsed(), ms(500));
    assert_eq!(error.stage_clock().spent(Stage::Writing), Some(ms(500)));
    // Its place is free; its bytes are the frame's until the writer lets go of it.
    let usage = client.usage();
    assert_eq!((usage.data.requests, usage.pending, usage.tombstones), (1, 1, 1));
    assert!(usage.data.bytes > 1 << 20);

    let request = peer.expect_code(SEND).await;
    assert_eq!(request.body(), &[9; 1 << 20]);
    let request = peer.expect_code(1).await;
    assert!(client.usage().data.bytes < 1 << 10);
    peer.respond(&request).await;
    behind.succeeds().await;
    assert_eq!((network.dials(), peer.frames_seen()), (1, 3));
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn a_response_while_the_frame_is_still_written_is_accepted() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(SECOND).body(vec![9; 4096]));
    settle().await;
    peer.respond_to(rocketmq_transport::Opaque(1)).await;
    let completed = call.succeeds().await;
    assert_eq!(completed.clock.spent(Stage::AwaitingResponse), None);
    assert_eq!(peer.expect().await.body().len(), 4096);
    settle().await;
    assert_eq!((client.usage().unsolicited, client.usage().late), (0, 0));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_connection_cut_within_a_frame_proves_that_frame_unsent() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let whole = ask(SECOND).code(1);
    peer.accept_only(whole.frame_len(1) + 10, Then::Wait);
    let calls: Vec<_> = (1..=3).map(|code| client.call(ask(SECOND).code(code))).collect();
    settle().await;
    peer.shut_write().await;
    let ends = ends(calls).await;
    assert_eq!(ends[0], (Stage::AwaitingResponse, Certainty::Unknown));
    assert_eq!(ends[1], (Stage::Writing, Certainty::NotSent));
    assert_eq!(ends[2], (Stage::BeforeWrite, Certainty::NotSent));
    let rest = peer.rest().await;
    assert_eq!((rest.frames.len(), rest.torn.len()), (1, 10));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_does_not_vouch_proves_nothing_about_what_it_was_offered() {
    let (client, mut network) = scene(ROOMY);
    network.set_acceptance(Acceptance::Offered);
    let mut peer = connected(&client, &mut network).await;
    peer.accept_only(0, Then::Wait);
    let calls = [
        client.call(ask(SECOND).code(1).body(vec![1; 10 << 10])),
        client.call(ask(SECOND).code(2).body(vec![1; 10 << 10])),
        client.call(ask(SECOND).code(3)),
    ];
    settle().await;
    peer.shut_write().await;
    let ends = ends(calls).await;
    // One call offers 16 KiB: the first frame and a part of the second one, of which the pipe took nothing.
    assert_eq!(ends[0], (Stage::Writing, Certainty::Unknown));
    assert_eq!(ends[1], (Stage::Writing, Certainty::Unknown));
    assert_eq!(ends[2], (Stage::BeforeWrite, Certainty::NotSent));
    assert!(peer.rest().await.frames.is_empty());
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_does_not_vouch_carries_frames_whole_and_in_order() {
    let (client, mut network) = scene(64);
    network.set_acceptance(Acceptance::Offered);
    let mut peer = connected(&client, &mut network).await;
    let calls: Vec<_> =
        (1..=40).map(|code| client.call(ask(SECOND).code(code).body(vec![1; 3000]))).collect();
    for code in 1..=40 {
        let request = peer.expect_code(code).await;
        assert_eq!(request.body(), &[1; 3000]);
        peer.respond(&request).await;
    }
    for call in calls {
        call.succeeds().await;
    }
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_ends_every_request_with_its_cause() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    peer.accept_only(10, Then::Fail(io::ErrorKind::ConnectionReset));
    let calls = [client.call(ask(SECOND)), client.call(ask(SECOND))];
    let [first, second] = calls;
    let (first, second) = (first.fails().await, second.fails().await);
    assert_ended(&first, Stage::Writing, Certainty::NotSent);
    assert_ended(&second, Stage::BeforeWrite, Certainty::NotSent);
    for error in [first, second] {
        let CloseCause::Io(cause) = lost(&error) else { panic!("{error}") };
        assert_eq!(cause.kind(), io::ErrorKind::ConnectionReset);
    }
    assert_eq!(peer.rest().await.torn.len(), 10);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn what_the_socket_held_when_a_write_failed_is_read_before_anyone_is_told() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let answered = client.call(ask(SECOND));
    let request = peer.expect().await;
    peer.accept_only(0, Then::Fail(io::ErrorKind::ConnectionReset));
    let failing = client.begin(ask(SECOND));
    let failing = tokio::spawn(failing);
    peer.respond(&request).await;
    answered.succeeds().await;
    assert_ended(&failing.await.unwrap().unwrap_err(), Stage::BeforeWrite, Certainty::NotSent);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_panics_counts_as_having_taken_everything() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    peer.accept_only(0, Then::Panic);
    let calls = [client.call(ask(SECOND)), client.call(ask(SECOND))];
    for call in calls {
        let error = call.fails().await;
        assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
        assert!(matches!(lost(&error), CloseCause::Panicked), "{error}");
    }
    peer.expect_end().await;
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_drips_for_too_long_closes_the_connection_for_everybody() {
    let settings = config(|config| config.max_frame_write = 2 * SECOND);
    let (client, mut network) = scene_with(settings, 64);
    let mut peer = connected(&client, &mut network).await;
    let written = client.call(ask(9 * SECOND).code(1));
    peer.expect_code(1).await;
    let calls = [
        written,
        client.call(ask(9 * SECOND).code(2).body(vec![1; 4096])),
        client.call(ask(9 * SECOND).code(3)),
    ];
    settle().await;
    for _ in 0..3 {
        pass(ms(500)).await;
        peer.read_bytes(1).await;
    }
    pass(ms(499)).await;
    assert_eq!(client.usage().pending, 3);
    pass(ms(1)).await;
    let expected = [
        (Stage::AwaitingResponse, Certainty::Unknown),
        (Stage::Writing, Certainty::NotSent),
        (Stage::BeforeWrite, Certainty::NotSent),
    ];
    for (call, (stage, certainty)) in calls.into_iter().zip(expected) {
        let error = call.fails().await;
        assert_ended(&error, stage, certainty);
        assert!(matches!(lost(&error), CloseCause::FrameWriteTimeout { limit } if *limit == 2 * SECOND));
        assert_eq!(error.elapsed(), 2 * SECOND);
    }
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_accepts_nothing_for_too_long_closes_the_connection_for_everybody() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let calls = [client.call(ask(60 * SECOND).body(vec![1; 4096])), client.call(ask(60 * SECOND))];
    settle().await;
    pass(ms(9_000)).await;
    // A byte in between starts the limit anew.
    peer.read_bytes(1).await;
    settle().await;
    pass(ms(9_999)).await;
    assert_eq!(client.usage().pending, 2);
    pass(ms(1)).await;
    let expected = [(Stage::Writing, Certainty::NotSent), (Stage::BeforeWrite, Certainty::NotSent)];
    for (call, (stage, certainty)) in calls.into_iter().zip(expected) {
        let error = call.fails().await;
        assert_ended(&error, stage, certainty);
        assert!(matches!(lost(&error), CloseCause::WriteStalled { limit } if *limit == 10 * SECOND));
        assert_eq!(error.elapsed(), ms(19_000));
    }
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_flush_that_never_ends_is_a_stall_too() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    peer.hold_flush();
    let call = client.call(ask(60 * SECOND));
    peer.expect().await;
    let error = call.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert!(matches!(lost(&error), CloseCause::WriteStalled { .. }));
    assert_eq!(error.elapsed(), 10 * SECOND);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_oneway_request_succeeds_when_its_last_byte_is_accepted_and_not_before() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let request = ask(SECOND).code(2);
    peer.accept_only(request.frame_len(1) - 1, Then::Wait);
    let oneway = client.oneway(request);
    assert!(oneway.is_pending().await);
    pass(ms(70)).await;
    peer.accept_only(1, Then::Wait);
    let written = oneway.succeeds().await;
    assert_eq!(written.clock.spent(Stage::Writing), Some(ms(70)));
    assert_eq!(written.clock.spent(Stage::AwaitingResponse), None);
    let request = peer.expect_code(2).await;
    assert!(request.is_oneway());
    assert_eq!(request.opaque(), written.opaque);
    assert_idle(&client);

    peer.respond(&request).await;
    settle().await;
    assert_eq!(client.usage().unsolicited, 1);
}

#[tokio::test(start_paused = true)]
async fn a_oneway_request_that_ends_while_it_is_written_is_finished_and_leaves_no_tombstone() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let expiring = client.oneway(ask(ms(100)).body(vec![1; 4096]));
    let error = expiring.fails().await;
    assert_ended(&error, Stage::Writing, Certainty::Unknown);
    assert_eq!((client.usage().tombstones, client.usage().data.requests), (0, 0));
    assert_eq!(peer.expect().await.body().len(), 4096);

    let dropped = client.oneway(ask(SECOND).body(vec![2; 4096]));
    settle().await;
    dropped.dropped().await;
    assert_eq!(client.usage().tombstones, 0);
    assert_eq!(peer.expect().await.body().len(), 4096);
    settle().await;
    assert_idle(&client);
}

async fn ends<T: std::fmt::Debug>(calls: impl IntoIterator<Item = InFlight<T>>) -> Vec<(Stage, Certainty)> {
    let mut ends = Vec::new();
    for call in calls {
        let error = call.fails().await;
        assert!(matches!(lost(&error), CloseCause::EndOfStream), "{error}");
        ends.push((error.stage(), error.certainty()));
    }
    ends
}
