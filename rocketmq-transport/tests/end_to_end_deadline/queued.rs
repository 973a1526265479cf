//! Behind a socket that is full: withdrawal, order, and what a deadline there means.

use rocketmq_transport::{Certainty, Class, Stage, TransportErrorKind, test_support::settle};

use crate::support::*;

/// A body that no pipe of these scripts takes whole.
fn large() -> Vec<u8> {
    vec![7; 1 << 20]
}

#[tokio::test(start_paused = true)]
async fn a_request_queued_behind_a_blocked_write_is_withdrawn_at_its_deadline() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let blocking = client.call(ask(5 * SECOND).body(large()));
    settle().await;
    let before = client.usage();
    let queued = client.call(ask(ms(100)).field("withdrawn"));
    settle().await;
    assert_eq!((client.usage().queued, client.usage().pending), (1, 2));

    let error = queued.fails().await;
    assert_ended(&error, Stage::BeforeWrite, Certainty::NotSent);
    assert_eq!(error.stage_clock().spent(Stage::BeforeWrite), Some(ms(100)));
    assert_eq!(client.usage(), before);

    let request = peer.expect().await;
    peer.respond(&request).await;
    blocking.succeeds().await;
    peer.expect_nothing().await;
    assert_eq!(peer.frames_seen(), 2);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn what_expired_in_the_queue_is_not_written_when_the_peer_reads_on() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let blocking = client.call(ask(5 * SECOND).body(large()));
    let expiring: Vec<_> = (0..10).map(|_| client.call(ask(ms(100)).code(1))).collect();
    let patient = client.call(ask(5 * SECOND).code(2));
    settle().await;
    pass(ms(300)).await;
    for call in expiring {
        assert_ended(&call.fails().await, Stage::BeforeWrite, Certainty::NotSent);
    }
    let request = peer.expect_code(SEND).await;
    peer.respond(&request).await;
    let request = peer.expect_code(2).await;
    peer.respond(&request).await;
    blocking.succeeds().await;
    patient.succeeds().await;
    peer.expect_nothing().await;
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_polls_any_more_is_not_written_after_its_deadline() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let blocking = client.call(ask(5 * SECOND).body(large()));
    settle().await;
    let mut forgotten = client.begin(ask(ms(100)).code(1));
    poll_pending(&mut forgotten).await;
    assert_eq!(client.usage().queued, 1);
    pass(ms(200)).await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    blocking.succeeds().await;
    peer.expect_nothing().await;
    let error = forgotten.await.unwrap_err();
    assert_ended(&error, Stage::BeforeWrite, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_batch_the_socket_has_not_begun_to_take_is_withdrawn() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    // All of the first frame and ten bytes of the second one are taken in the same write.
    let whole = ask(SECOND).code(1);
    peer.accept_only(whole.frame_len(1) + 10, rocketmq_transport::test_support::Then::Wait);
    let calls: Vec<_> = (1..=5).map(|code| client.call(ask(ms(100)).code(code))).collect();
    let mut ends = Vec::new();
    for call in calls {
        let error = call.fails().await;
        ends.push((error.stage(), error.certainty()));
    }
    assert_eq!(ends[0], (Stage::AwaitingResponse, Certainty::Unknown));
    assert_eq!(ends[1], (Stage::Writing, Certainty::Unknown));
    assert_eq!(ends[2..], [(Stage::BeforeWrite, Certainty::NotSent); 3]);
    assert_eq!(client.usage().queued, 0);

    peer.accept_all();
    peer.expect_code(1).await;
    peer.expect_code(2).await;
    peer.expect_nothing().await;
    assert_eq!(peer.frames_seen(), 3);
    assert_only_tombstones(&client, 2);
}

