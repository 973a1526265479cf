//! The answer that comes after its request has ended.

use rocketmq_transport::{Certainty, LateAnswer, RequestDeadline, test_support::settle};
use tokio::time::{Instant, sleep};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn every_waiter_gets_the_late_answer_those_that_come_after_it_too() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let (error, request) = timed_out(&transport, &mut peer, ms(100)).await;
    assert_eq!(error.certainty(), Certainty::Unknown);
    let late = error.late_answer().expect("it may come").clone();
    let waits: Vec<_> = (0..3).map(|_| wait(&late)).collect();
    // One waiter that leaves takes nothing from the others.
    waits[0].abort();
    sleep(ms(200)).await;
    assert!(!waits[1].is_finished());
    assert_eq!(format!("{late:?}"), "LateAnswer(may come)");
    peer.respond(&request).await;
    for wait in waits.into_iter().skip(1) {
        assert_eq!(wait.await.unwrap(), Some(request.opaque()));
    }
    assert_eq!(late.wait().await.map(|response| response.opaque()), Some(request.opaque()));
    assert_eq!(format!("{late:?}"), "LateAnswer(came)");
    assert!(transport.usage().is_idle());
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_one_request_resolves_no_other() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let (one, _) = timed_out(&transport, &mut peer, ms(10)).await;
    let (other, asked) = timed_out(&transport, &mut peer, ms(10)).await;
    let waits = [one, other].map(|error| wait(error.late_answer().unwrap()));
    peer.respond(&asked).await;
    settle().await;
    assert_eq!(waits.each_ref().map(|wait| wait.is_finished()), [false, true]);
    drop(transport);
    let [one, _] = waits;
    assert_eq!(one.await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_window_and_not_before() {
    let (transport, mut network) = scene(|config| config.late_window = ms(5_000));
    let mut peer = connected(&transport, &mut network).await;
    // A peer that speaks to others is not retired.
    let (error, _) = timed_out(&transport, &mut peer, ms(100)).await;
    let began = Instant::now();
    assert_eq!(wait(error.late_answer().unwrap()).await.unwrap(), None);
    assert!((ms(5_000)..=ms(5_002)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert!(transport.usage().is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_its_connection() {
    for end in [End::Fin, End::Closed, End::Dropped] {
        let (transport, mut network) = scene(|_| {});
        let mut peer = connected(&transport, &mut network).await;
        let (error, _) = timed_out(&transport, &mut peer, ms(100)).await;
        let wait = wait(error.late_answer().unwrap());
        settle().await;
        assert!(!wait.is_finished());
        let began = Instant::now();
        match end {
            End::Fin => peer.cut(),
            End::Closed => drop(transport.close(ms(100)).await),
            End::Dropped => drop(transport),
        }
        assert_eq!(wait.await.unwrap(), None, "{end:?}");
        assert!(began.elapsed() <= ms(1_000), "{end:?}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn what_can_have_no_answer_has_none_to_wait_for() {
    let (transport, mut network) = scene(|_| {});
    let peer = connected(&transport, &mut network).await;
    peer.accept_only(3, rocketmq_transport::test_support::Then::Wait);
    let oneway = transport.oneway(&broker(), request(), RequestDeadline::after(ms(100))).await.unwrap_err();
    assert_eq!(oneway.certainty(), Certainty::Unknown);
    assert!(oneway.late_answer().is_none());
    let queued = call(&transport, RequestDeadline::after(ms(100))).await.unwrap_err();
    assert_eq!(queued.certainty(), Certainty::NotSent);
    assert!(queued.late_answer().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kept_handle_keeps_no_connection() {
    let (transport, mut network) = scene(|_| {});
    let mut peer = connected(&transport, &mut network).await;
    let (error, _) = timed_out(&transport, &mut peer, ms(100)).await;
    let late = error.late_answer().unwrap().clone();
    drop((error, transport));
    peer.expect_end().await;
    assert_eq!(late.wait().await.map(|response| response.opaque()), None);
}

#[derive(Clone, Copy, Debug)]
enum End {
    Fin,
    Closed,
    Dropped,
}

fn wait(late: &LateAnswer) -> tokio::task::JoinHandle<Option<rocketmq_transport::Opaque>> {
    let late = late.clone();
    tokio::spawn(async move { late.wait().await.map(|response| response.opaque()) })
}
