//! What a send puts on the wire, and what it makes of the answer.

use std::time::Duration;

use rocketmq_client::{Message, MessageError, MessageQueue, SendErrorKind, SendOptions, SendStatus};
use rocketmq_transport::{Certainty, RequestDeadline, Stage};

use crate::network::{MS, Network, ONE_BROKER, Reply, SEND, STORED, TWO_BROKERS, answer, message};

#[tokio::test(start_paused = true)]
async fn a_message_arrives_as_it_was_made_and_the_receipt_says_where_it_is() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let broker = network.always("a:1", Reply::Stored(7 * MS, 0));
    let producer = network.producer().build().unwrap();
    let message = Message::new("orders", "two äpples").with_tag("fruit").with_keys(["k1", "k2"]).with_flag(9);
    let receipt = producer.send(message.with_property("origin", "shop").unwrap()).await.unwrap();

    assert_eq!(receipt.status(), SendStatus::Stored);
    assert_eq!((receipt.broker(), receipt.queue().id(), receipt.queue_offset()), ("a", 1, 42));
    assert_eq!(receipt.offset_message_id(), "0A00000100002A9F0000000000001000");
    assert_eq!((receipt.elapsed(), receipt.budget()), (7 * MS, 3_000 * MS));
    let [attempt] = receipt.attempts() else { panic!("one attempt") };
    assert_eq!((attempt.number(), attempt.peer().as_str(), attempt.certainty()), (1, "a:1", None));
    assert_eq!((attempt.stage(), attempt.elapsed()), (Stage::AwaitingResponse, 7 * MS));

    let [sent] = &broker.seen(SEND)[..] else { panic!("one request") };
    assert_eq!(sent.body(), "two äpples".as_bytes());
    for (name, value) in
        [("a", "group"), ("b", "orders"), ("c", "TBW102"), ("d", "4"), ("f", "0"), ("h", "9"), ("n", "a")]
    {
        assert_eq!(sent.field(name).as_deref(), Some(value), "{name}");
    }
    let id = receipt.message_id();
    let properties =
        format!("UNIQ_KEY\u{1}{id}\u{2}TAGS\u{1}fruit\u{2}KEYS\u{1}k1 k2\u{2}origin\u{1}shop\u{2}");
    assert_eq!(sent.field("i").as_deref(), Some(&*properties));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_stored_but_not_yet_safe_is_stored_and_not_sent_again() {
    for (code, status) in [
        (10, SendStatus::FlushDiskTimeout),
        (11, SendStatus::SlaveNotAvailable),
        (12, SendStatus::FlushSlaveTimeout),
    ] {
        let network = Network::default();
        network.name_server(TWO_BROKERS);
        let [a, b] = network.brokers([Reply::Stored(Duration::ZERO, code)]);
        let receipt = network.producer().build().unwrap().send(message()).await.unwrap();
        assert_eq!(receipt.status(), status);
        assert_eq!(a.count(SEND) + b.count(SEND), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_say_where_the_message_is_is_not_asked_for_again() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let [a, b] = network.brokers([Reply::Bare]);
    let error = network.producer().build().unwrap().send(message()).await.unwrap_err();
    assert!(
        matches!(error.kind(), SendErrorKind::UnreadableAnswer(field) if field.to_string().contains("msgId"))
    );
    assert_eq!((error.certainty(), a.count(SEND) + b.count(SEND)), (Certainty::Unknown, 1));
}

#[tokio::test(start_paused = true)]
async fn what_is_invalid_asks_nobody() {
    let network = Network::default();
    let names = network.name_server(ONE_BROKER);
    let producer = network.producer().max_message_size(4).build().unwrap();
    let error = producer.send(Message::new("orders", "12345")).await.unwrap_err();
    let too_large = MessageError::BodyTooLarge { length: 5, limit: 4 };
    assert!(matches!(error.kind(), SendErrorKind::InvalidMessage(found) if *found == too_large));
    assert_eq!(
        (error.code_id(), error.stage(), error.certainty()),
        ("RMQ-C01", Stage::Route, Certainty::Refused)
    );
    assert!(error.attempts().is_empty());

    let mut options = SendOptions::default();
    options.deadline = Some(RequestDeadline::after(Duration::ZERO));
    let error = producer.send_with(Message::new("orders", "1"), options).await.unwrap_err();
    assert!(matches!(error.kind(), SendErrorKind::DeadlineExpired));
    assert_eq!((error.certainty(), error.elapsed()), (Certainty::NotSent, Duration::ZERO));
    assert_eq!(names.connections(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_send_to_one_queue_asks_its_broker_only() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let [a, b] = network.brokers([answer(2, "busy"), STORED]);
    let producer = network.producer().build().unwrap();
    let mut options = SendOptions::default();
    options.queue = Some(MessageQueue::new("orders", "b", 0));
    let receipt = producer.send_with(message(), options.clone()).await.unwrap();
    assert_eq!((receipt.attempts().len(), a.count(SEND), b.count(SEND)), (2, 0, 2));

    for (topic, broker, id) in [("orders", "b", 1), ("orders", "x", 0), ("other", "b", 0)] {
        let queue = MessageQueue::new(topic, broker, id);
        options.queue = Some(queue.clone());
        let error = producer.send_with(message(), options.clone()).await.unwrap_err();
        assert!(matches!(error.kind(), SendErrorKind::NoSuchQueue(missing) if *missing == queue), "{error}");
        assert_eq!(error.certainty(), Certainty::Refused);
    }
}

#[tokio::test(start_paused = true)]
async fn queues_are_taken_in_turn() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let broker = network.always("a:1", STORED);
    let producer = network.producer().build().unwrap();
    for _ in 0..4 {
        producer.send(message()).await.unwrap();
    }
    let queues: Vec<_> = broker.seen(SEND).iter().map(|sent| sent.field("e").unwrap().into_owned()).collect();
    assert!(queues == ["0", "1", "0", "1"] || queues == ["1", "0", "1", "0"], "{queues:?}");
}

#[tokio::test(start_paused = true)]
async fn a_one_way_send_ends_with_its_last_byte() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let [a, b] = network.brokers([Reply::Silence]);
    let producer = network.producer().build().unwrap();
    let receipt = producer.send_oneway(message()).await.unwrap();
    assert_eq!(receipt.stage_clock().elapsed(), Duration::ZERO);
    producer.shutdown(Duration::from_secs(1)).await;
    let sent = [a.seen(SEND), b.seen(SEND)].concat();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].is_oneway());
    assert!(sent[0].field("i").unwrap().contains(receipt.message_id()));
}

#[tokio::test(start_paused = true)]
async fn a_one_way_send_that_left_nothing_is_tried_elsewhere() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let a = network.always("a:1", Reply::Silence);
    let producer = network.producer().build().unwrap();
    for _ in 0..2 {
        assert_eq!(producer.send_oneway(message()).await.unwrap().queue().broker(), "a");
    }
    producer.shutdown(Duration::from_secs(1)).await;
    assert_eq!(a.count(SEND), 2);
}

#[tokio::test(start_paused = true)]
async fn bytes_kept_for_a_repetition_are_limited() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.always("a:1", STORED);
    let mut config = rocketmq_transport::TransportConfig::default();
    config.client_limit.bytes = 4_096;
    let producer = network.producer().transport(config).build().unwrap();
    let error = producer.send(Message::new("orders", vec![b'x'; 5_000])).await.unwrap_err();
    let SendErrorKind::QueueSaturated(refusal) = error.kind() else { panic!("{error}") };
    assert_eq!((refusal.limit, refusal.asked), (4_096, 5_000));
    assert_eq!((error.stage(), error.certainty()), (Stage::Admission, Certainty::Refused));
}
