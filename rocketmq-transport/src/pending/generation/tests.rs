//! The table of one generation, by rule and against a model.

mod model;

use std::time::Duration;

use super::*;
use crate::request::{
    Accepted, End, Ending, Settled, Terms,
    fixture::{Fixture, offered, response},
};

/// A table, and the records that are entered in it.
struct Bench {
    fixture: Fixture,
    table: GenerationTable,
}

impl Bench {
    fn new() -> Self {
        Self::with_opaques(0, 1 << 32)
    }

    fn with_opaques(first: i32, opaques: u64) -> Self {
        let table = GenerationTable::new(PendingRequestOwner::new(7, 1), first, opaques);
        Self { fixture: Fixture::new(), table }
    }

    fn at(&self, ms: u64) -> Instant {
        self.fixture.at(ms)
    }

    /// A registered call with the next opaque and a deadline at 1 s.
    fn queued(&self) -> Arc<RequestRecord> {
        let opaque = self.table.issue_opaque().expect("opaques are left");
        let record = self.fixture.record(opaque.0, self.fixture.terms(1_000));
        assert_eq!(self.table.register(&record, false, self.at(0)), Ok(Watch::InTime));
        record
    }

    /// One whose frame was wholly accepted at 10 ms.
    fn written(&self) -> Arc<RequestRecord> {
        let record = self.queued();
        drop(offered(&record, self.at(10)));
        assert_eq!(record.settle(Accepted::All, self.at(10)), (Settled::Started, None));
        record
    }

    /// One that its caller abandoned at `ms`, by which the peer is judged at `judge_at`.
    fn buried(&self, ms: u64, judge_at: u64) -> Arc<RequestRecord> {
        let record = self.written();
        record.end(End::Drop, self.at(ms));
        self.table.bury(&record, Some(self.at(judge_at)), self.at(ms));
        record
    }

    fn answer(&self, opaque: i32, ms: u64) -> Completion {
        self.table.complete_one(response(opaque), self.at(ms))
    }

    /// Waiting, tombstones, answered, failed.
    fn tally(&self) -> [u64; 4] {
        let Tally { waiting, tombstones, answered, failed, .. } = self.table.tally();
        [waiting, tombstones, answered, failed]
    }

    fn graves(&self) -> usize {
        self.table.inner.lock().graves.len()
    }
}

#[test]
fn opaques_are_issued_in_order_over_the_end_of_their_range_until_they_are_used_up() {
    let bench = Bench::with_opaques(i32::MAX - 1, 4);
    let issued: Vec<_> = std::iter::from_fn(|| bench.table.issue_opaque()).map(|opaque| opaque.0).collect();
    assert_eq!(issued, [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1]);
    assert_eq!(bench.table.issue_opaque(), None);
}

#[test]
fn registering_asks_for_the_time_then_the_owner_then_the_key() {
    let bench = Bench::new();
    let record = bench.queued();
    let twin = bench.fixture.record(record.opaque.0, bench.fixture.terms(1_000));
    assert_eq!(bench.table.register(&twin, false, bench.at(0)), Err(Refused::KeyTaken));
    assert!(bench.table.retire(RetireReason::Idle, bench.at(0)));
    assert_eq!(bench.table.register(&twin, false, bench.at(999)), Err(Refused::Retired));
    assert_eq!(bench.table.register(&twin, false, bench.at(1_000)), Err(Refused::Expired));
    bench.table.close();
    assert_eq!(bench.table.register(&twin, false, bench.at(999)), Err(Refused::Retired));
    assert_eq!(bench.tally(), [1, 0, 0, 0], "what was refused left no trace");
    let start_by = Some(bench.at(500));
    let late = bench.fixture.record(9, Terms { start_by, ..bench.fixture.terms(1_000) });
    assert_eq!(bench.table.register(&late, false, bench.at(500)), Err(Refused::Expired));
}

#[test]
fn a_response_completes_the_request_with_its_opaque_and_no_other() {
    let bench = Bench::new();
    let (first, second) = (bench.written(), bench.written());
    let completed = Completion::Completed { vacancy: Vacancy::None };
    assert_eq!(bench.answer(second.opaque.0, 20), completed);
    assert_eq!(bench.tally(), [1, 0, 1, 0]);
    assert_eq!(bench.answer(second.opaque.0, 21), Completion::Unsolicited { ever_used: true });
    assert_eq!(bench.answer(first.opaque.0, 22), completed);
    assert_eq!(bench.answer(99, 23), Completion::Unsolicited { ever_used: false });
    assert_eq!(bench.tally(), [0, 0, 2, 0]);
}

