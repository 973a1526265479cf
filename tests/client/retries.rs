//! What follows a failed attempt, and the budget that all of them share.

use std::{sync::Arc, time::Duration};

use rocketmq_client::{Attempt, Duplicates, SendError, SendErrorKind, SendOptions};
use rocketmq_transport::{Certainty, HeaderEncoding, Stage, TransportErrorKind};
use tokio::time::{Instant, sleep};

use crate::network::{MS, Network, ONE_BROKER, Reply, SEND, STORED, Scripted, TWO_BROKERS, answer, message};

fn total([a, b]: &[Scripted; 2]) -> usize {
    a.count(SEND) + b.count(SEND)
}

/// Stage durations and pauses of a failed send add up to its elapsed time.
fn assert_sums_up(error: &SendError) {
    let clock = error.stage_clock();
    let stages: Duration = clock.stages().map(|(_, spent)| spent).sum();
    assert_eq!(stages + clock.paused().unwrap_or_default(), error.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_silent_broker_leaves_time_for_another() {
    for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
        let network = Network::default();
        network.name_server(TWO_BROKERS);
        let brokers = network.brokers([Reply::Silence, STORED]);
        let producer =
            network.producer().timeout(900 * MS).attempts(2).header_encoding(encoding).build().unwrap();
        let receipt = producer.send(message()).await.unwrap();

        assert_eq!((receipt.elapsed(), total(&brokers)), (600 * MS, 2));
        let [first, second] = receipt.attempts() else { panic!("two attempts") };
        assert_ne!(first.broker(), second.broker());
        assert_eq!((first.certainty(), first.stage()), (Some(Certainty::Unknown), Stage::AwaitingResponse));
        assert_eq!((first.plan().start_within(), first.plan().end_within()), (450 * MS, 600 * MS));
        assert_eq!((second.certainty(), second.plan().end_within()), (None, 300 * MS));
        let keys: Vec<_> = [brokers[0].seen(SEND), brokers[1].seen(SEND)].concat();
        assert_eq!(keys[0].field("i"), keys[1].field("i"), "the unique key stays the same");
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_attempt_has_all_the_time_there_is() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let brokers = network.brokers([Reply::Silence]);
    let producer = network.producer().timeout(900 * MS).attempts(1).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert_eq!((error.elapsed(), error.budget(), total(&brokers)), (900 * MS, 900 * MS, 1));
    assert_eq!(
        (error.stage(), error.certainty(), error.code_id()),
        (Stage::AwaitingResponse, Certainty::Unknown, "RMQ-T01")
    );
    assert_sums_up(&error);
}

#[tokio::test(start_paused = true)]
async fn forbidden_duplicates_give_a_started_attempt_all_the_time_and_end_with_it() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let brokers = network.brokers([Reply::Silence, STORED]);
    let producer = network.producer().timeout(900 * MS).duplicates(Duplicates::Forbid).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert_eq!((error.elapsed(), error.certainty(), total(&brokers)), (900 * MS, Certainty::Unknown, 1));
    let [attempt] = error.attempts() else { panic!("one attempt") };
    assert_eq!((attempt.plan().start_within(), attempt.plan().end_within()), (450 * MS, 900 * MS));

    let mut options = SendOptions::default();
    options.duplicates = Some(Duplicates::Allow);
    assert!(producer.send_with(message(), options).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_without_time_to_end() {
    for (answered, attempts) in [(75 * MS, 1), (60 * MS, 2)] {
        let network = Network::default();
        network.name_server(TWO_BROKERS);
        // Code 1 may mean that the message is stored; the second answer comes at once.
        let brokers = network.brokers([Reply::Answer(answered, 1, "went wrong"), STORED]);
        let producer = network.producer().timeout(120 * MS).build().unwrap();
        let outcome = producer.send(message()).await;
        assert_eq!((total(&brokers), outcome.is_ok()), (attempts, attempts == 2));
        if let Err(error) = outcome {
            assert_eq!((error.elapsed(), error.certainty()), (answered, Certainty::Unknown));
            sleep(2_000 * MS).await;
            assert_eq!(total(&brokers), 1, "nothing goes on in the background");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_busy_broker_is_asked_again_after_growing_pauses_up_to_the_limit_of_attempts() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let broker = network.always("a:1", answer(2, "busy"));
    let error = network.producer().build().unwrap().send(message()).await.unwrap_err();
    let times = broker.times(SEND);
    assert_eq!((times.len(), error.attempts().len()), (3, 3));
    assert!((50 * MS..=100 * MS).contains(&(times[1] - times[0])));
    assert!((100 * MS..=200 * MS).contains(&(times[2] - times[1])));
    assert_eq!(error.stage_clock().paused(), Some(times[2] - times[0]));
    assert_eq!(error.certainty(), Certainty::Refused);
    assert_sums_up(&error);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_may_have_the_message_is_asked_again_only_once_its_connection_has_ended() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let silent = network.always("a:1", answer(1, "went wrong"));
    let error = network.producer().build().unwrap().send(message()).await.unwrap_err();
    assert_eq!((silent.count(SEND), error.certainty()), (1, Certainty::Unknown));

    let network = Network::default();
    network.name_server(ONE_BROKER);
    let cut = network.peer("a:1", |_, number| if number == 0 { Reply::Cut } else { STORED });
    let receipt = network.producer().build().unwrap().send(message()).await.unwrap();
    let certainties: Vec<_> = receipt.attempts().iter().map(Attempt::certainty).collect();
    assert_eq!(certainties.first(), Some(&Some(Certainty::Unknown)));
    assert_eq!((cut.count(SEND), cut.connections().0), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_refuses_the_connection_is_left_for_another_at_once() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let b = network.always("b:1", STORED);
    let producer = network.producer().duplicates(Duplicates::Forbid).build().unwrap();
    for _ in 0..4 {
        let receipt = producer.send(message()).await.unwrap();
        assert_eq!((receipt.broker(), receipt.elapsed()), ("b", Duration::ZERO));
    }
    assert_eq!(b.count(SEND), 4);
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_never_ends_costs_half_of_the_budget() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    network.blackhole("a:1");
    network.always("b:1", STORED);
    let producer = network.producer().timeout(900 * MS).build().unwrap();
    let mut elapsed = Vec::new();
    for _ in 0..2 {
        let receipt = producer.send(message()).await.unwrap();
        elapsed.push(receipt.elapsed());
        if let [first, _] = receipt.attempts() {
            assert_eq!((first.certainty(), first.stage()), (Some(Certainty::NotSent), Stage::Connect));
            let Some(SendErrorKind::Transport(error)) = first.error() else { panic!("{first}") };
            assert!(matches!(error.kind(), TransportErrorKind::NotStarted), "{error}");
        }
    }
    elapsed.sort();
    assert_eq!(elapsed, [Duration::ZERO, 450 * MS]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_of_the_only_broker_uses_up_time_and_no_attempts() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let cut = network.always("a:1", Reply::Cut);
    let producer = network.producer().timeout(30_000 * MS).build().unwrap();
    let sending = tokio::spawn({
        let producer = producer.clone();
        async move { producer.send(message()).await }
    });
    while cut.count(SEND) == 0 {
        sleep(MS).await;
    }
    network.remove("a:1");
    sleep(10_000 * MS).await;
    let broker = network.always("a:1", STORED);
    let receipt = sending.await.unwrap().unwrap();
    assert_eq!(broker.count(SEND), 1);
    assert!(receipt.attempts().len() > 3, "{:?}", receipt.attempts());
    assert_eq!(receipt.attempts()[0].certainty(), Some(Certainty::Unknown));
    assert!(receipt.elapsed() > 10_000 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_producer_of_one_attempt_ends_with_its_first_failed_dial() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let producer = network.producer().timeout(30_000 * MS).attempts(1).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert_eq!((error.certainty(), error.stage()), (Certainty::NotSent, Stage::Connect));
    let SendErrorKind::Transport(error) = error.kind() else { panic!("{error}") };
    assert!(matches!(error.kind(), TransportErrorKind::ConnectFailed(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_single_broker_that_comes_back_is_found_when_its_back_off_ends() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let producer = network.producer().build().unwrap();
    let sending = tokio::spawn({
        let producer = producer.clone();
        async move { producer.send(message()).await }
    });
    sleep(50 * MS).await;
    let broker = network.always("a:1", STORED);
    let receipt = sending.await.unwrap().unwrap();
    assert_eq!(broker.count(SEND), 1);
    assert_eq!(receipt.attempts()[0].stage(), Stage::Connect);
    assert_eq!(receipt.stage_clock().paused(), Some(receipt.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn brokers_that_are_all_down_end_the_send_after_its_attempts_and_each_is_named() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let error = network.producer().build().unwrap().send(message()).await.unwrap_err();
    assert_eq!(
        (error.certainty(), error.stage(), error.code_id()),
        (Certainty::NotSent, Stage::Connect, "RMQ-T06")
    );
    let text = error.to_string();
    assert!(
        text.contains("a a:1 Connect NotSent RMQ-T06") && text.contains("b b:1 Connect NotSent RMQ-T06"),
        "{text}"
    );
    assert!(std::error::Error::source(&error).is_some());
    assert_sums_up(&error);
}

#[tokio::test(start_paused = true)]
async fn brokers_that_are_backing_off_use_up_no_attempts() {
    let network = Network::default();
    network.name_server(
        r#"{"brokerDatas":[
            {"brokerName":"a","brokerAddrs":{"0":"a:1"}},
            {"brokerName":"b","brokerAddrs":{"0":"b:1"}},
            {"brokerName":"c","brokerAddrs":{"0":"c:1"}}],
            "queueDatas":[
            {"brokerName":"a","perm":6,"writeQueueNums":1},
            {"brokerName":"b","perm":6,"writeQueueNums":1},
            {"brokerName":"c","perm":6,"writeQueueNums":1}]}"#,
    );
    let c = network.always("c:1", STORED);
    let producer = network.producer().topics(["orders"]).attempts(1).build().unwrap();
    producer.start().await.unwrap();
    // The first heartbeats find a and b down.
    sleep(MS).await;
    let mut asked = 0;
    for _ in 0..6 {
        asked += producer.send(message()).await.unwrap().attempts().len();
    }
    assert_eq!((c.count(SEND), asked > 6), (6, true));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_would_outlast_the_budget_is_not_made() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let producer = network.producer().timeout(120 * MS).build().unwrap();
    let start = Instant::now();
    let error = producer.send(message()).await.unwrap_err();
    assert!(start.elapsed() < 120 * MS);
    assert_eq!(error.certainty(), Certainty::NotSent);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_of_time_attempts_still_share_three_seconds() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    let brokers = network.brokers([Reply::Silence, Reply::Stored(60_000 * MS, 0)]);
    let producer = network.producer().timeout(Duration::MAX).attempts(2).build().unwrap();
    let receipt = producer.send(message()).await.unwrap();
    assert_eq!((receipt.elapsed(), total(&brokers)), (62_000 * MS, 2));
}

#[tokio::test(start_paused = true)]
async fn a_hundred_attempts_are_listed_within_bounds() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    let broker = network.always("a:1", answer(2, "busy"));
    let producer = network.producer().timeout(Duration::MAX).attempts(100).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert_eq!((broker.count(SEND), error.attempts().len()), (100, 16));
    assert_eq!(error.attempts()[15].number(), 100);
    assert_sums_up(&error);
}

#[tokio::test(start_paused = true)]
async fn a_silent_broker_does_not_slow_sends_to_the_others() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    network.always("a:1", Reply::Silence);
    network.always("b:1", Reply::Stored(5 * MS, 0));
    let producer = Arc::new(network.producer().timeout(900 * MS).attempts(2).build().unwrap());
    let sends: Vec<_> = (0..64)
        .map(|_| {
            let producer = producer.clone();
            tokio::spawn(async move { producer.send(message()).await })
        })
        .collect();
    for send in sends {
        let receipt = send.await.unwrap().unwrap();
        let expected = if receipt.attempts().len() == 1 { 5 * MS } else { 605 * MS };
        assert_eq!((receipt.broker(), receipt.elapsed()), ("b", expected));
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_attempt_waited_says_nothing_of_whether_the_last_broker_was_heard() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    network.brokers([Reply::Silence, STORED, Reply::Silence]);
    let producer = network.producer().timeout(900 * MS).attempts(2).build().unwrap();
    let sending = tokio::spawn({
        let producer = producer.clone();
        async move { producer.send(message()).await }
    });
    sleep(100 * MS).await;
    // The other broker is heard now, which is before the second attempt asks it at 600 ms.
    producer.send(message()).await.unwrap();
    let error = sending.await.unwrap().unwrap_err();
    let [_, Some(SendErrorKind::Transport(last))] = [0, 1].map(|place| error.attempts()[place].error())
    else {
        panic!("{error}")
    };
    assert_eq!((last.last_heard(), last.heard_since_written()), (Some(800 * MS), Some(false)), "{error}");
}
