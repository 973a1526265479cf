//! Every transition of the record, on plain values.

mod history;
mod offered;

use std::sync::atomic::AtomicUsize;

use super::{
    fixture::{FRAME, Fixture, REST, offered, outcome, respond},
    *,
};
use crate::{RequestDeadline, stage::certainty, sync::Arc};

/// What the caller is told, if anything: `answered`, `written`, or the failure.
fn told(record: &RequestRecord) -> String {
    match outcome(record) {
        None => "nothing".to_owned(),
        Some((Outcome::Answered(_), _)) => "answered".to_owned(),
        Some((Outcome::Written, _)) => "written".to_owned(),
        Some((Outcome::Failed { kind, stage, fate }, _)) => {
            format!("{} in {stage}, {}", kind.code_id(), certainty(stage, fate))
        }
    }
}

fn oneway(fixture: &Fixture, ms: u64) -> Terms {
    Terms { kind: Kind::Oneway, ..fixture.terms(ms) }
}

/// A record some of whose frame was accepted at 10 ms.
fn writing(fixture: &Fixture, terms: Terms) -> Arc<RequestRecord> {
    let record = fixture.record(1, terms);
    drop(offered(&record, fixture.at(10)));
    assert_eq!(record.settle(Accepted::Some, fixture.at(10)), (Settled::Started, None));
    record
}

/// A call all of whose frame was accepted at 10 ms.
fn awaiting(fixture: &Fixture) -> Arc<RequestRecord> {
    let record = fixture.record(1, fixture.terms(1_000));
    drop(offered(&record, fixture.at(10)));
    assert_eq!(record.settle(Accepted::All, fixture.at(10)), (Settled::Started, None));
    record
}

fn lost() -> CloseCause {
    CloseCause::EndOfStream
}

#[test]
fn whatever_ends_a_queued_request_withdraws_it_and_gives_everything_back_at_once() {
    for (end, expected) in [
        (End::Deadline, "RMQ-T01 in BeforeWrite, NotSent"),
        (End::StartBy, "RMQ-T02 in BeforeWrite, NotSent"),
        (End::Drop, "nothing"),
    ] {
        let fixture = Fixture::new();
        let record = fixture.record(1, fixture.terms(1_000));
        assert_eq!(fixture.held(), (1, REST + FRAME));
        assert_eq!(record.end(end, fixture.at(10)), Ending::Withdrawn);
        fixture.assert_idle();
        assert_eq!(told(&record), expected);
        assert!(matches!(record.offer(fixture.at(11)), Offer::Gone), "a withdrawn frame is never offered");
        assert_eq!(record.end(End::Drop, fixture.at(11)), Ending::Nothing);
        assert_eq!(respond(&record, fixture.at(11)), Delivery::Unsolicited);
        record.close(&lost(), fixture.at(12));
        assert_eq!(told(&record), "nothing", "it ends once");
    }
}

#[test]
fn a_response_to_a_queued_request_is_unsolicited_and_changes_nothing() {
    let fixture = Fixture::new();
    let record = fixture.record(1, fixture.terms(1_000));
    assert_eq!(respond(&record, fixture.at(1)), Delivery::Unsolicited);
    assert_eq!(told(&record), "nothing");
    assert_eq!(offered(&record, fixture.at(2)).len() as u64, FRAME);
}

#[test]
fn a_request_that_must_not_start_any_more_is_not_offered() {
    let fixture = Fixture::new();
    let start_by = Some(fixture.at(500));
    for (at, expected) in [
        (500, "RMQ-T02 in BeforeWrite, NotSent"),
        (999, "RMQ-T02 in BeforeWrite, NotSent"),
        (1_000, "RMQ-T01 in BeforeWrite, NotSent"),
    ] {
        let record = fixture.record(1, Terms { start_by, ..fixture.terms(1_000) });
        assert!(matches!(record.offer(fixture.at(at)), Offer::Gone));
        fixture.assert_idle();
        assert_eq!(told(&record), expected);
    }
    let record = fixture.record(1, Terms { start_by, ..fixture.terms(1_000) });
    assert!(matches!(record.offer(fixture.at(499)), Offer::Frame(_)));
}