#[test]
fn a_response_to_a_queued_request_is_unsolicited_and_leaves_it_pending() {
    let bench = Bench::new();
    let record = bench.queued();
    assert_eq!(bench.answer(record.opaque.0, 1), Completion::Unsolicited { ever_used: true });
    assert_eq!(bench.tally(), [1, 0, 0, 0]);
}

#[test]
fn a_response_to_an_offered_request_counts_once_the_writer_has_told() {
    let bench = Bench::new();
    let record = bench.queued();
    drop(offered(&record, bench.at(10)));
    assert_eq!(bench.answer(record.opaque.0, 10), Completion::Completed { vacancy: Vacancy::None });
    assert_eq!(bench.tally(), [1, 0, 0, 0]);
    assert_eq!(record.settle(Accepted::All, bench.at(10)), (Settled::Finished, None));
    bench.table.unlink(&record, Exit::Answered);
    assert_eq!(bench.tally(), [0, 0, 1, 0]);
}

#[test]
fn a_late_response_takes_its_tombstone_away() {
    let bench = Bench::new();
    let record = bench.buried(100, 1_000);
    assert_eq!(bench.tally(), [0, 1, 0, 1]);
    let by = Duration::from_millis(50);
    assert_eq!(bench.answer(record.opaque.0, 150), Completion::Late { by });
    assert_eq!(bench.tally(), [0, 0, 0, 1], "it had failed before, and fails once");
    assert_eq!(bench.answer(record.opaque.0, 151), Completion::Unsolicited { ever_used: true });
    assert_eq!(bench.graves(), 0);
}

#[test]
fn a_late_response_between_the_end_and_the_burial_leaves_nothing_to_bury() {
    let bench = Bench::new();
    let record = bench.written();
    assert!(matches!(record.end(End::Deadline, bench.at(1_000)), Ending::Buried { .. }));
    assert_eq!(bench.answer(record.opaque.0, 1_000), Completion::Late { by: Duration::ZERO });
    let burial = bench.table.bury(&record, Some(bench.at(1_010)), bench.at(1_000));
    assert_eq!(burial, Burial { tombstones: 0, judged_earlier: false, vacancy: Vacancy::None });
    assert_eq!((bench.tally(), bench.table.judge_at()), ([0, 0, 0, 1], None));
}

#[test]
fn a_record_is_taken_out_once_and_only_by_itself() {
    let bench = Bench::new();
    let record = bench.queued();
    let twin = bench.fixture.record(record.opaque.0, bench.fixture.terms(1_000));
    bench.table.unlink(&twin, Exit::Failed);
    bench.table.bury(&twin, None, bench.at(0));
    assert_eq!(bench.tally(), [1, 0, 0, 0]);
    bench.table.unlink(&record, Exit::Failed);
    bench.table.unlink(&record, Exit::Failed);
    assert_eq!(bench.tally(), [0, 0, 0, 1]);
}

#[test]
fn burials_tell_how_many_there_are_and_whose_judgement_comes_first() {
    let bench = Bench::new();
    let bury = |judge_at: Option<u64>| {
        let record = bench.written();
        record.end(End::Drop, bench.at(20));
        let burial = bench.table.bury(&record, judge_at.map(|ms| bench.at(ms)), bench.at(20));
        (burial.tombstones, burial.judged_earlier)
    };
    assert_eq!(bury(None), (1, false));
    assert_eq!(bury(Some(2_000)), (2, true));
    assert_eq!(bury(Some(3_000)), (3, false));
    assert_eq!(bury(Some(1_000)), (4, true));
    assert_eq!(bench.table.judge_at(), Some(bench.at(1_000)));
}

