//! A response that did not come: is the peer silent, is it slow, or were we?

use std::{future::poll_fn, pin::pin, task::Poll};

use rocketmq_transport::{
    Opaque, RequestDeadline, Stage,
    test_support::{LogSink, settle},
};
use tokio::time::sleep;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_peer_that_answered_others_since_our_write_was_heard_and_the_error_says_how_long_ago() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let (slow, quick) = (spawn(&transport, ms(500)), spawn(&transport, ms(1_000)));
    let _not_answered = peer.expect().await;
    let answered = peer.expect().await;
    sleep(ms(200)).await;
    peer.respond(&answered).await;
    quick.await.unwrap().unwrap();
    let error = slow.await.unwrap().unwrap_err();
    assert_eq!(error.stage(), Stage::AwaitingResponse);
    assert_eq!((error.heard_since_written(), error.last_heard()), (Some(true), Some(ms(300))));
    assert_eq!(error.client_stalled(), None);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_has_been_silent_since_our_write_is_told_from_one_that_never_spoke() {
    let (transport, mut network) = scene(|_| {});
    let call = spawn(&transport, ms(100));
    let mut peer = network.accept().await;
    let first = peer.expect().await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.heard_since_written(), error.last_heard()), (Some(false), None));

    peer.respond(&first).await;
    settle().await;
    sleep(ms(50)).await;
    let (error, _) = timed_out(&transport, &mut peer, ms(100)).await;
    assert_eq!((error.heard_since_written(), error.last_heard()), (Some(false), Some(ms(150))));
}

#[tokio::test(start_paused = true)]
async fn half_an_answer_is_a_sign_of_life_too() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let call = spawn(&transport, ms(100));
    peer.expect().await;
    sleep(ms(60)).await;
    peer.send_raw(&[0, 0]).await;
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.heard_since_written(), error.last_heard()), (Some(true), Some(ms(40))));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_never_written_says_nothing_of_what_was_heard() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let error = call(&transport, RequestDeadline::after(ms(0))).await.unwrap_err();
    assert_eq!((error.heard_since_written(), error.last_heard()), (None, None));
    peer.expect_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_of_ours_that_stalled_beyond_the_deadline_says_so() {
    for (late, said) in [(400, Some(ms(400))), (50, Some(ms(50))), (49, None)] {
        let (transport, mut network) = scene(|_| {});
        let mut peer = connected(&transport, &mut network).await;
        let call = spawn(&transport, ms(100));
        peer.expect().await;
        // No task is polled in between.
        pass(ms(100 + late)).await;
        assert_eq!(call.await.unwrap().unwrap_err().client_stalled(), said);
    }
}

#[tokio::test(start_paused = true)]
async fn the_line_has_the_evidence_and_leaves_out_what_there_is_none_of() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    sleep(ms(5)).await;
    peer.send_request(40, Opaque(1)).await;
    settle().await;
    let log = LogSink::install();
    let (call, _neighbour) = (spawn(&transport, ms(100)), spawn(&transport, ms(9_000)));
    peer.expect().await;
    pass(ms(350)).await;
    call.await.unwrap().unwrap_err();
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line.target == "rocketmq::request").collect();
    let field = |name: &str| lines[0].fields.get(name).map(String::as_str);
    for (name, value) in [
        ("stage", "AwaitingResponse"),
        ("certainty", "Unknown"),
        ("budget_ms", "100"),
        ("elapsed_ms", "350"),
        ("awaiting_response_ms", "350"),
        ("last_heard_ms", "350"),
        ("client_stalled_ms", "250"),
        ("in_flight", "1"),
    ] {
        assert_eq!(field(name), Some(value), "{name} in {:?}", lines[0]);
    }
    assert!(["admission", "folded", "route_ms", "pause_ms", "broker"].map(field).iter().all(Option::is_none));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_lay_in_the_socket_while_our_process_stalled_is_the_late_answer() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let mut call = pin!(call(&transport, RequestDeadline::after(ms(100))));
    assert!(poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await.is_pending());
    let request = peer.expect().await;
    // The whole process stands still, and the answer arrives meanwhile.
    tokio::time::advance(ms(500)).await;
    settle().await;
    let error = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
    let Poll::Ready(Err(error)) = error else { panic!("its deadline has come: {error:?}") };
    assert_eq!(error.client_stalled(), Some(ms(400)));
    peer.respond(&request).await;
    let late = error.late_answer().expect("it may still come").wait().await;
    assert_eq!(late.map(|response| response.opaque()), error.opaque());
}

#[tokio::test(start_paused = true)]
async fn what_was_heard_before_the_end_is_not_older_for_a_caller_that_looks_late() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let mut call = pin!(call(&transport, RequestDeadline::after(ms(60_000))));
    assert!(poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await.is_pending());
    peer.expect().await;
    sleep(ms(90)).await;
    peer.send_request(40, Opaque(1)).await;
    sleep(ms(10)).await;
    peer.cut();
    sleep(ms(900)).await;
    let error = call.await.unwrap_err();
    assert_eq!(error.elapsed(), ms(100));
    assert_eq!((error.heard_since_written(), error.last_heard()), (Some(true), Some(ms(10))));
}