#[test]
fn an_answered_call_gives_its_permit_back_and_its_clock_says_where_the_time_went() {
    let fixture = Fixture::new();
    let record = fixture.record(1, fixture.terms(1_000));
    let frame = offered(&record, fixture.at(10));
    assert_eq!(record.settle(Accepted::Some, fixture.at(10)), (Settled::Started, None));
    assert_eq!(record.finish(fixture.at(30)), Settled::Started);
    assert_eq!(respond(&record, fixture.at(70)), Delivery::Completed);
    assert_eq!(fixture.held(), (0, FRAME), "the frame is the writer's still");
    drop(frame);
    fixture.assert_idle();
    let (outcome, clock) = outcome(&record).expect("an outcome");
    assert!(matches!(outcome, Outcome::Answered(response) if response.opaque() == Opaque(1)));
    let ms = |stage| clock.spent(stage).map(|spent| spent.as_millis());
    assert_eq!(ms(Stage::BeforeWrite), Some(10));
    assert_eq!(ms(Stage::Writing), Some(20));
    assert_eq!(ms(Stage::AwaitingResponse), Some(40));
    assert_eq!(clock.elapsed(), Duration::from_millis(70));
}

#[test]
fn a_response_is_taken_while_the_frame_is_still_being_written() {
    let fixture = Fixture::new();
    let record = writing(&fixture, fixture.terms(1_000));
    assert_eq!(respond(&record, fixture.at(20)), Delivery::Completed);
    assert_eq!(record.finish(fixture.at(30)), Settled::Removed);
    assert_eq!(told(&record), "answered");
    fixture.assert_idle();
}

#[test]
fn a_second_response_is_unsolicited() {
    let fixture = Fixture::new();
    let record = awaiting(&fixture);
    assert_eq!(respond(&record, fixture.at(20)), Delivery::Completed);
    assert_eq!(respond(&record, fixture.at(21)), Delivery::Unsolicited);
    assert_eq!(record.end(End::Deadline, fixture.at(1_000)), Ending::Nothing);
    assert_eq!(told(&record), "answered");
}

#[test]
fn a_begun_request_that_ends_leaves_a_tombstone_for_its_late_response() {
    for (end, expected) in [(End::Deadline, "RMQ-T01 in Writing, Unknown"), (End::Drop, "nothing")] {
        let fixture = Fixture::new();
        let record = writing(&fixture, fixture.terms(1_000));
        assert_eq!(record.end(end, fixture.at(20)), Ending::Buried { written: None });
        assert!(record.is_tombstone());
        fixture.assert_idle();
        assert_eq!(told(&record), expected);
        assert_eq!(record.finish(fixture.at(30)), Settled::Buried { written: Some(fixture.at(30)) });
        let by = Duration::from_millis(40);
        assert_eq!(respond(&record, fixture.at(60)), Delivery::Late { by });
        assert_eq!(respond(&record, fixture.at(61)), Delivery::Unsolicited);
        assert_eq!(told(&record), "nothing");
    }
}

#[test]
fn a_late_response_before_the_last_byte_leaves_nothing_to_bury() {
    let fixture = Fixture::new();
    let record = writing(&fixture, fixture.terms(1_000));
    record.end(End::Drop, fixture.at(20));
    assert_eq!(respond(&record, fixture.at(20)), Delivery::Late { by: Duration::ZERO });
    assert_eq!(record.finish(fixture.at(30)), Settled::Removed);
}

#[test]
fn a_written_request_that_ends_says_since_when_the_peer_has_it() {
    for (end, expected) in [(End::Deadline, "RMQ-T01 in AwaitingResponse, Unknown"), (End::Drop, "nothing")] {
        let fixture = Fixture::new();
        let record = awaiting(&fixture);
        assert_eq!(record.end(end, fixture.at(20)), Ending::Buried { written: Some(fixture.at(10)) });
        fixture.assert_idle();
        assert_eq!(told(&record), expected);
        assert_eq!(record.end(End::Deadline, fixture.at(21)), Ending::Nothing);
    }
}

