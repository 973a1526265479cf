//! Starting, shutting down, dropping.

use std::time::Duration;

use rocketmq_client::{RouteErrorKind, SendErrorKind, StartError};
use rocketmq_transport::{Certainty, Stage, TransportErrorKind};
use tokio::time::{Instant, sleep};

use crate::network::{HEARTBEAT, MS, Network, ONE_BROKER, Reply, SEND, STORED, UNREGISTER, answer, message};

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_what_was_accepted_then_unregisters_then_closes() {
    let network = Network::default();
    let names = network.name_server(ONE_BROKER);
    let broker = network.always("a:1", Reply::Stored(100 * MS, 0));
    let producer = network.producer().build().unwrap();
    let sends: Vec<_> = (0..5)
        .map(|_| {
            let producer = producer.clone();
            tokio::spawn(async move { producer.send(message()).await })
        })
        .collect();
    sleep(10 * MS).await;
    let start = Instant::now();
    let closing = tokio::spawn({
        let producer = producer.clone();
        async move { producer.shutdown(500 * MS).await }
    });
    sleep(10 * MS).await;
    let late = producer.send(message()).await.unwrap_err();
    assert!(matches!(late.kind(), SendErrorKind::Closed));
    assert_eq!(
        (late.certainty(), late.elapsed(), late.code_id()),
        (Certainty::NotSent, Duration::ZERO, "RMQ-C10")
    );

    let report = closing.await.unwrap();
    assert_eq!((report.finished, report.unfinished, report.unregistered), (5, 0, 1));
    assert!((80 * MS..200 * MS).contains(&start.elapsed()), "{:?}", start.elapsed());
    for send in sends {
        send.await.unwrap().unwrap();
    }
    let answered = broker.times(SEND)[0] + 100 * MS;
    assert!(broker.times(UNREGISTER)[0] >= answered);
    assert_eq!(broker.seen(UNREGISTER)[0].field("producerGroup").as_deref(), Some("group"));
    assert_eq!((broker.connections(), names.connections()), ((1, 1), (1, 1)));
    assert_eq!(producer.shutdown(Duration::ZERO).await, report, "a second shutdown has the same report");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_at_its_bound_and_each_unfinished_send_has_its_own_error() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let broker = network.always("a:1", Reply::Silence);
    let producer = network.producer().timeout(60_000 * MS).build().unwrap();
    let sends: Vec<_> = (0..5)
        .map(|_| {
            let producer = producer.clone();
            tokio::spawn(async move { producer.send(message()).await })
        })
        .collect();
    sleep(10 * MS).await;
    let start = Instant::now();
    let report = producer.shutdown(500 * MS).await;
    assert!(start.elapsed() < 520 * MS, "{:?}", start.elapsed());
    assert_eq!((report.finished, report.unfinished), (0, 5));
    for send in sends {
        let error = send.await.unwrap().unwrap_err();
        let SendErrorKind::Transport(cause) = error.kind() else { panic!("{error}") };
        assert!(matches!(cause.kind(), TransportErrorKind::Closed), "{cause}");
        assert_eq!((error.certainty(), error.stage()), (Certainty::Unknown, Stage::AwaitingResponse));
    }
    // The scripted broker gives its handlers up only after a while.
    sleep(6_000 * MS).await;
    assert_eq!(broker.connections(), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_lookups_and_pauses_too() {
    let network = Network::default();
    network.always("ns:1", Reply::Silence);
    let waiting = network.producer().build().unwrap();
    let pausing = Network::default();
    pausing.name_server(ONE_BROKER);
    pausing.always("a:1", answer(2, "busy"));
    let pausing = pausing.producer().timeout(Duration::MAX).attempts(1_000).build().unwrap();
    for producer in [waiting, pausing] {
        let send = tokio::spawn({
            let producer = producer.clone();
            async move { producer.send(message()).await }
        });
        sleep(1_000 * MS).await;
        let start = Instant::now();
        let report = producer.shutdown(10 * MS).await;
        assert_eq!((report.unfinished, start.elapsed() < 50 * MS), (1, true));
        let error = send.await.unwrap().unwrap_err();
        assert!(matches!(error.kind(), SendErrorKind::Closed), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_of_a_producer_that_never_sent_asks_nobody() {
    let network = Network::default();
    let names = network.name_server(ONE_BROKER);
    let producer = network.producer().build().unwrap();
    let report = producer.shutdown(Duration::from_secs(3)).await;
    assert_eq!((report, names.connections()), (Default::default(), (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn the_drop_of_the_last_handle_ends_tasks_and_connections() {
    let network = Network::default();
    let names = network.name_server(ONE_BROKER);
    let broker = network.always("a:1", STORED);
    let producer = network.producer().build().unwrap();
    let clone = producer.clone();
    producer.send(message()).await.unwrap();
    drop(producer);
    sleep(31_000 * MS).await;
    let beats = broker.count(HEARTBEAT);
    assert!(beats >= 2, "a clone keeps it alive");
    drop(clone);
    sleep(50 * MS).await;
    assert_eq!((broker.connections(), names.connections()), ((1, 1), (1, 1)));
    sleep(60_000 * MS).await;
    assert_eq!((broker.count(HEARTBEAT), broker.connections()), (beats, (1, 1)));
}

#[tokio::test(start_paused = true)]
async fn a_start_says_which_topic_has_no_route() {
    let network = Network::default();
    network.always("ns:1", answer(17, "no route"));
    let producer = network.producer().topics(["orders"]).build().unwrap();
    let StartError::Route(error) = producer.start().await.unwrap_err() else { panic!("a route error") };
    assert_eq!((error.topic(), error.kind()), ("orders", RouteErrorKind::TopicNotFound));

    let network = Network::default();
    network.always("ns:1", Reply::Silence);
    let producer = network.producer().topics(["orders"]).timeout(250 * MS).build().unwrap();
    let start = Instant::now();
    let error = producer.start().await.unwrap_err();
    assert!(matches!(error, StartError::DeadlineExpired { topic } if *topic == *"orders"));
    assert_eq!(start.elapsed(), 250 * MS);
    producer.shutdown(Duration::ZERO).await;
    assert!(matches!(producer.start().await, Err(StartError::Closed)));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_dropped_leaves_nothing_behind_that_holds_a_shutdown_up() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.always("a:1", Reply::Silence);
    let producer = network.producer().build().unwrap();
    let send = producer.send(message());
    assert!(tokio::time::timeout(10 * MS, send).await.is_err());
    let report = producer.shutdown(Duration::from_secs(60)).await;
    assert_eq!((report.finished, report.unfinished, report.unregistered), (0, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdowns_that_race_with_sends_and_drops_end_every_send() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let broker = network.always("a:1", STORED);
    for _ in 0..100 {
        let before = broker.count(SEND);
        let producer = network.producer().build().unwrap();
        let mut sends = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let producer = producer.clone();
            sends.spawn(async move {
                let mut stored = 0;
                loop {
                    match producer.send(message()).await {
                        Ok(_) => stored += 1,
                        Err(error) => break (stored, error),
                    }
                }
            });
        }
        let shutdowns = [producer.clone(), producer.clone(), producer]
            .map(|producer| tokio::spawn(async move { producer.shutdown(Duration::from_secs(60)).await }));
        let mut stored = 0;
        for (count, error) in sends.join_all().await {
            assert!(matches!(error.kind(), SendErrorKind::Closed), "{error}");
            stored += count;
        }
        for shutdown in shutdowns {
            assert_eq!(shutdown.await.unwrap().unfinished, 0);
        }
        assert_eq!(broker.count(SEND) - before, stored);
    }
}

#[tokio::test]
async fn the_future_of_a_send_stays_small() {
    let network = Network::default();
    let producer = network.producer().build().unwrap();
    let size = size_of_val(&producer.send(message()));
    assert!(size <= 2_048, "{size}");
}
