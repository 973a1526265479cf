//! A look at what is in flight.

use std::time::Duration;

use rocketmq_transport::{
    InFlight, InFlightRequest, Peer, RequestDeadline, Stage,
    test_support::{Then, settle},
};
use tokio::time::sleep;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn each_request_is_seen_where_it_is() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let (error, _) = timed_out(&transport, &mut peer, ms(100)).await;
    let _awaiting = spawn(&transport, ms(1_000));
    peer.expect().await;
    peer.accept_only(5, Then::Wait);
    let _writing = spawn(&transport, ms(2_000));
    settle().await;
    let transport_of_queued = transport.clone();
    let _queued = tokio::spawn(async move {
        call(&transport_of_queued, RequestDeadline::never()).await.unwrap_err();
    });
    sleep(ms(50)).await;

    let InFlight { requests, omitted, .. } = transport.in_flight(100);
    assert_eq!((requests.len(), omitted), (4, 0));
    let seen = |stage| requests.iter().find(|seen| seen.stage == stage).unwrap();
    let of = |seen: &InFlightRequest| (seen.age, seen.budget_left);
    assert_eq!(of(seen(None)), (ms(150), Duration::ZERO));
    assert_eq!(of(seen(Some(Stage::AwaitingResponse))), (ms(50), ms(950)));
    assert_eq!(of(seen(Some(Stage::Writing))), (ms(50), ms(1_950)));
    assert_eq!(of(seen(Some(Stage::BeforeWrite))), (ms(50), Duration::MAX));
    assert_eq!(Some(seen(None).opaque), error.opaque());
    for seen in &requests {
        assert_eq!((seen.code.0, &seen.peer, seen.bytes), (310, &broker(), error.bytes()));
        assert_eq!(Some(seen.generation), error.generation());
    }
    let line = seen(Some(Stage::Writing)).to_string();
    assert!(line.contains("on broker-a.example:10911#1: Writing for 50 ms, 1950 ms left, "), "{line}");
    assert!(seen(None).to_string().contains("Tombstone"));
}

#[tokio::test(start_paused = true)]
async fn a_look_is_bounded_and_says_exactly_how_many_it_leaves_out() {
    let (transport, mut network) = scene(|_| {});
    let other: Peer = "broker-b.example:10911".parse().unwrap();
    let mut calls = Vec::new();
    for number in 0..30 {
        let (transport, peer) = (transport.clone(), if number % 3 == 0 { broker() } else { other.clone() });
        calls.push(tokio::spawn(async move {
            let _ = transport.call(&peer, request(), RequestDeadline::never()).await;
        }));
    }
    settle().await;
    let _peers = (network.accept().await, network.accept().await);
    for (most, seen) in [(0, 0), (1, 1), (9, 9), (10, 10), (29, 29), (30, 30), (usize::MAX, 30)] {
        let look = transport.in_flight(most);
        assert_eq!((look.requests.len(), look.omitted), (seen, 30 - seen as u64), "of {most}");
    }
    calls.iter().for_each(|call| call.abort());
    settle().await;
    let look = transport.in_flight(usize::MAX);
    assert!(look.requests.iter().all(|seen| seen.stage.is_none()), "tombstones only");
    transport.close(ms(0)).await;
    let look = transport.in_flight(usize::MAX);
    assert_eq!((look.requests.len(), look.omitted), (0, 0));
}
