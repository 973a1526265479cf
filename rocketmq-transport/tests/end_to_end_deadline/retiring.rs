//! When a connection takes no more requests, and what becomes of those it has.

use std::sync::Arc;

use rocketmq_transport::{
    Certainty, CloseCause, Completed, RetirePolicy, RetireReason, Stage, TransportConfig, TransportErrorKind,
    test_support::{Network, Readiness, ScriptedPeer, ScriptedSigner, settle},
};

use tokio::time::Instant;

use crate::support::*;

fn on_timeout() -> TransportConfig {
    config(|config| config.retire = RetirePolicy::OnTimeout)
}

/// Makes a call and has `peer` answer it.
async fn exchange(client: &Client, peer: &mut ScriptedPeer) -> Completed {
    let call = client.call(ask(SECOND).code(77));
    let request = peer.expect_code(77).await;
    peer.respond(&request).await;
    call.succeeds().await
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_withholds_its_answer_is_retired_by_silence_and_replaced_under_a_new_owner() {
    let (client, mut network) = scene(ROOMY);
    let call = client.call(ask(3 * SECOND));
    let mut silent = network.accept().await;
    silent.expect().await;
    let error = call.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert_eq!((error.elapsed(), error.last_heard()), (3 * SECOND, None));
    assert_eq!(error.stage_clock().spent(Stage::AwaitingResponse), Some(3 * SECOND));

    settle().await;
    let next = client.call(ask(SECOND));
    let mut answering = network.accept().await;
    let request = answering.expect().await;
    answering.respond(&request).await;
    assert!(next.succeeds().await.generation > error.generation().unwrap());
    silent.expect_nothing().await;
    assert_eq!(silent.frames_seen(), 1);
    assert_only_tombstones(&client, 1);
    // The silent one closes once nobody can be answered late any more.
    pass(60 * SECOND).await;
    silent.expect_end().await;
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn silence_is_judged_a_second_after_the_last_byte_and_not_at_a_shorter_deadline() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    pass(5 * SECOND).await;
    let call = client.call(ask(ms(100)));
    peer.expect().await;
    call.fails().await;
    pass(ms(899)).await;
    let early = client.call(ask(9 * SECOND));
    let request = peer.expect().await;
    assert_eq!(network.dials(), 1);

    pass(ms(1)).await;
    let later = client.call(ask(SECOND));
    let mut replacement = network.accept().await;
    let other = replacement.expect().await;
    replacement.respond(&other).await;
    later.succeeds().await;
    // What was in flight on the silent connection keeps its own deadline.
    peer.respond(&request).await;
    early.succeeds().await;
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_only_slower_than_a_short_deadline_is_not_retired() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    for _ in 0..20 {
        let impatient = client.call(ask(ms(100)));
        let request = peer.expect().await;
        impatient.fails().await;
        pass(ms(200)).await;
        peer.respond(&request).await;
        pass(SECOND).await;
    }
    exchange(&client, &mut peer).await;
    assert_eq!((network.dials(), client.usage().late), (1, 20));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn one_answer_to_anybody_within_the_last_second_speaks_for_the_peer() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    pass(5 * SECOND).await;
    let unanswered = client.call(ask(ms(100)));
    peer.expect().await;
    unanswered.fails().await;
    pass(ms(400)).await;
    exchange(&client, &mut peer).await;
    for _ in 0..4 {
        pass(ms(500)).await;
    }
    exchange(&client, &mut peer).await;
    assert_eq!(network.dials(), 1);
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stall_of_ours_after_the_peer_was_heard_is_not_its_silence() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    pass(5 * SECOND).await;
    let unanswered = client.call(ask(ms(100)));
    peer.expect().await;
    unanswered.fails().await;
    pass(ms(400)).await;
    exchange(&client, &mut peer).await;
    // Nothing of ours runs at the instant of the judgement, nor for long after it.
    pass(50 * SECOND).await;
    exchange(&client, &mut peer).await;
    assert_eq!(network.dials(), 1);
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_waits_in_the_socket_while_we_stall_speaks_for_the_peer() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    pass(5 * SECOND).await;
    let unanswered = client.call(ask(ms(100)));
    let request = peer.expect().await;
    unanswered.fails().await;
    peer.respond(&request).await;
    // Reader and keeper wake at the same late instant.
    tokio::time::advance(5 * SECOND).await;
    settle().await;
    exchange(&client, &mut peer).await;
    assert_eq!((network.dials(), client.usage().late), (1, 1));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_is_judged_from_the_end_of_its_suspension() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let poll = client.call(ask(5 * SECOND).suspend(15 * SECOND));
    peer.expect().await;
    poll.fails().await;
    pass(ms(10_999)).await;
    let early = client.call(ask(60 * SECOND));
    peer.expect().await;
    pass(ms(1)).await;
    let later = client.call(ask(SECOND));
    let _replacement = network.accept().await;
    early.dropped().await;
    later.dropped().await;
    assert_eq!(network.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_strict_policy_retires_at_the_first_response_timeout() {
    let (client, mut network) = scene_with(on_timeout(), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let patient = client.call(ask(9 * SECOND).code(1));
    let request = peer.expect_code(1).await;
    let call = client.call(ask(ms(100)));
    peer.expect().await;
    call.fails().await;
    connected(&client, &mut network).await;
    assert_eq!(network.dials(), 2);
    peer.respond(&request).await;
    patient.succeeds().await;
}

#[tokio::test(start_paused = true)]
async fn under_the_strict_policy_a_request_that_never_left_says_nothing_about_the_peer() {
    let (client, mut network) = scene_with(on_timeout(), 64);
    let mut peer = connected(&client, &mut network).await;
    let blocking = client.call(ask(5 * SECOND).body(vec![0; 4096]));
    settle().await;
    client.call(ask(ms(100))).fails().await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    blocking.succeeds().await;
    exchange(&client, &mut peer).await;
    assert_eq!(network.dials(), 1);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn requests_queued_on_a_retired_connection_are_still_written_and_answered_there() {
    let (client, mut network) = scene_with(on_timeout(), 64);
    let mut peer = connected(&client, &mut network).await;
    let impatient = client.call(ask(ms(100)));
    peer.expect().await;
    let blocking = client.call(ask(5 * SECOND).body(vec![0; 4096]));
    let queued = client.call(ask(5 * SECOND).code(1));
    impatient.fails().await;
    connected(&client, &mut network).await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    let request = peer.expect_code(1).await;
    peer.respond(&request).await;
    blocking.succeeds().await;
    queued.succeeds().await;
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn a_retired_connection_closes_with_its_last_late_answer() {
    let (client, mut network) = scene_with(on_timeout(), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(ms(100)));
    let request = peer.expect().await;
    call.fails().await;
    peer.expect_nothing().await;
    pass(SECOND).await;
    peer.respond(&request).await;
    let answered = Instant::now();
    peer.expect_end().await;
    assert_eq!((answered.elapsed(), client.usage().late), (ms(0), 1));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_is_gone_at_the_very_end_of_its_window() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    client.call(ask(ms(100))).fails().await;
    peer.expect().await;
    pass(ms(59_999)).await;
    assert_only_tombstones(&client, 1);
    pass(ms(1)).await;
    assert_idle(&client);
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_refused_by_a_retiring_connection_goes_to_the_next_with_its_signature() {
    let signer = Arc::new(ScriptedSigner::new(Readiness::Ready));
    let (client, mut network) = scene_signed(Arc::clone(&signer) as _, on_timeout());
    let mut first = connected(&client, &mut network).await;
    let impatient = client.call(ask(ms(100)));
    first.expect().await;
    signer.set(Readiness::Hold);
    let signing = client.call(ask(SECOND).code(1));
    impatient.fails().await;
    signer.set(Readiness::Ready);
    let mut second = network.accept().await;
    let request = second.expect_code(1).await;
    assert_eq!(request.field("Signature").as_deref(), Some("scripted"));
    pass(ms(50)).await;
    second.respond(&request).await;
    let completed = signing.succeeds().await;
    assert_eq!(completed.clock.spent(Stage::Signing), Some(ms(100)));
    assert_eq!(completed.clock.spent(Stage::AwaitingResponse), Some(ms(50)));
    first.expect_nothing().await;
    assert_eq!((signer.asked(), first.frames_seen(), network.dials()), (3, 2, 2));
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn a_retired_connection_closes_at_the_end_of_its_drain_whoever_waits() {
    let (client, mut network) = scene_with(on_timeout(), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let patient = client.call(ask(300 * SECOND).code(1));
    client.call(ask(ms(100)).code(2)).fails().await;
    let error = patient.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert!(matches!(
        error.kind(),
        TransportErrorKind::ConnectionLost(CloseCause::Retired(RetireReason::Timeout))
    ));
    let drained = ms(100) + 120 * SECOND;
    assert!(drained <= error.elapsed() && error.elapsed() <= drained + SECOND, "{error}");
    assert_eq!(peer.rest().await.frames.len(), 2);
    assert_idle(&client);
}

/// A connection that is retired, with one request in flight that waits for a minute and one tombstone.
async fn retired_with_a_waiter(
    client: &Client,
    network: &mut Network,
) -> (ScriptedPeer, rocketmq_transport::Command, InFlight<Completed>) {
    let patient = client.call(ask(59 * SECOND).code(1));
    let mut peer = network.accept().await;
    let request = peer.expect_code(1).await;
    client.call(ask(ms(100)).code(2)).fails().await;
    peer.expect_code(2).await;
    settle().await;
    (peer, request, patient)
}

#[tokio::test(start_paused = true)]
async fn while_four_connections_drain_for_their_waiters_nothing_retires_a_fifth() {
    let (client, mut network) = scene_with(on_timeout(), ROOMY);
    let mut draining = Vec::new();
    for _ in 0..4 {
        draining.push(retired_with_a_waiter(&client, &mut network).await);
    }
    let (mut fifth, request, patient) = retired_with_a_waiter(&client, &mut network).await;
    exchange(&client, &mut fifth).await;
    assert_eq!(network.dials(), 5);

    // One of the four has no waiter any more. The fifth may go now, and the one with tombstones only makes room.
    let (mut first, answered, caller) = draining.remove(0);
    first.respond(&answered).await;
    caller.succeeds().await;
    first.expect_nothing().await;
    client.call(ask(ms(100)).code(3)).fails().await;
    first.expect_end().await;
    connected(&client, &mut network).await;
    assert_eq!(network.dials(), 6);

    fifth.respond(&request).await;
    patient.succeeds().await;
    for (mut peer, request, caller) in draining {
        peer.respond(&request).await;
        caller.succeeds().await;
    }
}

#[tokio::test(start_paused = true)]
async fn more_tombstones_than_the_limit_retire_the_connection() {
    let (client, mut network) = scene_with(config(|config| config.max_tombstones = 2), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    for _ in 0..2 {
        client.call(ask(ms(10))).fails().await;
    }
    exchange(&client, peer_after(&mut peer, 2).await).await;
    assert_eq!(network.dials(), 1);
    client.call(ask(ms(10))).fails().await;
    connected(&client, &mut network).await;
    assert_eq!(network.dials(), 2);
    assert_only_tombstones(&client, 3);
}

/// The peer, once it has read `frames` that it does not answer.
async fn peer_after(peer: &mut ScriptedPeer, frames: usize) -> &mut ScriptedPeer {
    for _ in 0..frames {
        peer.expect().await;
    }
    peer
}

#[tokio::test(start_paused = true)]
async fn a_connection_whose_opaques_are_used_up_is_replaced_before_one_is_used_again() {
    let settings = config(|config| config.opaques_per_connection = 3);
    let (client, mut network) = scene_with(settings, ROOMY);
    let mut first = connected(&client, &mut network).await;
    let patient = client.call(ask(9 * SECOND).code(1));
    let request = first.expect_code(1).await;
    exchange(&client, &mut first).await;
    assert_eq!(network.dials(), 1);

    let fourth = client.call(ask(SECOND).code(4));
    let mut second = network.accept().await;
    let of_fourth = second.expect_code(4).await;
    second.respond(&of_fourth).await;
    assert_eq!(fourth.succeeds().await.opaque.0, 0);
    first.respond(&request).await;
    patient.succeeds().await;
    first.expect_end().await;
    assert_eq!(network.dials(), 2);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_unused_for_100_seconds_is_not_used_again() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    pass(ms(99_999)).await;
    exchange(&client, &mut peer).await;
    assert_eq!(network.dials(), 1);
    pass(100 * SECOND).await;
    let unused = Instant::now();
    peer.expect_end().await;
    assert_eq!(unused.elapsed(), ms(0));
    connected(&client, &mut network).await;
    assert_eq!(network.dials(), 2);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_replaced_connection_leaves_its_successor_in_place() {
    let (client, mut network) = scene_with(on_timeout(), ROOMY);
    let mut old = connected(&client, &mut network).await;
    let abandoned = client.call(ask(ms(100)));
    old.expect().await;
    abandoned.fails().await;
    settle().await;
    let mut new = connected(&client, &mut network).await;
    // The old one still waits for its late answer; only now does it end, and once more when it is dropped.
    old.shut_write().await;
    settle().await;
    exchange(&client, &mut new).await;
    old.cut();
    settle().await;
    exchange(&client, &mut new).await;
    assert_eq!(network.dials(), 2);
    assert_idle(&client);
}