#[test]
fn each_tombstone_is_asked_once_and_the_next_judgement_is_that_of_the_others() {
    let bench = Bench::new();
    let _records = [bench.buried(20, 2_000), bench.buried(20, 1_000), bench.buried(20, 3_000)];
    assert_eq!(bench.table.take_judgement(bench.at(999)), None);
    assert_eq!(bench.table.take_judgement(bench.at(1_001)), Some(bench.at(1_000)));
    assert_eq!(bench.table.take_judgement(bench.at(1_001)), None);
    assert_eq!(bench.table.judge_at(), Some(bench.at(2_000)));
    assert_eq!(bench.table.take_judgement(bench.at(9_000)), Some(bench.at(3_000)), "the last of them");
    assert_eq!(bench.table.judge_at(), None);
    assert_eq!(bench.tally(), [0, 3, 0, 3], "judged tombstones stay");
}

#[test]
fn an_answered_tombstone_is_not_judged_by_and_hands_on_to_the_next() {
    let bench = Bench::new();
    let (first, _second) = (bench.buried(20, 1_000), bench.buried(20, 2_000));
    bench.answer(first.opaque.0, 500);
    assert_eq!(bench.table.take_judgement(bench.at(1_000)), None);
    assert_eq!(bench.table.judge_at(), Some(bench.at(2_000)));
}

#[test]
fn a_tombstone_whose_frame_is_finished_later_is_judged_from_then_on() {
    let bench = Bench::new();
    let record = bench.queued();
    drop(offered(&record, bench.at(10)));
    record.settle(Accepted::Some, bench.at(10));
    assert_eq!(record.end(End::Drop, bench.at(20)), Ending::Buried { written: None });
    bench.table.bury(&record, None, bench.at(20));
    assert_eq!(bench.table.judge_at(), None);
    assert!(matches!(record.finish(bench.at(30)), Settled::Buried { .. }));
    let burial = bench.table.bury(&record, Some(bench.at(1_030)), bench.at(30));
    assert_eq!((burial.tombstones, burial.judged_earlier), (1, true));
    assert_eq!(bench.tally(), [0, 1, 0, 1]);
}

#[test]
fn a_burial_that_comes_second_takes_no_judgement_back() {
    let bench = Bench::new();
    let record = bench.queued();
    drop(offered(&record, bench.at(10)));
    record.settle(Accepted::Some, bench.at(10));
    // The caller ends it, and before it comes to the table the writer has finished the frame and been there.
    assert_eq!(record.end(End::Drop, bench.at(20)), Ending::Buried { written: None });
    assert!(matches!(record.finish(bench.at(20)), Settled::Buried { .. }));
    bench.table.bury(&record, Some(bench.at(1_020)), bench.at(20));
    bench.table.bury(&record, None, bench.at(20));
    assert!(bench.table.take_judgement(bench.at(1_020)).is_some(), "the peer is judged by it all the same");
}

#[test]
fn tombstones_from_the_horizon_or_before_are_forgotten_and_the_oldest_left_is_told() {
    let bench = Bench::new();
    let _records = [bench.buried(20, 9_000), bench.buried(40, 9_000), bench.buried(60, 9_000)];
    let waiting = bench.written();
    assert_eq!(bench.table.forget_until(None).1, Some(bench.at(20)));
    assert_eq!(bench.table.forget_until(Some(bench.at(19))).1, Some(bench.at(20)));
    assert_eq!(bench.table.forget_until(Some(bench.at(40))).1, Some(bench.at(60)));
    assert_eq!(bench.tally(), [1, 1, 0, 3]);
    assert_eq!(bench.table.forget_until(Some(bench.at(99))).1, None);
    assert_eq!((bench.tally(), bench.graves()), ([1, 0, 0, 3], 0));
    assert_eq!(bench.answer(waiting.opaque.0, 100), Completion::Completed { vacancy: Vacancy::None });
}

#[test]
fn a_forgotten_tombstone_is_judged_no_more() {
    let bench = Bench::new();
    let record = bench.buried(20, 9_000);
    bench.table.forget_until(Some(bench.at(20)));
    assert_eq!(bench.table.take_judgement(bench.at(9_000)), None);
    assert_eq!(bench.answer(record.opaque.0, 9_000), Completion::Unsolicited { ever_used: true });
}

#[test]
fn the_graves_of_answered_tombstones_do_not_pile_up_behind_an_old_one() {
    let bench = Bench::new();
    let _old = bench.buried(20, 9_000);
    for _ in 0..100 {
        let record = bench.buried(30, 9_000);
        bench.answer(record.opaque.0, 40);
    }
    assert_eq!(bench.tally(), [0, 1, 0, 101]);
    assert!(bench.graves() <= 2, "{} graves for one tombstone", bench.graves());
}

