//! After a failed dial, and after a connection that ended without one valid response.

use std::{io, time::Duration};

use rocketmq_transport::{
    Certainty, Stage, TransportError, TransportErrorKind,
    test_support::{Dialing, Network, settle},
};
use tokio::time::Instant;

use crate::support::*;

/// How long the pause still lasts of which `error` tells.
#[track_caller]
fn remaining(error: &TransportError) -> Duration {
    assert_ended(error, Stage::Connect, Certainty::NotSent);
    match error.kind() {
        TransportErrorKind::BackingOff { remaining, .. } => *remaining,
        kind => panic!("not backing off: {kind}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_during_the_pause_after_a_refused_dial_fails_at_once_with_its_cause() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Refuse(io::ErrorKind::ConnectionRefused));
    let mut longest = ms(100);
    for dials in 1..=8 {
        let error = client.call(ask(SECOND)).fails().await;
        assert_ended(&error, Stage::Connect, Certainty::NotSent);
        assert!(matches!(error.kind(), TransportErrorKind::ConnectFailed(_)));
        let error = client.call(ask(SECOND)).fails().await;
        let pause = remaining(&error);
        assert!(longest / 2 <= pause && pause <= longest, "{pause:?} after {dials} dials");
        let TransportErrorKind::BackingOff { source, .. } = error.kind() else { unreachable!() };
        assert_eq!((source.kind(), error.elapsed()), (io::ErrorKind::ConnectionRefused, Duration::ZERO));
        assert_eq!(network.dials(), dials);
        pass(pause).await;
        longest = (longest * 2).min(5 * SECOND);
    }
    network.set_dialing(Dialing::Connect);
    let mut peer = connected(&client, &mut network).await;
    // The first valid response makes the pauses short again.
    network.set_dialing(Dialing::Refuse(io::ErrorKind::ConnectionRefused));
    peer.shut_write().await;
    settle().await;
    client.call(ask(SECOND)).fails().await;
    assert!(remaining(&client.call(ask(SECOND)).fails().await) <= ms(100));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn dials_of_a_peer_that_refuses_200_times_are_bounded_and_never_stop_for_good() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Refuse(io::ErrorKind::ConnectionRefused));
    for _ in 0..200 {
        client.call(ask(SECOND)).fails().await;
        pass(SECOND).await;
    }
    // Pauses of 50 ms to 5 s: six short ones, then one of at least 2.5 s after another.
    assert!(network.dials() <= 6 + 80, "{}", network.dials());
    network.set_dialing(Dialing::Connect);
    pass(5 * SECOND).await;
    connected(&client, &mut network).await;
    assert_idle(&client);
}

/// The peer hangs up on a request that it has read.
async fn hang_up(client: &Client, network: &mut Network) {
    let call = client.call(ask(SECOND));
    let mut peer = network.accept().await;
    peer.expect().await;
    peer.cut();
    assert_ended(&call.fails().await, Stage::AwaitingResponse, Certainty::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ended_without_one_response_counts_as_a_failed_dial() {
    let (client, mut network) = scene(ROOMY);
    for _ in 0..3 {
        hang_up(&client, &mut network).await;
        let error = client.call(ask(SECOND)).fails().await;
        pass(remaining(&error)).await;
    }
    assert_eq!(network.dials(), 3);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_has_answered_is_replaced_at_once_when_it_is_lost() {
    let (client, mut network) = scene(ROOMY);
    for dials in 1..=3 {
        let peer = connected(&client, &mut network).await;
        peer.cut();
        settle().await;
        assert_eq!(network.dials(), dials);
    }
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn no_call_slips_past_the_pause_while_the_connection_is_still_closing() {
    for turns in 0..20 {
        let (client, mut network) = scene(ROOMY);
        let call = client.call(ask(SECOND));
        let mut peer = network.accept().await;
        peer.expect().await;
        peer.cut();
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        let started = Instant::now();
        let error = client.call(ask(ms(40))).fails().await;
        call.fails().await;
        assert_eq!((network.dials(), started.elapsed()), (1, Duration::ZERO), "{turns} turns: {error}");
        assert_eq!(client.usage().pending, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn one_peer_that_cannot_be_dialled_does_not_hold_up_another() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let stuck = client.call(ask(SECOND));
    settle().await;
    let other = client.call(ask(ms(50)).to(other_broker()));
    settle().await;
    assert_eq!(network.dials(), 2);
    network.set_dialing(Dialing::Connect);
    let mut peers = [network.accept().await, network.accept().await];
    peers.sort_by_key(|peer| peer.name().clone());
    for peer in peers.iter_mut().rev() {
        let request = peer.expect().await;
        peer.respond(&request).await;
    }
    other.succeeds().await;
    stuck.succeeds().await;
    assert_idle(&client);
}
