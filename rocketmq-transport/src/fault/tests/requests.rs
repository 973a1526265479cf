//! What happens to requests.

use tokio::time::Instant;

use super::*;

#[tokio::test]
async fn the_first_fault_that_is_due_strikes_and_the_next_one_takes_over() {
    let script = FaultScript::new([
        Fault::on(Code(310), busy()).skip(1).times(2),
        Fault::on(Code(310), RequestFault::Never).times(1),
    ]);
    let mut served = Served::under(&script);
    // The first is spared by one fault and so falls to the other.
    served.client.send_request(310, Opaque(1)).await;
    assert_eq!(served.ask(34, 2).await, (2, 0), "another operation");
    assert_eq!(served.ask(310, 3).await, (3, 2));
    assert_eq!(served.ask(310, 4).await, (4, 2));
    assert_eq!(served.ask(310, 5).await, (5, 0));
    assert_eq!((script.struck(), served.handler.handled()), (3, 3));
}

#[tokio::test]
async fn a_new_script_counts_from_the_start_and_reaches_open_connections() {
    let script = FaultScript::new([Fault::on_any(busy()).times(1)]);
    let mut served = Served::under(&script);
    assert_eq!((served.ask(1, 1).await, served.ask(1, 2).await), ((1, 2), (2, 0)));
    script.set([Fault::on_any(busy()).times(1)]);
    assert_eq!((served.ask(1, 3).await, served.ask(1, 4).await), ((3, 2), (4, 0)));
    script.set([]);
    assert_eq!(served.ask(1, 5).await, (5, 0));
    assert_eq!(script.struck(), 2);
}

#[tokio::test]
async fn an_answer_of_the_script_has_its_remark_and_the_handler_sees_nothing() {
    let mut served = Served::under(&FaultScript::new([Fault::on_any(busy())]));
    served.client.send_request(310, Opaque(7)).await;
    let response = served.client.expect().await;
    assert_eq!((response.code(), response.remark().as_deref()), (Code(2), Some("busy")));
    assert_eq!(served.handler.handled(), 0);
}

#[tokio::test]
async fn what_is_never_answered_is_carried_out_and_what_is_ignored_is_not() {
    let script = FaultScript::new([
        Fault::on_any(RequestFault::Never).times(1),
        Fault::on_any(RequestFault::Ignore).times(1),
    ]);
    let mut served = Served::under(&script);
    served.client.send_request(1, Opaque(1)).await;
    served.client.send_request(1, Opaque(2)).await;
    assert_eq!(served.ask(1, 3).await, (3, 0));
    served.client.expect_nothing().await;
    assert_eq!(served.handler.handled(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_answer_comes_late_and_its_neighbour_in_time() {
    let delay = RequestFault::Delay(Duration::from_secs(3));
    let mut served = Served::under(&FaultScript::new([Fault::on_any(delay).times(1)]));
    let start = Instant::now();
    served.client.send_request(1, Opaque(1)).await;
    assert_eq!(served.ask(1, 2).await, (2, 0));
    assert_eq!((start.elapsed(), served.handler.handled()), (Duration::ZERO, 2));
    assert_eq!(served.answered().await, (1, 0));
    assert_eq!(start.elapsed(), Duration::from_secs(3));
}

#[tokio::test]
async fn an_answer_comes_twice_or_under_a_number_that_is_not_its_own() {
    let script = FaultScript::new([
        Fault::on_any(RequestFault::Twice).times(1),
        Fault::on_any(RequestFault::Opaque(WrongOpaque::Unknown)).times(1),
        Fault::on_any(RequestFault::Opaque(WrongOpaque::Foreign)).times(2),
    ]);
    let mut served = Served::under(&script);
    assert_eq!((served.ask(1, 7).await, served.answered().await), ((7, 0), (7, 0)));
    assert_eq!(served.ask(1, 8).await, (!8, 0));
    assert_eq!(served.ask(1, 9).await, (!9, 0), "there is no other connection yet");
    let mut other = Served::from(&script, 2);
    assert_eq!(other.ask(1, 100).await, (9, 0));
    assert_eq!(served.ask(1, 10).await, (10, 0), "the faults are used up");
}

#[tokio::test]
async fn garbage_stands_in_for_an_answer_and_the_server_goes_on() {
    let garbage = RequestFault::Garbage { bytes: 12 };
    let mut served = Served::under(&FaultScript::new([Fault::on_any(garbage).times(1)]));
    served.client.send_request(1, Opaque(1)).await;
    assert_eq!(served.client.read_bytes(12).await, [0xff; 12][..]);
    assert_eq!(served.ask(1, 2).await, (2, 0));
}