#[tokio::test(start_paused = true)]
async fn of_64_large_requests_behind_a_small_pipe_exactly_one_is_torn_and_the_rest_never_started() {
    let (client, mut network) = scene(64 << 10);
    let mut peer = connected(&client, &mut network).await;
    let mut calls: Vec<_> = (0..3).map(|_| client.call(ask(ms(500)))).collect();
    calls.extend((0..64).map(|_| client.call(ask(ms(500)).body(vec![1; 256 << 10]))));
    let (mut awaiting, mut writing, mut before) = (0, 0, 0);
    for call in calls {
        let error = call.fails().await;
        assert_eq!(error.elapsed(), ms(500));
        match (error.stage(), error.certainty()) {
            (Stage::AwaitingResponse, Certainty::Unknown) => awaiting += 1,
            (Stage::Writing, Certainty::Unknown) => writing += 1,
            (Stage::BeforeWrite, Certainty::NotSent) => before += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((awaiting, writing, before), (3, 1, 63));

    for _ in 0..3 {
        assert!(peer.expect().await.body().is_empty());
    }
    assert_eq!(peer.expect().await.body().len(), 256 << 10);
    peer.expect_nothing().await;
    assert_eq!(peer.frames_seen(), 1 + 3 + 1);
    assert_only_tombstones(&client, 4);
}

#[tokio::test(start_paused = true)]
async fn behind_a_peer_that_never_reads_again_the_last_frame_is_torn_and_the_next_call_dials_anew() {
    let (client, mut network) = scene(64 << 10);
    let mut peer = connected(&client, &mut network).await;
    let calls: Vec<_> = (0..4).map(|_| client.call(ask(ms(500)).body(vec![1; 256 << 10]))).collect();
    settle().await;
    for call in calls {
        assert!(call.ended().await.is_err());
    }
    pass(10 * SECOND).await;
    let rest = peer.rest().await;
    assert!(rest.frames.is_empty());
    assert_eq!(rest.torn.len(), 64 << 10);
    assert_idle(&client);

    connected(&client, &mut network).await;
    assert_eq!(network.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn control_goes_out_before_data_that_waits_and_each_keeps_its_order() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let mut calls = vec![client.call(ask(5 * SECOND).body(large()))];
    settle().await;
    for code in [1, 2] {
        calls.push(client.call(ask(5 * SECOND).code(code)));
    }
    for code in [34, 35] {
        calls.push(client.call(ask(5 * SECOND).code(code).class(Class::Control)));
    }
    settle().await;
    for code in [SEND, 34, 35, 1, 2] {
        let request = peer.expect_code(code).await;
        peer.respond(&request).await;
    }
    for call in calls {
        call.succeeds().await;
    }
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn after_eight_control_frames_in_a_row_a_data_frame_has_its_turn() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let mut calls = vec![client.call(ask(5 * SECOND).body(large()))];
    settle().await;
    calls.extend((1..=2).map(|code| client.call(ask(5 * SECOND).code(code))));
    calls.extend((0..18).map(|_| client.call(ask(5 * SECOND).code(34).class(Class::Control))));
    settle().await;
    let mut order = Vec::new();
    for _ in 0..calls.len() {
        let request = peer.expect().await;
        order.push(request.code().0);
        peer.respond(&request).await;
    }
    let expected = [&[SEND][..], &[34; 8], &[1], &[34; 8], &[2], &[34; 2]].concat();
    assert_eq!(order, expected);
    for call in calls {
        call.succeeds().await;
    }
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_response_to_a_frame_that_is_still_queued_is_unsolicited_and_changes_nothing() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let blocking = client.call(ask(5 * SECOND).body(large()));
    let queued = client.call(ask(5 * SECOND).code(1));
    settle().await;
    peer.respond_to(rocketmq_transport::Opaque(2)).await;
    assert!(queued.is_pending().await);
    assert_eq!((client.usage().unsolicited, client.usage().queued), (1, 1));

    let request = peer.expect().await;
    peer.respond(&request).await;
    let request = peer.expect_code(1).await;
    assert_eq!(request.opaque().0, 2);
    peer.respond(&request).await;
    blocking.succeeds().await;
    queued.succeeds().await;
    assert_eq!((client.usage().unsolicited, client.usage().late), (1, 0));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_request_too_long_for_a_frame_is_refused_and_frees_its_place() {
    let settings = config(|config| config.max_frame_bytes = 4096);
    let (client, mut network) = scene_with(settings, ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let error = client.call(ask(SECOND).body(vec![0; 4096])).fails().await;
    assert_ended(&error, Stage::BeforeWrite, Certainty::Refused);
    assert!(matches!(error.kind(), TransportErrorKind::InvalidRequest(_)));
    peer.expect_nothing().await;
    assert_idle(&client);
}
