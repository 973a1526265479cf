//! Answers that come too late, twice, or for nothing that was asked.

use rocketmq_transport::{
    Certainty, HeaderEncoding, Opaque, RequestDeadline, RetirePolicy, Stage, TransportConfig,
    test_support::{LogSink, PendingTable, Verdict, settle},
};
use tokio::time::advance;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn the_late_answer_of_request_29_does_not_touch_request_29_of_the_next_generation() {
    let settings = config(|config| {
        config.first_opaque = 29;
        config.retire = RetirePolicy::OnTimeout;
    });
    let (client, mut network) = scene_with(settings, ROOMY);
    let log = LogSink::install();
    let first = client.call(ask(ms(100)).field("of A"));
    let mut a = network.accept().await;
    let asked_of_a = a.expect().await;
    let error = first.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert_eq!(error.opaque(), Some(Opaque(29)));

    let second = client.call(ask(SECOND).field("of B"));
    let mut b = network.accept().await;
    let asked_of_b = b.expect().await;
    assert_eq!((asked_of_a.opaque(), asked_of_b.opaque()), (Opaque(29), Opaque(29)));
    pass(ms(250)).await;
    a.respond(&asked_of_a).await;
    assert!(second.is_pending().await);
    assert_eq!((client.usage().late, client.usage().unsolicited), (1, 0));
    let lines = log.with_message("late response");
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].level, tracing::Level::DEBUG);
    assert_eq!((&*lines[0].fields["opaque"], &*lines[0].fields["late_by_ms"]), ("29", "250"));
    assert_eq!(lines[0].fields["generation"], error.generation().unwrap().to_string());

    b.respond(&asked_of_b).await;
    let completed = second.succeeds().await;
    assert_eq!(completed.opaque, Opaque(29));
    assert!(completed.generation > error.generation().unwrap());
    assert_eq!(network.dials(), 2);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn the_table_tells_late_unsolicited_and_foreign_answers_apart() {
    let table = PendingTable::new(TransportConfig::default());
    let deadline = RequestDeadline::after(ms(100));
    let a = table.open(29);
    let of_a = a.register(deadline).unwrap();
    advance(ms(100)).await;
    of_a.expire();
    assert_eq!(of_a.outcome().unwrap().unwrap_err(), Stage::AwaitingResponse);
    a.retire();
    assert!(a.register(RequestDeadline::never()).is_none(), "a retired generation takes nothing more");

    let b = table.open(29);
    let of_b = b.register(RequestDeadline::never()).unwrap();
    assert_eq!((of_a.opaque(), of_b.opaque()), (Opaque(29), Opaque(29)));
    advance(ms(250)).await;
    assert_eq!(table.complete(a.owner(), Opaque(29)), Verdict::Late(ms(250)));
    assert_eq!(table.complete(a.owner(), Opaque(29)), Verdict::Unsolicited { ever_used: true });
    assert!(of_b.outcome().is_none());

    let another = PendingTable::new(TransportConfig::default());
    let foreign = another.open(29).owner();
    assert_eq!(table.complete(foreign, Opaque(29)), Verdict::ForeignOwner);
    assert_eq!(table.complete(b.owner(), Opaque(30)), Verdict::Unsolicited { ever_used: false });
    assert!(of_b.outcome().is_none());
    assert_eq!(table.complete(b.owner(), Opaque(29)), Verdict::Completed);
    assert_eq!(of_b.outcome().unwrap().unwrap().opaque(), Opaque(29));
    assert!(table.is_idle());
}

