//! Asking the brokers whether they have a message whose send ended as unknown.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use rocketmq_client::{
    BrokerError, Message, Producer, Resolution, ResolveError, ResolveErrorKind, SendError, UnknownMessage,
};
use rocketmq_transport::{Certainty, Code, Command};
use tokio::time::{Instant, sleep};

use crate::network::{MS, Network, ONE_BROKER, QUERY, Reply, SEND, Scripted, TWO_BROKERS, answer, message};

const NOT_FOUND: Reply = answer(22, "can not find message, maybe time range not correct");
const FOUND: Reply = Reply::Record(None);

/// A broker at `address` that answers no send in time and each query, by number, as `queries` says; the last goes on.
fn broker<const N: usize>(network: &Network, address: &str, queries: [Reply; N]) -> Scripted {
    network.peer(address, move |request: &Command, number| match request.code() {
        Code(SEND) => Reply::Silence,
        _ => queries[number.min(N - 1)],
    })
}

/// A send of 200 ms that ends as unknown at every broker of `route`.
async fn unknown(network: &Network, route: &'static str) -> (Producer, SendError) {
    network.name_server(route);
    let producer = network.producer().timeout(200 * MS).attempts(2).build().expect("good settings");
    let error = producer.send(message()).await.expect_err("brokers that are silent");
    assert!(
        error.attempts().iter().all(|attempt| attempt.certainty() == Some(Certainty::Unknown)),
        "{error}"
    );
    (producer, error)
}

/// What the brokers say, and after what time.
async fn resolve(
    producer: &Producer,
    message: impl Into<UnknownMessage>,
    budget: Duration,
) -> (Result<Resolution, ResolveError>, Duration) {
    let start = Instant::now();
    (producer.resolve_unknown(message, budget).await, start.elapsed())
}

fn not_found<const N: usize>(brokers: [&str; N]) -> Resolution {
    Resolution::NotFound { brokers: brokers.map(Arc::from).into() }
}

