//! Closing by the owner: what is finished, what is refused, and what is given up.

use std::{sync::Arc, time::Duration};

use rocketmq_transport::{
    Certainty, CloseReport, Completed, RetirePolicy, Stage, Transport, TransportConfig, TransportErrorKind,
    test_support::{Dialing, Network, Readiness, ScriptedPeer, ScriptedSigner, settle},
};
use tokio::{task::JoinHandle, time::Instant};

use crate::support::*;

/// Begins to close, and lets that have its effect.
async fn close(client: &Client, bound: Duration) -> JoinHandle<CloseReport> {
    let transport: Transport = client.transport.clone();
    let closing = tokio::spawn(async move { transport.close(bound).await });
    settle().await;
    closing
}

fn report(finished: u64, failed: u64, abandoned: u64) -> [u64; 3] {
    [finished, failed, abandoned]
}

fn counts(closed: CloseReport) -> [u64; 3] {
    [closed.finished, closed.failed, closed.abandoned]
}

#[tokio::test(start_paused = true)]
async fn a_graceful_close_finishes_what_is_in_flight_and_refuses_what_comes() {
    let (client, mut network) = scene(64);
    let mut peer = connected(&client, &mut network).await;
    let answered = client.call(ask(9 * SECOND).code(1));
    let written = client.oneway(ask(9 * SECOND).code(2).body(vec![0; 4096]));
    let queued = client.call(ask(9 * SECOND).code(3));
    let expiring = client.call(ask(SECOND).code(4));
    let request = peer.expect_code(1).await;

    let closing = close(&client, 5 * SECOND).await;
    let refused = client.call(ask(SECOND)).fails().await;
    assert_ended(&refused, Stage::Admission, Certainty::NotSent);
    assert!(matches!(refused.kind(), TransportErrorKind::Closed));

    peer.respond(&request).await;
    peer.expect_code(2).await;
    let request = peer.expect_code(3).await;
    peer.expect_code(4).await;
    expiring.fails().await;
    peer.respond(&request).await;
    answered.succeeds().await;
    written.succeeds().await;
    queued.succeeds().await;
    peer.expect_end().await;
    peer.cut();
    assert_eq!(counts(closing.await.unwrap()), report(3, 1, 0));
    assert_eq!(network.dials(), 1);
    assert_idle(&client);

    let again = Instant::now();
    assert_eq!(client.transport.close(5 * SECOND).await, CloseReport::default());
    assert_eq!(again.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_what_is_in_flight_at_its_bound_and_no_later() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let calls: Vec<_> = (0..5).map(|_| client.call(ask(60 * SECOND))).collect();
    settle().await;
    let begun = Instant::now();
    let closed = client.transport.close(ms(100)).await;
    assert_eq!((counts(closed), begun.elapsed()), (report(0, 0, 5), ms(100)));
    for call in calls {
        let error = call.fails().await;
        assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
        assert!(matches!(error.kind(), TransportErrorKind::Closed));
        assert_eq!(error.elapsed(), ms(100));
    }
    assert_eq!(peer.rest().await.frames.len(), 5);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_within_its_bound_where_the_peer_keeps_its_side_open() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let begun = Instant::now();
    let closed = client.transport.close(ms(100)).await;
    assert!(begun.elapsed() <= ms(100), "{:?}", begun.elapsed());
    assert_eq!(counts(closed), report(0, 0, 0));
    peer.expect_end().await;
}

#[tokio::test(start_paused = true)]
async fn a_close_does_not_wait_for_answers_that_nobody_waits_for() {
    for policy in [RetirePolicy::OnSilence, RetirePolicy::OnTimeout] {
        let (client, mut network) = scene_with(config(|config| config.retire = policy), ROOMY);
        let mut peer = connected(&client, &mut network).await;
        client.call(ask(ms(100))).fails().await;
        peer.expect().await;
        settle().await;
        let begun = Instant::now();
        let closing = close(&client, 30 * SECOND).await;
        peer.expect_end().await;
        peer.cut();
        assert_eq!(counts(closing.await.unwrap()), report(0, 0, 0));
        assert_eq!(begun.elapsed(), Duration::ZERO, "{policy:?}");
        assert_idle(&client);
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_without_any_connection_is_over_at_once() {
    let (client, network) = scene(ROOMY);
    let begun = Instant::now();
    assert_eq!(client.transport.close(SECOND).await, CloseReport::default());
    assert_eq!((begun.elapsed(), network.dials()), (Duration::ZERO, 0));
    let error = client.call(ask(SECOND)).fails().await;
    assert!(matches!(error.kind(), TransportErrorKind::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_the_wait_for_a_dial_and_drops_what_is_dialled() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let dialling = client.call(ask(60 * SECOND));
    settle().await;
    assert_eq!(client.transport.close(5 * SECOND).await, CloseReport::default());
    assert_closed_in(Stage::Connect, dialling).await;
    network.set_dialing(Dialing::Connect);
    settle().await;
    assert!(network.try_accept().is_none(), "a dial went on after the close");
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_the_wait_for_room_while_others_are_finished() {
    let (client, mut network) = scene_with(config(|config| config.data_limit.requests = 1), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let finishing = client.call(ask(60 * SECOND));
    let request = peer.expect().await;
    let waiting = client.call(ask(60 * SECOND).waiting());
    settle().await;
    let closing = close(&client, 5 * SECOND).await;
    assert_closed_in(Stage::Admission, waiting).await;
    peer.respond(&request).await;
    finishing.succeeds().await;
    peer.expect_end().await;
    peer.cut();
    assert_eq!(counts(closing.await.unwrap()), report(1, 0, 0));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_close_ends_the_wait_for_a_signature() {
    let (client, mut network) =
        scene_signed(Arc::new(ScriptedSigner::new(Readiness::Hold)), TransportConfig::default());
    let signing = client.call(ask(60 * SECOND));
    let mut peer = network.accept().await;
    settle().await;
    let closing = close(&client, 5 * SECOND).await;
    assert_closed_in(Stage::Signing, signing).await;
    peer.expect_end().await;
    peer.cut();
    assert_eq!(closing.await.unwrap(), CloseReport::default());
    assert_idle(&client);
}

/// The close has ended `call` in `stage`, at once.
async fn assert_closed_in(stage: Stage, call: InFlight<Completed>) {
    let error = call.fails().await;
    assert_ended(&error, stage, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::Closed), "{error}");
    assert_eq!(error.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn the_drop_of_the_last_handle_ends_the_connections_and_every_task() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let mut other = client.clone();
    drop(client);
    peer.expect_nothing().await;
    let abandoned = other.call(ask(60 * SECOND));
    peer.expect().await;
    abandoned.dropped().await;
    other = scene(ROOMY).0;
    settle().await;
    peer.expect_end().await;
    drop(other);
    settle().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_drop_while_dialling_drops_what_is_dialled() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let call = client.call(ask(60 * SECOND));
    settle().await;
    call.dropped().await;
    drop(client);
    settle().await;
    network.set_dialing(Dialing::Connect);
    settle().await;
    assert!(network.try_accept().is_none());
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_waiters_end_whatever_ends_their_connection() {
    for ending in ["close", "end of stream", "reset", "malformed"] {
        let (client, mut network) = scene(ROOMY);
        let mut peer = connected(&client, &mut network).await;
        let calls: Vec<_> = (0..100).map(|_| client.call(ask(60 * SECOND))).collect();
        settle().await;
        assert_eq!(client.usage().pending, 100);
        let begun = Instant::now();
        match ending {
            "close" => drop(client.transport.close(Duration::ZERO).await),
            "end of stream" => peer.shut_write().await,
            "reset" => peer.reset(std::io::ErrorKind::ConnectionReset),
            _ => peer.send_raw(&[0xFF; 16]).await,
        }
        for call in calls {
            assert_ended(&call.fails().await, Stage::AwaitingResponse, Certainty::Unknown);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "{ending}");
        assert_idle(&client);
    }
}

#[test]
fn a_drop_outside_of_the_runtime_does_not_panic() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (client, mut peer) = runtime.block_on(async {
        let (client, mut network) = scene(ROOMY);
        let peer = connected_in_real_time(&client, &mut network).await;
        (client, peer)
    });
    drop(client);
    runtime.block_on(peer.expect_end());
}

async fn connected_in_real_time(client: &Client, network: &mut Network) -> ScriptedPeer {
    let client = Client::real(client.transport.clone());
    connected(&client, network).await
}

#[tokio::test(start_paused = true)]
async fn a_close_never_misses_the_last_request_that_ends() {
    for round in 0..200_u32 {
        let (client, mut network) = scene(ROOMY);
        let mut peer = connected(&client, &mut network).await;
        let mut calls: Vec<_> = (0..4).map(|_| client.call(ask(60 * SECOND))).collect();
        settle().await;
        let begun = Instant::now();
        let mut closing = None;
        for step in 0..5 {
            if round % 5 == step {
                let transport = client.transport.clone();
                closing = Some(tokio::spawn(async move { transport.close(30 * SECOND).await }));
            }
            for _ in 0..round / 5 % 7 {
                tokio::task::yield_now().await;
            }
            if !calls.is_empty() {
                calls.swap_remove((round / 35) as usize % calls.len()).dropped().await;
            }
        }
        peer.rest().await;
        peer.cut();
        closing.expect("it has begun in one of the steps").await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO, "round {round}");
        assert_idle(&client);
    }
}
