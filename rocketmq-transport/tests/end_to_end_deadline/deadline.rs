//! One absolute instant, from the entry to the end.

use std::time::Duration;

use bytes::Bytes;
use rocketmq_transport::{
    Certainty, Code, Request, RequestDeadline, Stage, TransportErrorKind,
    test_support::{Dialing, settle},
};
use tokio::time::{Instant, advance};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn after_40_of_100_ms_60_remain_and_a_copy_expires_at_the_same_instant() {
    let deadline = RequestDeadline::after(ms(100));
    let copy = deadline;
    advance(ms(40)).await;
    assert_eq!(deadline.remaining(Instant::now()), ms(60));
    assert_eq!(copy.at(), deadline.at());
    advance(ms(59)).await;
    assert!(!copy.is_expired(Instant::now()));
    advance(ms(1)).await;
    assert!(copy.is_expired(Instant::now()) && deadline.is_expired(Instant::now()));
    assert_eq!(copy.remaining(Instant::now()), Duration::ZERO);
    assert_eq!(copy.budget(), ms(100));
}

#[tokio::test(start_paused = true)]
async fn a_cap_shortens_a_deadline_and_never_extends_it() {
    let deadline = RequestDeadline::after(ms(100));
    advance(ms(40)).await;
    assert_eq!(deadline.capped(ms(30)).remaining(Instant::now()), ms(30));
    assert_eq!(deadline.capped(ms(90)), deadline);
    assert_eq!(deadline.capped(Duration::MAX), deadline);
    assert_eq!(RequestDeadline::never().capped(ms(90)).remaining(Instant::now()), ms(90));
}

#[tokio::test(start_paused = true)]
async fn what_the_dial_used_up_is_not_left_for_the_response() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let call = client.call(ask(ms(100)));
    settle().await;
    pass(ms(40)).await;
    network.set_dialing(Dialing::Connect);
    let mut peer = network.accept().await;
    peer.expect().await;
    let error = call.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    let clock = error.stage_clock();
    assert_eq!(clock.spent(Stage::Connect), Some(ms(40)));
    assert_eq!(clock.spent(Stage::AwaitingResponse), Some(ms(60)));
    assert_eq!(clock.spent(Stage::Route), None);
    assert_eq!(error.elapsed(), ms(100));
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn the_largest_budget_waits_for_as_long_as_the_response_takes() {
    let (client, mut network) = scene(ROOMY);
    let call = client.call(ask(Duration::MAX).suspend(Duration::MAX));
    let mut peer = network.accept().await;
    let request = peer.expect().await;
    pass(Duration::from_secs(3 * 86_400)).await;
    assert!(call.is_pending().await);
    peer.respond(&request).await;
    let completed = call.succeeds().await;
    assert_eq!(completed.clock.elapsed(), Duration::from_secs(3 * 86_400));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_budget_of_zero_is_over_at_once_and_nothing_is_dialled() {
    let (client, network) = scene(ROOMY);
    let error = client.call(ask(Duration::ZERO)).fails().await;
    assert_ended(&error, Stage::Admission, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    assert_eq!(network.dials(), 0);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_expired_before_it_is_sent_puts_no_byte_on_a_live_connection() {
    let (client, mut network) = scene(ROOMY);
    let first = client.call(ask(SECOND));
    let mut peer = network.accept().await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    first.succeeds().await;

    let expired = ask(ms(20));
    advance(ms(20)).await;
    for error in [client.call(expired.clone()).fails().await, client.oneway(expired).fails().await] {
        assert_ended(&error, Stage::Admission, Certainty::NotSent);
    }
    peer.expect_nothing().await;
    assert_eq!(peer.frames_seen(), 1);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_frozen_with_the_first_poll_and_a_deadline_where_it_was_made() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let (broker, request) = (broker(), || Request { code: Code(SEND), header: &(), body: Bytes::new() });
    let of_budget = client.transport.call(&broker, request(), ms(100));
    let of_deadline = client.transport.call(&broker, request(), RequestDeadline::after(ms(100)));
    advance(ms(100)).await;
    let error = of_deadline.await.unwrap_err();
    assert_ended(&error, Stage::Admission, Certainty::NotSent);
    assert_eq!(error.elapsed(), Duration::ZERO, "it enters with its first poll");
    let error = of_budget.await.unwrap_err();
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert_eq!(error.elapsed(), ms(100));
    peer.expect().await;
}

#[test]
fn a_caller_of_another_runtime_ends_at_its_deadline_while_that_of_the_connection_stands_still() {
    let (client, mut network) = scene(ROOMY);
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (connections, callers) = (runtime(), runtime());
    let _peer = connections.block_on(connected(&client, &mut network));
    let request = Request { code: Code(SEND), header: &(), body: Bytes::new() };
    let error = callers.block_on(client.transport.call(&broker(), request, ms(100))).unwrap_err();
    assert_ended(&error, Stage::BeforeWrite, Certainty::NotSent);
    assert!(error.elapsed() >= ms(100));
}

#[test]
fn a_caller_of_another_runtime_ends_at_its_start_by_instant_as_the_connections_own_do() {
    let (client, mut network) = scene(ROOMY);
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (connections, callers) = (runtime(), runtime());
    let _peer = connections.block_on(connected(&client, &mut network));
    let error = callers.block_on(async {
        let ask = ask(SECOND).start_by(ms(50));
        let request = Request { code: Code(SEND), header: &(), body: Bytes::new() };
        client.transport.call(&broker(), request, ask.options).await.unwrap_err()
    });
    assert_ended(&error, Stage::BeforeWrite, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::NotStarted), "{error}");
    assert!(error.elapsed() >= ms(50));
}

#[tokio::test(start_paused = true)]
async fn each_of_many_deadlines_in_any_order_is_kept_to_the_millisecond() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let start = Instant::now();
    let budgets = [700, 30, 300, 30, 5_000, 1, 299, 301, 2_000, 10];
    let calls = budgets.map(|budget| (budget, client.call(ask(ms(budget)))));
    for _ in budgets {
        peer.expect().await;
    }
    for (budget, call) in calls {
        let error = call.fails().await;
        assert_eq!(error.elapsed(), ms(budget));
    }
    assert_eq!(start.elapsed(), ms(5_000));
    assert_only_tombstones(&client, budgets.len() as u64);
}