#[tokio::test(start_paused = true)]
async fn a_late_response_is_dropped_and_the_neighbour_completes() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let (slow, quick) = (client.call(ask(SECOND)), client.call(ask(9 * SECOND)));
    let (first, second) = (peer.expect().await, peer.expect().await);
    pass(2 * SECOND).await;
    peer.respond(&first).await;
    peer.respond(&second).await;
    assert_ended(&slow.fails().await, Stage::AwaitingResponse, Certainty::Unknown);
    assert_eq!(quick.succeeds().await.opaque, second.opaque());
    assert_eq!((client.usage().late, network.dials()), (1, 1));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_window_belongs_to_nobody() {
    let (client, mut network) = scene_with(config(|config| config.max_idle = 3600 * SECOND), ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let log = LogSink::install();
    let abandoned = client.call(ask(SECOND));
    let request = peer.expect().await;
    abandoned.dropped().await;
    let other = client.call(ask(SECOND));
    let answered = peer.expect().await;
    pass(ms(500)).await;
    peer.respond(&answered).await;
    other.succeeds().await;
    pass(ms(59_499)).await;
    assert_only_tombstones(&client, 1);
    pass(ms(1)).await;
    assert_idle(&client);
    peer.respond(&request).await;
    settle().await;
    assert_eq!((client.usage().late, client.usage().unsolicited), (0, 1));
    assert_eq!(log.with_message("unsolicited response")[0].fields["ever_used"], "true");
    assert_eq!(network.dials(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_answer_of_an_abandoned_request_does_not_go_to_the_next_caller() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let abandoned = client.call(ask(SECOND));
    let first = peer.expect().await;
    abandoned.dropped().await;
    let next = client.call(ask(SECOND));
    let second = peer.expect().await;
    assert_ne!(first.opaque(), second.opaque());
    peer.respond(&first).await;
    assert!(next.is_pending().await);
    peer.respond(&second).await;
    assert_eq!(next.succeeds().await.opaque, second.opaque());
    assert_eq!(client.usage().late, 1);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_second_answer_is_unsolicited_and_nothing_else() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let (one, two) = (client.call(ask(SECOND)), client.call(ask(SECOND)));
    let (first, second) = (peer.expect().await, peer.expect().await);
    peer.respond(&first).await;
    peer.respond(&first).await;
    peer.respond(&second).await;
    assert_eq!(one.succeeds().await.opaque, first.opaque());
    assert_eq!(two.succeeds().await.opaque, second.opaque());
    assert_eq!((client.usage().unsolicited, client.usage().late, network.dials()), (1, 0, 1));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn answers_nobody_asked_for_are_counted_and_are_no_reason_to_close() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let log = LogSink::install();
    let call = client.call(ask(SECOND));
    let request = peer.expect().await;
    for _ in 0..1_000 {
        peer.respond_to(Opaque(0x7FFF_FFF0)).await;
    }
    assert!(call.is_pending().await);
    assert_eq!(client.usage().unsolicited, 1_000);
    let lines = log.with_message("unsolicited response");
    assert_eq!(lines[0].level, tracing::Level::WARN);
    assert_eq!(lines[0].fields["ever_used"], "false");
    peer.respond(&request).await;
    call.succeeds().await;
    assert_eq!(network.dials(), 1);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_peer_with_the_same_opaque_is_not_the_answer() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(SECOND));
    let request = peer.expect().await;
    peer.send_request(40, request.opaque()).await;
    peer.send_request(9999, request.opaque()).await;
    assert!(call.is_pending().await);
    assert_eq!((client.usage().peer_requests, client.usage().unsolicited), (2, 0));
    peer.respond(&request).await;
    call.succeeds().await;
    peer.expect_nothing().await;
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn opaques_wrap_around_in_either_encoding() {
    for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
        let settings = config(|config| {
            config.first_opaque = i32::MAX - 2;
            config.header_encoding = encoding;
        });
        let (client, mut network) = scene_with(settings, ROOMY);
        let mut peer = connected(&client, &mut network).await;
        let calls: Vec<_> = (1..=4).map(|code| client.call(ask(SECOND).code(code))).collect();
        let mut requests = Vec::new();
        for code in 1..=4 {
            let request = peer.expect_code(code).await;
            assert_eq!(request.encoding(), encoding);
            requests.push(request);
        }
        let opaques: Vec<_> = requests.iter().map(|request| request.opaque().0).collect();
        assert_eq!(opaques, [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1]);
        for request in requests.iter().rev() {
            peer.respond(request).await;
        }
        for (call, request) in calls.into_iter().zip(&requests) {
            assert_eq!(call.succeeds().await.opaque, request.opaque());
        }
        assert_idle(&client);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_two_halves_is_delivered_whole_whatever_happens_between_them() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(SECOND));
    let request = peer.expect().await;
    let response = rocketmq_transport::Response {
        code: rocketmq_transport::Code::SUCCESS,
        remark: Some("in halves".into()),
        header: Box::new(()),
        body: vec![3; 500].into(),
    };
    let limits = rocketmq_transport::FrameLimits::default();
    let frame = response.encode(request.opaque(), Default::default(), &limits).unwrap();
    let (one, other) = frame.split_at(77);
    peer.send_raw(one).await;
    settle().await;
    let timing_out = client.call(ask(ms(20)));
    let withdrawn = client.call(ask(SECOND));
    peer.expect().await;
    timing_out.fails().await;
    withdrawn.dropped().await;
    peer.send_raw(other).await;
    let completed = call.succeeds().await;
    assert_eq!(completed.response.body(), [3; 500]);
    assert_eq!(completed.response.remark().as_deref(), Some("in halves"));
    assert_only_tombstones(&client, 2);
}

#[tokio::test(start_paused = true)]
async fn one_request_sent_four_times_has_a_number_and_an_answer_of_its_own_each_time() {
    let (client, mut network) = scene(ROOMY);
    let request = ask(SECOND).field("the same");
    let calls = [broker(), broker(), other_broker(), other_broker()]
        .map(|peer| (peer.clone(), client.call(request.clone().to(peer))));
    let mut peers = [network.accept().await, network.accept().await];
    let mut answered = Vec::new();
    for peer in &mut peers {
        let (one, other) = (peer.expect().await, peer.expect().await);
        assert_ne!(one.opaque(), other.opaque());
        for request in [&other, &one] {
            peer.respond(request).await;
            answered.push((peer.name().clone(), request.opaque()));
        }
    }
    for (peer, call) in calls {
        let answer = (peer, call.succeeds().await.opaque);
        let place = answered.iter().position(|one| *one == answer).expect("each answer is taken once");
        answered.swap_remove(place);
    }
    assert_idle(&client);
}