#[test]
fn a_start_by_instant_ends_nothing_that_has_started() {
    let fixture = Fixture::new();
    for record in [writing(&fixture, fixture.terms(1_000)), awaiting(&fixture)] {
        assert_eq!(record.end(End::StartBy, fixture.at(20)), Ending::Nothing);
        assert_eq!(respond(&record, fixture.at(30)), Delivery::Completed);
        assert_eq!(told(&record), "answered");
    }
}

#[test]
fn a_oneway_request_succeeds_with_its_last_byte_and_leaves_no_tombstone() {
    let fixture = Fixture::new();
    let whole = fixture.record(1, oneway(&fixture, 1_000));
    drop(offered(&whole, fixture.at(10)));
    assert_eq!(whole.settle(Accepted::All, fixture.at(10)), (Settled::Finished, None));
    assert_eq!(told(&whole), "written");
    fixture.assert_idle();

    let in_parts = writing(&fixture, oneway(&fixture, 1_000));
    assert_eq!(told(&in_parts), "nothing");
    assert_eq!(in_parts.finish(fixture.at(20)), Settled::Finished);
    assert_eq!(told(&in_parts), "written");
    fixture.assert_idle();

    for (end, expected) in [(End::Deadline, "RMQ-T01 in Writing, Unknown"), (End::Drop, "nothing")] {
        let cut_off = writing(&fixture, oneway(&fixture, 1_000));
        assert_eq!(cut_off.end(end, fixture.at(20)), Ending::Removed);
        fixture.assert_idle();
        assert_eq!(cut_off.finish(fixture.at(30)), Settled::Removed);
        assert_eq!(told(&cut_off), expected);
    }
}

#[test]
fn a_response_to_a_oneway_request_is_unsolicited_in_every_state() {
    let fixture = Fixture::new();
    let record = fixture.record(1, oneway(&fixture, 1_000));
    let unsolicited = || assert_eq!(respond(&record, fixture.at(10)), Delivery::Unsolicited);
    unsolicited();
    drop(offered(&record, fixture.at(10)));
    unsolicited();
    assert_eq!(record.settle(Accepted::Some, fixture.at(10)), (Settled::Started, None));
    unsolicited();
    assert_eq!(record.finish(fixture.at(10)), Settled::Finished);
    unsolicited();
    assert_eq!(told(&record), "written");
}

#[test]
fn a_close_ends_each_state_with_the_certainty_of_the_final_count() {
    let fixture = Fixture::new();
    let queued = fixture.record(1, fixture.terms(1_000));
    let begun = writing(&fixture, fixture.terms(1_000));
    let cut = writing(&fixture, fixture.terms(1_000));
    cut.cut_short();
    let whole = awaiting(&fixture);
    whole.cut_short();
    let whole_again = writing(&fixture, fixture.terms(1_000));
    whole_again.finish(fixture.at(20));
    for (record, expected) in [
        (queued, "RMQ-T09 in BeforeWrite, NotSent"),
        (begun, "RMQ-T09 in Writing, Unknown"),
        (cut, "RMQ-T09 in Writing, NotSent"),
        (whole, "RMQ-T09 in AwaitingResponse, Unknown"),
        (whole_again, "RMQ-T09 in AwaitingResponse, Unknown"),
    ] {
        record.close(&lost(), fixture.at(30));
        assert_eq!(told(&record), expected);
        record.close(&lost(), fixture.at(31));
        assert_eq!(respond(&record, fixture.at(31)), Delivery::Unsolicited);
        assert_eq!(told(&record), "nothing", "it ends once");
    }
    fixture.assert_idle();
}

#[test]
fn a_close_by_the_owner_is_told_from_a_lost_connection() {
    let fixture = Fixture::new();
    let record = awaiting(&fixture);
    record.close(&CloseCause::Closed, fixture.at(20));
    assert_eq!(told(&record), "RMQ-T10 in AwaitingResponse, Unknown");
}

#[test]
fn a_close_leaves_an_outcome_that_was_not_collected_and_forgets_a_tombstone() {
    let fixture = Fixture::new();
    let answered = awaiting(&fixture);
    respond(&answered, fixture.at(20));
    answered.close(&lost(), fixture.at(30));
    assert_eq!(told(&answered), "answered");

    let abandoned = awaiting(&fixture);
    abandoned.end(End::Drop, fixture.at(20));
    abandoned.close(&lost(), fixture.at(30));
    assert_eq!(told(&abandoned), "nothing");
    assert!(!abandoned.is_tombstone());
}

