//! `rmq broker`.

use crate::run::{Running, rmq};

#[tokio::test]
async fn the_first_line_is_an_address_that_messages_can_be_sent_to_until_an_interrupt() {
    let mut broker = Running::start("broker --topic orders:2 --topic other");
    let address = broker.out.next_line().await.unwrap().expect("the address");
    let sent = rmq(&format!("produce --namesrv {address} --topic orders --count 4 --output json")).await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let (events, _) = sent.events();
    let mut queues: Vec<_> = events.iter().map(|event| event["queue_id"].as_u64().unwrap()).collect();
    queues.sort_unstable();
    assert_eq!(queues, [0, 0, 1, 1]);
    broker.signal("INT").await;
    assert_eq!(broker.end().await.0, Some(0));
}

#[tokio::test]
async fn a_request_to_terminate_ends_it_as_an_interrupt_does() {
    let mut broker = Running::start("broker");
    broker.out.next_line().await.unwrap().expect("the address");
    broker.signal("TERM").await;
    assert_eq!(broker.end().await.0, Some(0));
}
