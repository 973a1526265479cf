//! What may be in flight, and who is refused.

use std::{task::Poll, time::Duration};

use rocketmq_transport::{
    Certainty, Class, Dimension, Level, Limit, Refusal, Stage, TransportConfig, TransportError,
    TransportErrorKind, test_support::settle,
};

use crate::support::*;

fn data_limit(requests: u64, bytes: u64) -> TransportConfig {
    config(|config| config.data_limit = Limit { requests, bytes })
}

fn refusal(error: &TransportError) -> Refusal {
    match error.kind() {
        TransportErrorKind::QueueSaturated(refusal) | TransportErrorKind::TooLarge(refusal) => *refusal,
        kind => panic!("not a refusal: {kind}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_budget_refuses_at_once_and_says_where_until_there_is_room_again() {
    let (client, mut network) = scene_with(data_limit(2, 1 << 20), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let (first, second) = (client.call(ask(9 * SECOND)), client.call(ask(9 * SECOND)));
    let (one, two) = (peer.expect().await, peer.expect().await);

    let error = client.call(ask(9 * SECOND)).fails().await;
    assert_ended(&error, Stage::Admission, Certainty::Refused);
    assert!(matches!(error.kind(), TransportErrorKind::QueueSaturated(_)));
    let expected = Refusal {
        level: Level::Class(Class::Data),
        dimension: Dimension::Requests,
        limit: 2,
        in_use: 2,
        asked: 1,
    };
    assert_eq!(refusal(&error), expected);
    assert_eq!(error.elapsed(), Duration::ZERO);

    peer.respond(&one).await;
    first.succeeds().await;
    let third = client.call(ask(9 * SECOND));
    let three = peer.expect().await;
    peer.respond(&three).await;
    peer.respond(&two).await;
    third.succeeds().await;
    second.succeeds().await;
    assert_eq!(peer.frames_seen(), 4);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_room_is_charged_to_admission_and_extends_nothing() {
    let (client, mut network) = scene_with(data_limit(1, 1 << 20), ROOMY);
    let first = client.call(ask(9 * SECOND));
    let mut peer = network.accept().await;
    let one = peer.expect().await;
    let (served, starved) = (client.call(ask(ms(500)).waiting()), client.call(ask(ms(400)).waiting()));
    settle().await;
    pass(ms(300)).await;
    peer.respond(&one).await;
    first.succeeds().await;

    peer.expect().await;
    let error = starved.fails().await;
    assert_ended(&error, Stage::Admission, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    assert_eq!(error.elapsed(), ms(400));

    let error = served.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert_eq!(error.stage_clock().spent(Stage::Admission), Some(ms(300)));
    assert_eq!(error.stage_clock().spent(Stage::AwaitingResponse), Some(ms(200)));
    assert_eq!(peer.frames_seen(), 2);
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn a_large_header_without_a_body_is_refused_by_bytes() {
    let (client, mut network) = scene_with(data_limit(100, 10_000), ROOMY);
    network.set_allowance(0);
    let first = client.call(ask(SECOND).field("a".repeat(8_000)));
    let mut peer = network.accept().await;
    settle().await;
    assert!(client.usage().data.bytes >= 8_000);

    let error = client.call(ask(SECOND).field("b".repeat(8_000))).fails().await;
    assert_ended(&error, Stage::Admission, Certainty::Refused);
    let refusal = refusal(&error);
    assert_eq!((refusal.level, refusal.dimension), (Level::Class(Class::Data), Dimension::Bytes));
    assert_eq!(refusal.limit, 10_000);
    assert!(refusal.asked >= 8_000 && refusal.asked == error.bytes(), "{refusal}");

    peer.accept_all();
    let one = peer.expect().await;
    peer.respond(&one).await;
    first.succeeds().await;
    assert_eq!(peer.frames_seen(), 1);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_request_larger_than_a_whole_limit_is_refused_at_once_even_where_it_may_wait() {
    let (client, network) = scene_with(data_limit(100, 10_000), ROOMY);
    let error = client.call(ask(SECOND).body(vec![0; 10_000]).waiting()).fails().await;
    assert_ended(&error, Stage::Admission, Certainty::Refused);
    assert!(matches!(error.kind(), TransportErrorKind::TooLarge(_)));
    assert_eq!((refusal(&error).dimension, refusal(&error).in_use), (Dimension::Bytes, 0));
    assert_eq!((error.elapsed(), network.dials()), (Duration::ZERO, 0));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_the_level_that_is_full() {
    let limit = Limit { requests: 1, bytes: 1 << 20 };
    for (settings, peer, level) in [
        (config(|config| config.peer_limit = limit), broker(), Level::Peer),
        (config(|config| config.client_limit = limit), other_broker(), Level::Client),
    ] {
        let (client, mut network) = scene_with(settings, ROOMY);
        let first = client.call(ask(SECOND));
        let mut answering = network.accept().await;
        let one = answering.expect().await;
        let error = client.call(ask(SECOND).to(peer)).fails().await;
        assert_ended(&error, Stage::Admission, Certainty::Refused);
        assert_eq!(refusal(&error).level, level);
        answering.respond(&one).await;
        first.succeeds().await;
        assert_idle(&client);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_answers_nothing_leaves_the_others_their_share() {
    let (client, mut network) = scene_with(data_limit(3, 1 << 20), ROOMY);
    let stuck: Vec<_> = (0..3).map(|_| client.call(ask(SECOND))).collect();
    let _silent = network.accept().await;
    settle().await;
    assert!(client.call(ask(SECOND)).ended().await.is_err());

    let call = client.call(ask(SECOND).to(other_broker()));
    let mut answering = network.accept().await;
    assert_eq!(answering.name(), &other_broker());
    let request = answering.expect().await;
    answering.respond(&request).await;
    call.succeeds().await;
    for call in stuck {
        assert_ended(&call.fails().await, Stage::AwaitingResponse, Certainty::Unknown);
    }
    assert_only_tombstones(&client, 3);
}

#[tokio::test(start_paused = true)]
async fn control_has_room_while_data_has_used_up_everything() {
    let (client, mut network) = scene_with(data_limit(1, 1 << 20), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let data = client.call(ask(SECOND));
    let heartbeat = client.call(ask(SECOND).code(34).class(Class::Control));
    let beat = peer.expect_code(34).await;
    let one = peer.expect_code(SEND).await;
    assert_eq!((client.usage().control.requests, client.usage().data.requests), (1, 1));
    peer.respond(&beat).await;
    heartbeat.succeeds().await;
    peer.respond(&one).await;
    data.succeeds().await;
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn oneway_requests_to_a_peer_that_does_not_read_are_bounded_by_bytes() {
    let (client, mut network) = scene_with(data_limit(1_000, 1 << 20), 1 << 10);
    let mut peer = connected(&client, &mut network).await;
    let mut accepted = Vec::new();
    let refused = loop {
        let mut oneway = client.oneway(ask(SECOND).body(vec![0; 64 << 10]));
        match oneway.pending_or_ended().await {
            None => accepted.push(oneway),
            Some(ended) => break ended.unwrap_err(),
        }
    };
    assert_eq!((refusal(&refused).dimension, accepted.len()), (Dimension::Bytes, 15));
    assert!(client.usage().data.bytes <= 1 << 20);
    for _ in 0..accepted.len() {
        peer.expect().await;
    }
    for oneway in accepted {
        oneway.succeeds().await;
    }
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn places_of_queued_requests_are_free_the_moment_they_are_dropped() {
    let (client, mut network) = scene_with(data_limit(4, 1 << 20), ROOMY);
    network.set_allowance(0);
    let mut dropped: Vec<_> = (0..4).map(|_| client.begin(ask(SECOND).code(1))).collect();
    for call in &mut dropped {
        poll_pending(call).await;
    }
    let mut peer = network.accept().await;
    settle().await;
    for call in &mut dropped {
        poll_pending(call).await;
    }
    assert_eq!(client.usage().queued, 4);

    // No task runs between the drop and the next requests.
    drop(dropped);
    assert_idle(&client);
    let mut admitted: Vec<_> = (0..4).map(|_| client.begin(ask(SECOND).code(2))).collect();
    for call in &mut admitted {
        poll_pending(call).await;
    }
    let refused = client.begin(ask(SECOND).code(3)).await.unwrap_err();
    assert_ended(&refused, Stage::Admission, Certainty::Refused);

    let admitted: Vec<_> = admitted.into_iter().map(tokio::spawn).collect();
    peer.accept_all();
    for _ in 0..4 {
        let request = peer.expect_code(2).await;
        peer.respond(&request).await;
    }
    for call in admitted {
        call.await.unwrap().unwrap();
    }
    peer.expect_nothing().await;
    assert_eq!(peer.frames_seen(), 4);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_used_up_its_turn_is_admitted_all_the_same() {
    let (client, mut network) = scene_with(data_limit(2, 1 << 20), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    (0..1_000).for_each(|number| sender.send(number).unwrap());
    // Polled without a turn between them, until the runtime makes the task wait although there is more.
    let mut taken = 0;
    while std::future::poll_fn(|cx| Poll::Ready(receiver.poll_recv(cx))).await.is_ready() {
        taken += 1;
    }
    assert!(taken < 1_000, "the task still has its turn");
    let mut call = client.begin(ask(SECOND));
    poll_pending(&mut call).await;
    assert_eq!(client.usage().data.requests, 1);

    let call = tokio::spawn(call);
    let request = peer.expect().await;
    peer.respond(&request).await;
    call.await.unwrap().unwrap();
    assert_idle(&client);
}