#[test]
fn the_caller_is_woken_by_whatever_ends_its_request() {
    type Case = (fn(&Fixture) -> Arc<RequestRecord>, fn(&RequestRecord, &Fixture));
    let cases: [Case; 6] = [
        (
            |f| f.record(1, f.terms(1_000)),
            |record, f| {
                record.end(End::StartBy, f.at(20));
            },
        ),
        (
            |f| f.record(1, f.terms(1_000)),
            |record, f| {
                record.offer(f.at(1_000));
            },
        ),
        (
            |f| writing(f, oneway(f, 1_000)),
            |record, f| {
                record.finish(f.at(20));
            },
        ),
        (awaiting, |record, f| {
            respond(record, f.at(20));
        }),
        (awaiting, |record, f| {
            record.end(End::Deadline, f.at(20));
        }),
        (awaiting, |record, f| record.close(&lost(), f.at(20))),
    ];
    for (number, (make, end)) in cases.into_iter().enumerate() {
        let fixture = Fixture::new();
        let record = make(&fixture);
        let (first, last) = (Calls::new(), Calls::new());
        assert!(record.poll_outcome(&Context::from_waker(&first.waker())).is_pending());
        assert!(record.poll_outcome(&Context::from_waker(&last.waker())).is_pending());
        end(&record, &fixture);
        assert_eq!((first.count(), last.count()), (0, 1), "case {number}: the last waker, once");
        assert_ne!(told(&record), "nothing", "case {number}");
        assert_eq!(Arc::strong_count(&last.0), 1, "case {number}: no waker is kept");
    }
}

#[test]
fn a_refused_registration_gives_the_permits_back_as_they_were() {
    let fixture = Fixture::new();
    let record = Arc::into_inner(fixture.record(1, fixture.terms(1_000))).expect("nobody else has it");
    let (request, frame) = record.into_parts().expect("it is queued");
    assert_eq!(fixture.held(), (1, REST + FRAME));
    drop(request);
    assert_eq!(fixture.held(), (0, FRAME));
    drop(frame);
    fixture.assert_idle();
}

#[test]
fn silence_is_judged_after_the_deadline_and_after_suspension_and_silence() {
    let fixture = Fixture::new();
    let silence = Duration::from_millis(1_000);
    let judge_at = |terms: Terms, written| terms.judge_at(fixture.at(written), silence);
    assert_eq!(judge_at(fixture.terms(3_000), 10), Some(fixture.at(3_000)));
    assert_eq!(judge_at(fixture.terms(50), 10), Some(fixture.at(1_010)));
    let held_back = Terms { suspend: Duration::from_millis(20_000), ..fixture.terms(3_000) };
    assert_eq!(judge_at(held_back, 10), Some(fixture.at(21_010)));
    let patient = Terms { deadline: RequestDeadline::never(), ..fixture.terms(0) };
    assert_eq!(judge_at(patient, 10), None);
}

#[test]
fn a_request_may_start_until_the_earlier_of_its_two_instants() {
    let fixture = Fixture::new();
    let (early, late) = (Some(fixture.at(500)), Some(fixture.at(2_000)));
    let terms = fixture.terms(1_000);
    assert_eq!(Terms { start_by: early, ..terms }.start_limit(), early);
    assert_eq!(Terms { start_by: late, ..terms }.start_limit(), Some(fixture.at(1_000)));
    assert_eq!(terms.start_limit(), Some(fixture.at(1_000)));
    let never = Terms { deadline: RequestDeadline::never(), ..terms };
    assert_eq!(Terms { start_by: late, ..never }.start_limit(), late);
    assert_eq!(never.start_limit(), None);
}

/// Counts how often it is woken.
struct Calls(Arc<Counter>);

#[derive(Default)]
struct Counter(AtomicUsize);

impl Calls {
    fn new() -> Self {
        Self(Arc::default())
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.0).into()
    }

    fn count(&self) -> usize {
        self.0.0.load(Relaxed)
    }
}

impl std::task::Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}
