//! What happens while a frame is offered, and what the writer makes of it.

use super::*;

/// How much the socket accepted.
#[derive(Clone, Copy, Debug)]
enum Poll {
    Nothing,
    Some,
    All,
}

/// What the writer is told of a call, with the frame accepted at 10 ms, and what its caller.
type Expected = (Settled, Option<Delivery>, &'static str);

/// Offers a frame, lets the `events` happen, and applies the poll. `D` is the deadline, `S` the start-by instant,
/// `X` the drop of the caller, `R` the response.
fn after(
    fixture: &Fixture,
    terms: Terms,
    events: &str,
    poll: Poll,
) -> (Arc<RequestRecord>, Settled, Option<Delivery>) {
    let record = fixture.record(1, terms);
    let frame = offered(&record, fixture.at(10));
    for event in events.chars() {
        match event {
            'R' => assert_eq!(respond(&record, fixture.at(10)), Delivery::Noted),
            end => {
                let end = match end {
                    'D' => End::Deadline,
                    'S' => End::StartBy,
                    _ => End::Drop,
                };
                assert_eq!(record.end(end, fixture.at(10)), Ending::Noted);
            }
        }
        assert_eq!(told(&record), "nothing", "the writer decides");
    }
    let accepted = match poll {
        Poll::Nothing => Accepted::Nothing(frame),
        Poll::Some => Accepted::Some,
        Poll::All => Accepted::All,
    };
    let (settled, stray) = record.settle(accepted, fixture.at(10));
    (record, settled, stray)
}

fn check(poll: Poll, cases: impl IntoIterator<Item = (&'static str, Expected)>) {
    let fixture = Fixture::new();
    for (events, (settled, stray, expected)) in cases {
        let (record, got, got_stray) = after(&fixture, fixture.terms(1_000), events, poll);
        assert_eq!(
            (got, got_stray, told(&record).as_str()),
            (settled, stray, expected),
            "{poll:?} after {events:?}"
        );
        record.close(&lost(), fixture.at(20));
        told(&record);
        fixture.assert_idle();
    }
}

#[test]
fn with_no_byte_accepted_the_frame_is_queued_again_or_withdrawn() {
    let expired = "RMQ-T01 in BeforeWrite, NotSent";
    check(
        Poll::Nothing,
        [
            ("", (Settled::Queued, None, "nothing")),
            ("D", (Settled::Withdrawn, None, expired)),
            ("S", (Settled::Withdrawn, None, "RMQ-T02 in BeforeWrite, NotSent")),
            ("X", (Settled::Withdrawn, None, "nothing")),
            ("SD", (Settled::Withdrawn, None, expired)),
            ("SX", (Settled::Withdrawn, None, "nothing")),
            ("DX", (Settled::Withdrawn, None, expired)),
            ("R", (Settled::Queued, Some(Delivery::Unsolicited), "nothing")),
            ("RD", (Settled::Withdrawn, Some(Delivery::Unsolicited), expired)),
            ("DR", (Settled::Withdrawn, Some(Delivery::Unsolicited), expired)),
            ("XR", (Settled::Withdrawn, Some(Delivery::Unsolicited), "nothing")),
        ],
    );
}

#[test]
fn with_some_bytes_accepted_what_came_first_counts() {
    let expired = "RMQ-T01 in Writing, Unknown";
    let late = || Some(Delivery::Late { by: Duration::ZERO });
    check(
        Poll::Some,
        [
            ("", (Settled::Started, None, "nothing")),
            ("D", (Settled::Buried { written: None }, None, expired)),
            ("S", (Settled::Started, None, "nothing")),
            ("X", (Settled::Buried { written: None }, None, "nothing")),
            ("SD", (Settled::Buried { written: None }, None, expired)),
            ("R", (Settled::Finished, None, "answered")),
            ("SR", (Settled::Finished, None, "answered")),
            ("RD", (Settled::Finished, None, "answered")),
            ("RX", (Settled::Finished, None, "answered")),
            ("SRD", (Settled::Finished, None, "answered")),
            ("DR", (Settled::Removed, late(), expired)),
            ("XR", (Settled::Removed, late(), "nothing")),
            ("SDR", (Settled::Removed, late(), expired)),
        ],
    );
}

#[test]
fn with_all_bytes_accepted_what_came_first_counts() {
    let fixture = Fixture::new();
    let expired = "RMQ-T01 in AwaitingResponse, Unknown";
    let late = || Some(Delivery::Late { by: Duration::ZERO });
    for (events, expected) in [("D", expired), ("SD", expired), ("X", "nothing")] {
        let (record, settled, stray) = after(&fixture, fixture.terms(1_000), events, Poll::All);
        assert_eq!((settled, stray), (Settled::Buried { written: Some(fixture.at(10)) }, None));
        assert_eq!(told(&record), expected);
        assert!(record.is_tombstone());
    }
    check(
        Poll::All,
        [
            ("", (Settled::Started, None, "nothing")),
            ("S", (Settled::Started, None, "nothing")),
            ("R", (Settled::Finished, None, "answered")),
            ("RD", (Settled::Finished, None, "answered")),
            ("RX", (Settled::Finished, None, "answered")),
            ("DR", (Settled::Removed, late(), expired)),
            ("XR", (Settled::Removed, late(), "nothing")),
            ("SDR", (Settled::Removed, late(), expired)),
        ],
    );
}

#[test]
fn a_frame_that_is_queued_again_keeps_its_bytes_and_can_be_withdrawn() {
    let fixture = Fixture::new();
    let (record, settled, _) = after(&fixture, fixture.terms(1_000), "", Poll::Nothing);
    assert_eq!(settled, Settled::Queued);
    assert_eq!(fixture.held(), (1, REST + FRAME));
    assert_eq!(record.end(End::Drop, fixture.at(20)), Ending::Withdrawn);
    fixture.assert_idle();
}

#[test]
fn only_the_first_response_is_noted() {
    let fixture = Fixture::new();
    let record = fixture.record(1, fixture.terms(1_000));
    drop(offered(&record, fixture.at(10)));
    assert_eq!(respond(&record, fixture.at(10)), Delivery::Noted);
    assert_eq!(respond(&record, fixture.at(10)), Delivery::Unsolicited);
}

#[test]
fn the_writer_wakes_the_caller_whose_end_was_noted() {
    let fixture = Fixture::new();
    let record = fixture.record(1, fixture.terms(1_000));
    let calls = Calls::new();
    let frame = offered(&record, fixture.at(10));
    assert!(record.poll_outcome(&Context::from_waker(&calls.waker())).is_pending());
    record.end(End::Deadline, fixture.at(1_000));
    assert_eq!(calls.count(), 0);
    record.settle(Accepted::Nothing(frame), fixture.at(1_000));
    assert_eq!(calls.count(), 1);
}

#[test]
fn the_waker_of_a_caller_that_has_gone_is_let_go_at_once() {
    let fixture = Fixture::new();
    let record = fixture.record(1, fixture.terms(1_000));
    let calls = Calls::new();
    let _frame = offered(&record, fixture.at(10));
    assert!(record.poll_outcome(&Context::from_waker(&calls.waker())).is_pending());
    record.end(End::Drop, fixture.at(20));
    assert_eq!(Arc::strong_count(&calls.0), 1);
}

#[test]
fn a_oneway_request_offered_in_part_ends_at_its_deadline_and_whole_is_written() {
    let fixture = Fixture::new();
    for (events, poll, settled, expected) in [
        ("", Poll::Some, Settled::Started, "nothing"),
        ("D", Poll::Nothing, Settled::Withdrawn, "RMQ-T01 in BeforeWrite, NotSent"),
        ("D", Poll::Some, Settled::Removed, "RMQ-T01 in Writing, Unknown"),
        ("D", Poll::All, Settled::Finished, "written"),
        ("X", Poll::Some, Settled::Removed, "nothing"),
    ] {
        let (record, got, stray) = after(&fixture, oneway(&fixture, 1_000), events, poll);
        assert_eq!(
            (got, stray, told(&record).as_str()),
            (settled, None, expected),
            "{poll:?} after {events:?}"
        );
    }
}

#[test]
fn a_response_to_an_offered_oneway_request_does_not_hide_its_deadline() {
    let fixture = Fixture::new();
    let record = fixture.record(1, oneway(&fixture, 1_000));
    drop(offered(&record, fixture.at(10)));
    record.end(End::Deadline, fixture.at(1_000));
    respond(&record, fixture.at(1_000));
    let (settled, _) = record.settle(Accepted::Some, fixture.at(1_000));
    assert_eq!((settled, told(&record).as_str()), (Settled::Removed, "RMQ-T01 in Writing, Unknown"));
}

#[test]
fn a_close_while_offered_counts_as_all_accepted() {
    let fixture = Fixture::new();
    for (events, expected) in [
        ("", "RMQ-T09 in AwaitingResponse, Unknown"),
        ("D", "RMQ-T01 in AwaitingResponse, Unknown"),
        ("X", "nothing"),
        ("R", "answered"),
        ("DR", "RMQ-T01 in AwaitingResponse, Unknown"),
    ] {
        let record = fixture.record(1, fixture.terms(1_000));
        let frame = offered(&record, fixture.at(10));
        for event in events.chars() {
            match event {
                'R' => {
                    respond(&record, fixture.at(10));
                }
                'D' => drop(record.end(End::Deadline, fixture.at(10))),
                _ => drop(record.end(End::Drop, fixture.at(10))),
            }
        }
        record.close(&CloseCause::Panicked, fixture.at(20));
        assert_eq!(told(&record), expected, "after {events:?}");
        drop(frame);
        fixture.assert_idle();
    }
}

#[test]
fn a_writer_that_panics_tells_no_oneway_request_of_success() {
    let fixture = Fixture::new();
    let record = fixture.record(1, oneway(&fixture, 1_000));
    drop(offered(&record, fixture.at(10)));
    record.close(&CloseCause::Panicked, fixture.at(20));
    assert_eq!(told(&record), "RMQ-T09 in Writing, Unknown");
    fixture.assert_idle();
}
