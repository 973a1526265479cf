//! A deadline that expired says whether the broker was heard meanwhile, and whether our own process stood still.

use rocketmq_client::SendError;
use tokio::time::{advance, sleep};

use crate::network::{MS, Network, ONE_BROKER, Reply, STORED, message};

/// A send of 200 ms whose answer does not come, beside one that is answered after `neighbour` of them.
async fn timed_out(neighbour: Reply) -> SendError {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.peer("a:1", move |_, number| [STORED, Reply::Silence, neighbour][number]);
    let producer = network.producer().timeout(200 * MS).attempts(1).build().expect("good settings");
    // The broker says so much before, and is told of the producer.
    producer.send(message()).await.expect("an answer at once");
    sleep(20 * MS).await;
    let (error, _) = tokio::join!(producer.send(message()), producer.send(message()));
    error.expect_err("a broker that is silent")
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_answered_a_neighbour_was_heard() {
    let error = timed_out(Reply::Stored(188 * MS, 0)).await;
    let expected = "a a:1 AwaitingResponse Unknown RMQ-T01 (deadline expired, heard 12 ms before) 200 ms";
    assert_eq!(error.attempts()[0].to_string(), expected);
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_answered_nobody_was_silent() {
    let error = timed_out(Reply::Silence).await;
    let expected = "a a:1 AwaitingResponse Unknown RMQ-T01 (deadline expired, silent since written) 200 ms";
    assert_eq!(error.attempts()[0].to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stood_still_says_so() {
    let sending = tokio::spawn(timed_out(Reply::Silence));
    sleep(21 * MS).await;
    advance(279 * MS).await;
    let error = sending.await.unwrap();
    let expected = "(deadline expired, silent since written, client stalled for 80 ms) 280 ms";
    assert!(error.attempts()[0].to_string().ends_with(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_written_says_nothing_of_the_broker() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.blackhole("a:1");
    let producer = network.producer().timeout(200 * MS).attempts(1).build().unwrap();
    let error = producer.send(message()).await.unwrap_err();
    assert!(error.attempts()[0].to_string().ends_with("RMQ-T01 (deadline expired) 200 ms"), "{error}");
}
