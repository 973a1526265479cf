//! Route lookups: several name servers, one lookup for many senders, what is kept and what is not.

use std::{sync::Arc, time::Duration};

use rocketmq_client::{NameServerError, RouteError, RouteErrorKind, SendErrorKind};
use rocketmq_transport::{Certainty, Code, Stage};
use tokio::time::sleep;

use crate::network::{
    HEARTBEAT, MS, Network, ONE_BROKER, ROUTE, Reply, SEND, STORED, TWO_BROKERS, answer, message,
};

const NO_ROUTE: Reply = answer(17, "no route info of this topic");
const ROUTED: Reply = Reply::Body(Duration::ZERO, ONE_BROKER);

fn route_error(kind: &SendErrorKind) -> &RouteError {
    match kind {
        SendErrorKind::Route(error) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_server_that_is_down_frozen_or_ignorant_hides_no_other() {
    for (first, expected) in [
        (None, Duration::ZERO),
        (Some(NO_ROUTE), Duration::ZERO),
        (Some(answer(1, "broken")), Duration::ZERO),
        (Some(Reply::Body(Duration::ZERO, "{\"brokerDatas\":7}")), Duration::ZERO),
        (Some(Reply::Cut), Duration::ZERO),
        (Some(Reply::Silence), 200 * MS),
    ] {
        let network = Network::default();
        if let Some(reply) = first {
            network.always("ns:1", reply);
        }
        let second = network.always("ns:2", ROUTED);
        network.always("a:1", STORED);
        let producer = network.producer().namesrv("ns:1;ns:2").timeout(600 * MS).build().unwrap();
        let receipt = producer.send(message()).await.unwrap();
        assert_eq!((receipt.elapsed(), second.count(ROUTE)), (expected, 1), "{first:?}");
        assert_eq!(receipt.stage_clock().spent(Stage::Route), Some(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_server_that_cannot_be_dialled_costs_less_than_the_budget_and_is_remembered() {
    let network = Network::default();
    network.blackhole("ns:1");
    let second = network.peer("ns:2", |_, _| ROUTED);
    network.always("a:1", STORED);
    let producer = network.producer().namesrv("ns:1,ns:2").timeout(600 * MS).build().unwrap();
    assert_eq!(producer.send(message()).await.unwrap().elapsed(), 200 * MS);
    let other = rocketmq_client::Message::new("other", "body");
    assert_eq!(producer.send(other).await.unwrap().elapsed(), Duration::ZERO);
    assert_eq!(second.count(ROUTE), 2);
}

#[tokio::test(start_paused = true)]
async fn a_topic_is_unknown_only_when_every_name_server_said_so() {
    let network = Network::default();
    let servers = ["ns:1", "ns:2"].map(|address| network.always(address, NO_ROUTE));
    let producer = network.producer().namesrv("ns:1;ns:2").build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert_eq!(
        (error.code_id(), error.stage(), error.certainty()),
        ("RMQ-C03", Stage::Route, Certainty::NotSent)
    );
    let route = route_error(error.kind());
    assert_eq!(
        (route.kind(), route.topic(), route.failures().len()),
        (RouteErrorKind::TopicNotFound, "orders", 2)
    );
    for failure in route.failures() {
        assert!(matches!(failure.error(), NameServerError::Answer { code: Code(17), .. }));
    }
    // Each was asked for the topic and for the one that new topics inherit from.
    assert_eq!(servers.map(|server| server.count(ROUTE)), [2, 2]);
}

#[tokio::test(start_paused = true)]
async fn name_servers_that_all_fail_are_listed_each_with_its_own_cause() {
    let network = Network::default();
    network.always("ns:2", Reply::Body(Duration::ZERO, "no json"));
    network.always("ns:3", answer(1, "broken"));
    network.blackhole("ns:4");
    let producer = network.producer().namesrv("ns:1;ns:2;ns:3;ns:4").timeout(5_000 * MS).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    let route = route_error(error.kind());
    assert_eq!((route.kind(), error.code_id()), (RouteErrorKind::Unavailable, "RMQ-C05"));
    let text = route.to_string();
    for part in [
        "ns:1 RMQ-T06 connection failed",
        "ns:2 answered an unreadable route",
        "ns:3 answered 1: broken",
        "ns:4 RMQ-T01 deadline expired",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(error.elapsed() <= 3_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_silent_name_server_ends_the_send_at_its_own_deadline() {
    let network = Network::default();
    network.always("ns:1", Reply::Silence);
    let producer = network.producer().timeout(250 * MS).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert!(matches!(error.kind(), SendErrorKind::DeadlineExpired));
    assert_eq!(
        (error.stage(), error.certainty(), error.elapsed()),
        (Stage::Route, Certainty::NotSent, 250 * MS)
    );
    assert_eq!(error.stage_clock().spent(Stage::Route), Some(250 * MS));
}

#[tokio::test(start_paused = true)]
async fn a_route_without_a_usable_broker_says_so() {
    let network = Network::default();
    network.name_server(
        r#"{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"1":"a:1"}}],
        "queueDatas":[{"brokerName":"a","perm":6,"writeQueueNums":4}]}"#,
    );
    let error = network.producer().build().unwrap().send(message()).await.unwrap_err();
    assert_eq!(route_error(error.kind()).kind(), RouteErrorKind::NoUsableBroker);
    assert_eq!((error.code_id(), error.certainty()), ("RMQ-C04", Certainty::NotSent));
}

#[tokio::test(start_paused = true)]
async fn many_first_sends_share_one_lookup_and_each_keeps_its_own_deadline() {
    let network = Network::default();
    let names = network.peer("ns:1", |request, _| match request.field("topic").as_deref() {
        Some("orders") => Reply::Body(100 * MS, ONE_BROKER),
        _ => ROUTED,
    });
    network.always("a:1", STORED);
    let producer = network.producer().build().unwrap();
    let send = |timeout: Duration| {
        let producer = producer.clone();
        let mut options = rocketmq_client::SendOptions::default();
        options.deadline = Some(rocketmq_transport::RequestDeadline::after(timeout));
        tokio::spawn(async move { producer.send_with(message(), options).await })
    };
    // The one that starts the lookup is dropped at 20 ms.
    let leader = send(1_000 * MS);
    tokio::task::yield_now().await;
    let (short, long): (Vec<_>, Vec<_>) = (0..32).map(|_| (send(50 * MS), send(1_000 * MS))).unzip();
    sleep(20 * MS).await;
    leader.abort();
    let other = rocketmq_client::Message::new("other", "body");
    assert_eq!(producer.send(other).await.unwrap().elapsed(), Duration::ZERO);

    for send in short {
        let error = send.await.unwrap().unwrap_err();
        assert_eq!((error.elapsed(), error.stage()), (50 * MS, Stage::Route));
    }
    for send in long {
        assert_eq!(send.await.unwrap().unwrap().elapsed(), 100 * MS);
    }
    let asked = names.seen(ROUTE);
    assert_eq!(asked.iter().filter(|request| request.field("topic").as_deref() == Some("orders")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_left_still_warms_the_route_for_the_next() {
    let network = Network::default();
    let names = network.always("ns:1", Reply::Body(100 * MS, ONE_BROKER));
    network.always("a:1", STORED);
    let producer = network.producer().timeout(20 * MS).build().unwrap();
    assert!(producer.send(message()).await.is_err());
    sleep(100 * MS).await;
    assert_eq!(producer.send(message()).await.unwrap().elapsed(), Duration::ZERO);
    assert_eq!(names.count(ROUTE), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_topic_is_created_with_the_queues_of_the_default_topic() {
    let network = Network::default();
    let names = network.peer("ns:1", |request, _| match request.field("topic").as_deref() {
        Some("TBW102") => Reply::Body(
            Duration::ZERO,
            r#"{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"0":"a:1"}}],
                "queueDatas":[{"brokerName":"a","perm":7,"readQueueNums":8,"writeQueueNums":8}]}"#,
        ),
        _ => NO_ROUTE,
    });
    let broker = network.always("a:1", STORED);
    let producer = network.producer().build().unwrap();
    for _ in 0..8 {
        producer.send(message()).await.unwrap();
    }
    let mut queues: Vec<_> =
        broker.seen(SEND).iter().map(|sent| sent.field("e").unwrap().into_owned()).collect();
    queues.sort();
    assert_eq!(queues, ["0", "0", "1", "1", "2", "2", "3", "3"]);
    assert_eq!(names.count(ROUTE), 2);
}

#[tokio::test(start_paused = true)]
async fn an_old_route_is_used_while_it_is_looked_up_again_and_kept_when_that_fails() {
    let network = Network::default();
    let names = network.peer("ns:1", |_, number| match number {
        0 => ROUTED,
        1 => Reply::Silence,
        2 => NO_ROUTE,
        _ => Reply::Body(Duration::ZERO, TWO_BROKERS),
    });
    network.always("a:1", STORED);
    let b = network.always("b:1", STORED);
    let producer = network.producer().build().unwrap();
    producer.send(message()).await.unwrap();
    sleep(29_000 * MS).await;
    producer.send(message()).await.unwrap();
    assert_eq!(names.count(ROUTE), 1, "a route of 29 s is fresh");
    for lookups in 2..5 {
        sleep(31_000 * MS).await;
        for _ in 0..3 {
            assert_eq!(producer.send(message()).await.unwrap().elapsed(), Duration::ZERO);
        }
        assert_eq!(names.count(ROUTE), lookups);
    }
    sleep(MS).await;
    for _ in 0..2 {
        producer.send(message()).await.unwrap();
    }
    assert!(b.count(SEND) > 0, "the new route is used");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_moved_is_found_soon_after_a_send_to_its_old_address_failed() {
    let network = Network::default();
    let names = network.peer("ns:1", |_, number| match number {
        0 => ROUTED,
        _ => Reply::Body(
            Duration::ZERO,
            r#"{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"0":"moved:1"}}],
                "queueDatas":[{"brokerName":"a","perm":6,"writeQueueNums":1}]}"#,
        ),
    });
    let moved = network.always("moved:1", STORED);
    let producer = network.producer().build().unwrap();
    assert!(producer.send(message()).await.is_err());
    sleep(1_000 * MS).await;
    // This one still uses the old route, while it is looked up again.
    assert!(producer.send(message()).await.is_err());
    assert!(producer.send(message()).await.is_ok());
    assert_eq!(moved.count(SEND), 1);
    assert!(names.count(ROUTE) <= 3, "a route that fails is not looked up with each send");
}

#[tokio::test(start_paused = true)]
async fn brokers_hear_of_the_producer_when_they_appear_and_every_thirty_seconds() {
    let network = Network::default();
    let _names = network.name_server(TWO_BROKERS);
    let brokers = network.brokers([STORED]);
    let producer = Arc::new(network.producer().topics(["orders"]).build().unwrap());
    producer.start().await.unwrap();
    sleep(MS).await;
    assert_eq!(brokers.each_ref().map(|broker| broker.count(HEARTBEAT)), [1, 1]);
    let body = brokers[0].seen(HEARTBEAT)[0].body().to_vec();
    assert!(String::from_utf8(body).unwrap().contains(r#""producerDataSet":[{"groupName":"group"}]"#));
    sleep(29_000 * MS).await;
    assert_eq!(brokers.each_ref().map(|broker| broker.count(HEARTBEAT)), [1, 1]);
    sleep(32_000 * MS).await;
    assert_eq!(brokers.each_ref().map(|broker| broker.count(HEARTBEAT)), [3, 3]);
}