/// Those that did not say, by name with what happened, and those that do not know the message.
fn unanswered(error: &ResolveError) -> (Vec<(&str, &BrokerError)>, Vec<&str>) {
    let ResolveErrorKind::Unanswered { failures, not_found } = error.kind() else { panic!("{error}") };
    let failures = failures.iter().map(|failure| (failure.broker(), failure.error())).collect();
    (failures, not_found.iter().map(|broker| &**broker).collect())
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_stored_is_found_at_once_with_its_place() {
    let network = Network::default();
    let asked = broker(&network, "a:1", [FOUND]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    let (resolution, elapsed) = resolve(&producer, &error, 1_000 * MS).await;
    let Ok(Resolution::Stored(copy)) = resolution else { panic!("{resolution:?}") };
    let place = copy.place();
    assert_eq!((place.queue().to_string(), place.queue_offset()), ("orders@a:3".into(), 77));
    assert_eq!((place.broker(), place.offset_message_id()), ("a", "0A00000100002A9F0000000000001000"));
    assert_eq!(copy.stored_at(), UNIX_EPOCH + Duration::from_millis(1_700_000_000_005));
    assert_eq!(elapsed, Duration::ZERO);

    let [query] = &asked.seen(QUERY)[..] else { panic!("one query") };
    for (name, value) in [
        ("topic", "orders"),
        ("key", error.message_id()),
        ("maxNum", "32"),
        ("beginTimestamp", "0"),
        ("endTimestamp", "9223372036854775807"),
        ("_UNIQUE_KEY_QUERY", "true"),
    ] {
        assert_eq!(query.field(name).as_deref(), Some(value), "{name}");
    }
    let sent = &asked.seen(SEND)[0];
    assert!(sent.field("i").unwrap().contains(error.message_id()));
}

#[tokio::test(start_paused = true)]
async fn an_index_that_is_not_built_yet_is_asked_again() {
    let network = Network::default();
    let asked = broker(&network, "a:1", [NOT_FOUND, NOT_FOUND, FOUND]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    let (resolution, elapsed) = resolve(&producer, &error, 1_000 * MS).await;
    assert!(matches!(resolution, Ok(Resolution::Stored(_))), "{resolution:?}");
    assert_eq!((asked.count(QUERY), elapsed), (3, 150 * MS));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_found_for_a_second_or_the_budget_is_not_there() {
    for (budget, expected) in
        [(Duration::MAX, 1_000 * MS), (5_000 * MS, 1_000 * MS), (300 * MS, 150 * MS), (MS, Duration::ZERO)]
    {
        let network = Network::default();
        broker(&network, "a:1", [NOT_FOUND]);
        let (producer, error) = unknown(&network, ONE_BROKER).await;
        let (resolution, elapsed) = resolve(&producer, &error, budget).await;
        assert_eq!((resolution.unwrap(), elapsed), (not_found(["a"]), expected), "{budget:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_of_another_message_is_not_the_one_asked_for() {
    let network = Network::default();
    broker(&network, "a:1", [Reply::Record(Some("0A0000011A2B3C4D5E6F708192A3B4C5"))]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    assert_eq!(resolve(&producer, &error, 100 * MS).await.0.unwrap(), not_found(["a"]));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_down_is_named_and_asked_until_the_budget_ends() {
    let network = Network::default();
    network.peer("a:1", |_, _| Reply::Cut);
    network.name_server(ONE_BROKER);
    let producer = network.producer().timeout(200 * MS).attempts(1).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    network.remove("a:1");
    let (resolution, elapsed) = resolve(&producer, &error, 2_000 * MS).await;
    let failed = resolution.unwrap_err();
    let (failures, found_nothing) = unanswered(&failed);
    assert!(
        matches!(failures[..], [("a", BrokerError::Transport(_))]) && found_nothing.is_empty(),
        "{failed}"
    );
    assert!((1_500 * MS..=2_000 * MS).contains(&elapsed), "{elapsed:?}");
    assert_eq!(
        (failed.code_id(), failed.topic(), failed.message_id()),
        ("RMQ-C12", "orders", error.message_id())
    );
    assert_eq!((failed.elapsed(), failed.budget()), (elapsed, 2_000 * MS));
    let text = failed.to_string();
    assert!(text.contains("1 of 1 brokers did not say") && text.contains("brokers: a a:1 RMQ-T"), "{text}");

    // It comes back while it is asked.
    let resolving = tokio::spawn({
        let producer = producer.clone();
        async move { producer.resolve_unknown(&error, 10_000 * MS).await }
    });
    sleep(1_000 * MS).await;
    network.always("a:1", FOUND);
    assert!(matches!(resolving.await.unwrap(), Ok(Resolution::Stored(_))));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_answer_costs_the_budget_and_no_more() {
    for budget in [MS, 80 * MS, 700 * MS, 3_000 * MS, 20_000 * MS] {
        let network = Network::default();
        broker(&network, "a:1", [Reply::Silence]);
        let (producer, error) = unknown(&network, ONE_BROKER).await;
        let (resolution, elapsed) = resolve(&producer, &error, budget).await;
        let failed = resolution.unwrap_err();
        assert!(matches!(unanswered(&failed).0[..], [("a", BrokerError::Transport(_))]), "{failed}");
        assert!(elapsed <= budget && elapsed + 450 * MS >= budget, "{elapsed:?} of {budget:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_at_one_broker_is_enough_and_a_broker_that_is_missing_is_not() {
    for (a, b, stored, elapsed) in [
        (NOT_FOUND, FOUND, true, Duration::ZERO),
        (Reply::Silence, FOUND, true, Duration::ZERO),
        (NOT_FOUND, NOT_FOUND, false, 1_000 * MS),
    ] {
        let network = Network::default();
        let brokers = [broker(&network, "a:1", [a]), broker(&network, "b:1", [b])];
        let (producer, error) = unknown(&network, TWO_BROKERS).await;
        let (resolution, after) = resolve(&producer, &error, 5_000 * MS).await;
        let resolution = resolution.unwrap();
        assert_eq!(after, elapsed, "{resolution:?}");
        match &resolution {
            Resolution::Stored(copy) => assert_eq!((copy.place().broker(), stored), ("b", true)),
            resolution => assert!(
                !stored && matches!(resolution, Resolution::NotFound { brokers } if brokers.len() == 2)
            ),
        }
        assert!(brokers.iter().all(|broker| broker.count(QUERY) >= 1));
    }

    let network = Network::default();
    broker(&network, "a:1", [Reply::Silence]);
    broker(&network, "b:1", [NOT_FOUND]);
    let (producer, error) = unknown(&network, TWO_BROKERS).await;
    let failed = resolve(&producer, &error, 3_000 * MS).await.0.unwrap_err();
    let (failures, found_nothing) = unanswered(&failed);
    assert!(matches!(failures[..], [("a", BrokerError::Transport(_))]), "{failed}");
    assert_eq!(found_nothing, ["b"]);
    assert!(failed.to_string().ends_with(", b not found"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_broker_is_asked_again_and_one_that_refuses_is_not() {
    let network = Network::default();
    let asked = broker(&network, "a:1", [answer(2, "busy"), answer(14, "starting"), FOUND]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    let (resolution, elapsed) = resolve(&producer, &error, 1_000 * MS).await;
    assert!(matches!(resolution, Ok(Resolution::Stored(_))), "{resolution:?}");
    assert_eq!((asked.count(QUERY), elapsed), (3, 150 * MS));

    for (reply, part) in [
        (answer(16, "no permission"), "answered 16: no permission"),
        (answer(1, "broken"), "answered 1: broken"),
        (Reply::Body(Duration::ZERO, "abc"), "answered an unreadable record: an entry of -1 bytes"),
    ] {
        let network = Network::default();
        let asked = broker(&network, "a:1", [reply]);
        let (producer, error) = unknown(&network, ONE_BROKER).await;
        let (resolution, elapsed) = resolve(&producer, &error, 5_000 * MS).await;
        let text = resolution.unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
        assert_eq!((asked.count(QUERY), elapsed), (1, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_does_not_verify_the_loose_field_is_asked_without_it() {
    let network = Network::default();
    let asked = broker(&network, "a:1", [answer(1, "AclException: signature"), FOUND]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    let (resolution, elapsed) = resolve(&producer, &error, 1_000 * MS).await;
    assert!(matches!(resolution, Ok(Resolution::Stored(_))), "{resolution:?}");
    let flags: Vec<_> =
        asked.seen(QUERY).iter().map(|query| query.field("_UNIQUE_KEY_QUERY").is_some()).collect();
    assert_eq!((flags, elapsed), (vec![true, false], Duration::ZERO));

    let network = Network::default();
    let asked = broker(&network, "a:1", [answer(1, "AclException: no such account")]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    assert!(resolve(&producer, &error, 1_000 * MS).await.0.is_err());
    assert_eq!(asked.count(QUERY), 2);
}

#[tokio::test(start_paused = true)]
async fn of_a_message_id_alone_every_master_of_the_topic_is_asked() {
    let network = Network::default();
    let brokers = [broker(&network, "a:1", [NOT_FOUND]), broker(&network, "b:1", [NOT_FOUND, FOUND])];
    network.name_server(TWO_BROKERS);
    let producer = network.producer().build().unwrap();
    let kept = UnknownMessage::new("orders", "0A0000011A2B3C4D5E6F708192A3B4C5");
    let (resolution, elapsed) = resolve(&producer, kept, 1_000 * MS).await;
    assert!(matches!(resolution, Ok(Resolution::Stored(copy)) if copy.place().broker() == "b"));
    assert_eq!((elapsed, brokers.map(|broker| broker.count(QUERY))), (50 * MS, [2, 2]));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_for_says_why_and_asks_nobody() {
    let network = Network::default();
    let names = network.always("ns:1", answer(17, "no route"));
    let producer = network.producer().build().unwrap();
    let too_large = Message::new("orders", vec![0; 5 << 20]);
    let known = producer.send(too_large).await.unwrap_err();
    for (message, budget, code_id, text) in [
        (UnknownMessage::from(&known), 1_000 * MS, "RMQ-C11", "no attempt is unknown"),
        (UnknownMessage::new("", "0A"), 1_000 * MS, "RMQ-C01", "the topic is blank"),
        (UnknownMessage::new("orders", " "), 1_000 * MS, "RMQ-C01", "the message id is blank"),
        (UnknownMessage::new("orders", "0A"), Duration::ZERO, "RMQ-C02", "deadline expired"),
    ] {
        let error = resolve(&producer, message, budget).await.0.unwrap_err();
        assert_eq!(error.code_id(), code_id);
        assert!(error.to_string().starts_with(&format!("{code_id} {text}")), "{error}");
    }
    assert_eq!(names.connections(), (0, 0));

    let error = resolve(&producer, UnknownMessage::new("orders", "0A"), 1_000 * MS).await.0.unwrap_err();
    assert_eq!(
        (error.code_id(), error.to_string().contains("ns:1 answered 17: no route")),
        ("RMQ-C03", true)
    );

    let network = Network::default();
    network.always("ns:1", Reply::Silence);
    let producer = network.producer().build().unwrap();
    let (resolution, elapsed) = resolve(&producer, UnknownMessage::new("orders", "0A"), 100 * MS).await;
    assert_eq!((resolution.unwrap_err().code_id(), elapsed), ("RMQ-C02", 100 * MS));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_the_questions() {
    let network = Network::default();
    broker(&network, "a:1", [Reply::Silence]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    let resolving = tokio::spawn({
        let (producer, error) = (producer.clone(), error.clone());
        async move { producer.resolve_unknown(&error, Duration::MAX).await }
    });
    sleep(100 * MS).await;
    let start = Instant::now();
    producer.shutdown(10_000 * MS).await;
    let ended = resolving.await.unwrap().unwrap_err();
    assert!(matches!(ended.kind(), ResolveErrorKind::Closed), "{ended}");
    let refused = producer.resolve_unknown(&error, Duration::MAX).await.unwrap_err();
    assert!(matches!(refused.kind(), ResolveErrorKind::Closed), "{refused}");
    assert!(start.elapsed() <= 10_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_dropped_leaves_nothing_behind() {
    let network = Network::default();
    let asked = broker(&network, "a:1", [NOT_FOUND]);
    let (producer, error) = unknown(&network, ONE_BROKER).await;
    let question = producer.resolve_unknown(&error, Duration::MAX);
    assert!(tokio::time::timeout(200 * MS, question).await.is_err());
    let before = asked.count(QUERY);
    sleep(10_000 * MS).await;
    assert_eq!((asked.count(QUERY), producer.usage().client), (before, Default::default()));
}