#[test]
fn an_opaque_counts_as_used_from_its_issue_on_over_the_end_of_the_range() {
    let bench = Bench::with_opaques(i32::MAX, 1 << 32);
    let used = |opaque| bench.answer(opaque, 0) == Completion::Unsolicited { ever_used: true };
    assert!(!used(i32::MAX));
    bench.table.issue_opaque();
    assert!(used(i32::MAX) && !used(i32::MIN) && !used(i32::MAX - 1));
    bench.table.issue_opaque();
    assert!(used(i32::MIN) && !used(i32::MIN + 1));
    // All but one of them, then all.
    bench.table.asked.store((1 << 32) - 1, Relaxed);
    assert!(!used(i32::MAX - 1) && used(i32::MAX) && used(0));
    bench.table.issue_opaque();
    assert!(used(i32::MAX - 1) && used(i32::MAX) && used(0));
    assert_eq!(bench.table.issue_opaque(), None);
}

#[test]
fn a_retired_generation_is_vacant_once_nobody_waits_whatever_ended_the_last() {
    type Last = fn(&Bench, &Arc<RequestRecord>) -> Vacancy;
    let last: [Last; 3] = [
        |bench, record| match bench.answer(record.opaque.0, 20) {
            Completion::Completed { vacancy } => vacancy,
            other => panic!("{other:?}"),
        },
        |bench, record| bench.table.unlink(record, Exit::Failed),
        |bench, record| {
            record.end(End::Drop, bench.at(20));
            bench.table.bury(record, None, bench.at(20)).vacancy
        },
    ];
    for end in last {
        let bench = Bench::new();
        let (first, second) = (bench.written(), bench.written());
        assert!(bench.table.retire(RetireReason::Silence, bench.at(15)));
        assert_eq!(end(&bench, &first), Vacancy::None);
        assert_eq!(end(&bench, &second), Vacancy::Drained);
    }
}

#[test]
fn a_generation_retires_once_and_a_close_by_the_owner_takes_the_place_of_another_reason() {
    let bench = Bench::new();
    assert_eq!(bench.table.phase(), Phase::Accepting);
    assert!(bench.table.retire(RetireReason::Silence, bench.at(10)));
    assert!(!bench.table.retire(RetireReason::Idle, bench.at(20)));
    assert_eq!(bench.table.phase(), Phase::Draining(RetireReason::Silence, bench.at(10)));
    assert!(!bench.table.retire(RetireReason::Closed, bench.at(30)));
    assert_eq!(bench.table.phase(), Phase::Draining(RetireReason::Closed, bench.at(10)));
    bench.table.close();
    assert!(!bench.table.retire(RetireReason::Closed, bench.at(40)));
    assert_eq!(bench.table.phase(), Phase::Closed);
}

#[test]
fn draining_a_closed_table_hands_out_every_record_and_counts_who_waited() {
    let bench = Bench::new();
    let (_queued, _written) = (bench.queued(), bench.written());
    let _buried = bench.buried(20, 1_000);
    bench.table.close();
    let mut opaques: Vec<_> = bench.table.drain().iter().map(|record| record.opaque.0).collect();
    opaques.sort_unstable();
    assert_eq!(opaques, [0, 1, 2]);
    assert_eq!((bench.tally(), bench.graves()), ([0, 0, 0, 3], 0));
    assert!(bench.table.drain().is_empty());
    assert_eq!((bench.table.waiting(), bench.table.judge_at()), (0, None));
}

#[test]
fn what_comes_late_or_unsolicited_is_counted_as_soon_as_it_can_be_had() {
    let bench = Bench::new();
    let record = bench.buried(20, 1_000);
    assert!(matches!(bench.answer(record.opaque.0, 30), Completion::Late { .. }));
    assert!(matches!(record.late(), crate::request::Late::Came(_)));
    assert_eq!((bench.table.tally().late, bench.table.tally().unsolicited), (1, 0));
    assert!(matches!(bench.answer(record.opaque.0, 30), Completion::Unsolicited { .. }));
    assert_eq!((bench.table.tally().late, bench.table.tally().unsolicited), (1, 1));
}
