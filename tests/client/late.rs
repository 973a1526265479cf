//! A send that ended as unknown is settled by the late answer.

use std::time::Duration;

use rocketmq_client::{LateOutcome, Producer, SendError, SendStatus};
use rocketmq_transport::{Certainty, Code};
use tokio::time::{Instant, sleep};

use crate::network::{MS, Network, ONE_BROKER, Reply, TWO_BROKERS, answer, message};

/// A send of 200 ms that has one attempt at a broker who does `reply`.
async fn unknown(network: &Network, reply: Reply) -> (Producer, SendError) {
    network.name_server(ONE_BROKER);
    network.always("a:1", reply);
    let producer = network.producer().timeout(200 * MS).attempts(1).build().expect("good settings");
    let error = producer.send(message()).await.expect_err("a broker that is slow");
    assert_eq!(error.certainty(), Certainty::Unknown);
    (producer, error)
}

/// The outcome, and after what time it was known.
async fn timed(outcome: impl Future<Output = LateOutcome>) -> (LateOutcome, Duration) {
    let start = Instant::now();
    (outcome.await, start.elapsed())
}

fn is_stored(outcome: &LateOutcome) -> bool {
    matches!(outcome, LateOutcome::Stored { .. })
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_stored_late_is_found_where_the_broker_says() {
    for (code, expected) in [(0, SendStatus::Stored), (10, SendStatus::FlushDiskTimeout)] {
        let (_producer, error) = unknown(&Network::default(), Reply::Stored(500 * MS, code)).await;
        let outcome = error.late_outcome(1_000 * MS);
        let (outcome, waited) = timed(outcome).await;
        let LateOutcome::Stored { status, place } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(
            (*status, place.broker(), place.queue().id(), place.queue_offset()),
            (expected, "a", 1, 42)
        );
        assert_eq!(
            (place.queue().topic(), place.offset_message_id()),
            ("orders", "0A00000100002A9F0000000000001000")
        );
        assert_eq!(waited, 300 * MS);
        // It is kept, and known at once.
        assert_eq!(timed(error.late_outcome(Duration::ZERO)).await, (outcome, Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_was_refused_late_is_not_stored() {
    let (_producer, error) = unknown(&Network::default(), Reply::Answer(300 * MS, 2, "busy")).await;
    let expected = LateOutcome::Refused { broker: "a".into(), code: Code(2), remark: "busy".into() };
    assert_eq!(timed(error.late_outcome(Duration::MAX)).await, (expected, 100 * MS));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_leaves_the_doubt_settles_nothing() {
    let (_producer, error) = unknown(&Network::default(), Reply::Answer(300 * MS, 1, "went wrong")).await;
    assert_eq!(timed(error.late_outcome(Duration::MAX)).await, (LateOutcome::NotSettled, 100 * MS));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_is_over_settles_nothing_and_a_later_one_may() {
    let (_producer, error) = unknown(&Network::default(), Reply::Stored(500 * MS, 0)).await;
    assert_eq!(timed(error.late_outcome(299 * MS)).await, (LateOutcome::NotSettled, 299 * MS));
    let (outcome, waited) = timed(error.late_outcome(10 * MS)).await;
    assert_eq!((is_stored(&outcome), waited), (true, MS));
}

#[tokio::test(start_paused = true)]
async fn the_window_begins_with_the_call_and_outlives_the_error() {
    let (_producer, error) = unknown(&Network::default(), Reply::Silence).await;
    let outcome = error.late_outcome(100 * MS);
    drop(error);
    sleep(70 * MS).await;
    assert_eq!(timed(outcome).await, (LateOutcome::NotSettled, 30 * MS));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_come_any_more_is_not_waited_for() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.peer("a:1", |_, number| if number == 0 { Reply::Silence } else { Reply::Cut });
    let producer = network.producer().timeout(200 * MS).attempts(1).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    let outcome = tokio::spawn(timed(error.late_outcome(Duration::MAX)));
    sleep(70 * MS).await;
    assert_eq!(producer.send(message()).await.unwrap_err().certainty(), Certainty::Unknown);
    assert_eq!(outcome.await.unwrap(), (LateOutcome::NotSettled, 70 * MS));
    // The connection of this one was cut before it had an answer.
    assert_eq!(timed(error.late_outcome(Duration::MAX)).await, (LateOutcome::NotSettled, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_and_the_drop_of_the_producer_end_the_wait() {
    for bound in [Some(Duration::ZERO), Some(10_000 * MS), None] {
        let (producer, error) = unknown(&Network::default(), Reply::Silence).await;
        let outcome = tokio::spawn(error.late_outcome(Duration::MAX));
        match bound {
            Some(bound) => {
                producer.shutdown(bound).await;
            }
            None => drop(producer),
        }
        let start = Instant::now();
        assert_eq!(outcome.await.unwrap(), LateOutcome::NotSettled);
        assert_eq!(error.late_outcome(Duration::MAX).await, LateOutcome::NotSettled);
        assert!(start.elapsed() <= MS, "{:?} after {bound:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn several_attempts_are_settled_together() {
    let refused = |wait| Reply::Answer(wait, 2, "busy");
    for (replies, stored, not_stored, waited) in [
        // The first attempt ends after 400 ms, the second and the send after 600 ms.
        ([refused(700 * MS), Reply::Stored(800 * MS, 0)], true, false, 600 * MS),
        ([Reply::Stored(800 * MS, 0), Reply::Silence], true, false, 200 * MS),
        ([refused(700 * MS), refused(400 * MS)], false, true, 200 * MS),
        ([refused(700 * MS), Reply::Silence], false, false, 1_000 * MS),
        ([Reply::Cut, refused(700 * MS)], false, false, 100 * MS),
    ] {
        let network = Network::default();
        network.name_server(TWO_BROKERS);
        network.brokers(replies);
        let producer = network.producer().timeout(600 * MS).attempts(2).build().unwrap();
        let error = producer.send(message()).await.unwrap_err();
        let unknown = |attempt: &rocketmq_client::Attempt| attempt.certainty() == Some(Certainty::Unknown);
        assert!(error.attempts().iter().all(unknown), "{error}");
        let (outcome, after) = timed(error.late_outcome(1_000 * MS)).await;
        let is_refused = matches!(outcome, LateOutcome::Refused { .. });
        assert_eq!(
            (is_stored(&outcome), is_refused, after),
            (stored, not_stored, waited),
            "{replies:?}: {outcome:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_send_that_was_never_unknown_has_nothing_to_settle() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.always("a:1", answer(13, "illegal"));
    let producer = network.producer().build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert_eq!(error.certainty(), Certainty::Refused);
    assert_eq!(timed(error.late_outcome(Duration::MAX)).await, (LateOutcome::NotSettled, Duration::ZERO));

    let (_producer, error) = unknown(&Network::default(), Reply::Bare).await;
    assert_eq!(timed(error.late_outcome(Duration::MAX)).await, (LateOutcome::NotSettled, Duration::ZERO));
}
