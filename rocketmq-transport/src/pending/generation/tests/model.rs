//! Any list of operations, against a table that is nothing but a list.

use proptest::prelude::*;

use super::*;
use crate::request::Offer;

/// One operation; the index picks one of the records registered so far.
#[derive(Clone, Debug)]
enum Step {
    Register,
    Write(prop::sample::Index),
    Respond(prop::sample::Index),
    End(End, prop::sample::Index),
    ForgetUntil(u64),
    TakeDue,
    Retire,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => Just(Step::Register),
        4 => index().prop_map(Step::Write),
        3 => index().prop_map(Step::Respond),
        2 => index().prop_map(|at| Step::End(End::Deadline, at)),
        2 => index().prop_map(|at| Step::End(End::Drop, at)),
        1 => (0..100u64).prop_map(Step::ForgetUntil),
        1 => Just(Step::TakeDue),
        1 => Just(Step::Retire),
    ]
}

/// What the model remembers of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Queued,
    Written,
    Buried { at: u64, judged: bool },
    Answered,
    Failed,
}

/// The table under test beside the list, and a clock that ticks with every step.
struct Pair {
    bench: Bench,
    list: Vec<(Arc<RequestRecord>, Expected)>,
    accepting: bool,
}

impl Pair {
    fn new(first_opaque: i32) -> Self {
        let bench = Bench::with_opaques(first_opaque, 1 << 32);
        Self { bench, list: Vec::new(), accepting: true }
    }

    fn apply(&mut self, step: &Step, ms: u64) {
        let now = self.bench.at(ms);
        match step {
            Step::Register => self.register(now),
            Step::Write(at) => {
                if let Some((record, expected)) = self.pick(at)
                    && *expected == Expected::Queued
                {
                    assert!(matches!(record.offer(now), Offer::Frame(_)));
                    record.settle(Accepted::All, now);
                    *expected = Expected::Written;
                }
            }
            Step::Respond(at) => self.respond(at, ms),
            Step::End(end, at) => self.end(*end, at, ms),
            Step::ForgetUntil(horizon) => {
                let horizon = (*horizon).min(ms);
                self.bench.table.forget_until(Some(self.bench.at(horizon)));
                for (_, expected) in &mut self.list {
                    if matches!(expected, Expected::Buried { at, .. } if *at <= horizon) {
                        *expected = Expected::Failed;
                    }
                }
            }
            Step::TakeDue => {
                let mut due = None;
                for (_, expected) in &mut self.list {
                    if let Expected::Buried { at, judged } = expected
                        && !*judged
                        && *at + JUDGED_AFTER <= ms
                    {
                        (due, *judged) = (due.max(Some(self.bench.at(*at + JUDGED_AFTER))), true);
                    }
                }
                assert_eq!(self.bench.table.take_judgement(now), due);
            }
            Step::Retire => {
                let retired = self.bench.table.retire(RetireReason::Idle, now);
                assert_eq!(retired, std::mem::take(&mut self.accepting));
            }
        }
    }

    fn register(&mut self, now: Instant) {
        let opaque = self.bench.table.issue_opaque().expect("opaques are left");
        let record = self.bench.fixture.record(opaque.0, self.bench.fixture.terms(60_000));
        match self.bench.table.register(&record, false, now) {
            Ok(_) => {
                assert!(self.accepting);
                self.list.push((record, Expected::Queued));
            }
            Err(refused) => assert_eq!((refused, self.accepting), (Refused::Retired, false)),
        }
    }

    fn respond(&mut self, at: &prop::sample::Index, ms: u64) {
        let Some((record, _)) = self.pick(at) else { return };
        let opaque = record.opaque.0;
        let completion = self.bench.answer(opaque, ms);
        let accepting = self.accepting;
        let Some((_, expected)) = self.pick(at) else { return };
        let (predicted, next) = match *expected {
            Expected::Written => (Completion::Completed { vacancy: Vacancy::None }, Expected::Answered),
            Expected::Buried { at, .. } => {
                (Completion::Late { by: Duration::from_millis(ms - at) }, Expected::Failed)
            }
            other => (Completion::Unsolicited { ever_used: true }, other),
        };
        *expected = next;
        let drained = !accepting && self.count(|expected| expected.waits()) == 0;
        match completion {
            Completion::Completed { vacancy } => {
                assert_eq!(vacancy == Vacancy::Drained, drained);
                assert!(matches!(predicted, Completion::Completed { .. }));
            }
            other => assert_eq!(other, predicted),
        }
    }

    /// Does what a link does with what the record decides.
    fn end(&mut self, end: End, at: &prop::sample::Index, ms: u64) {
        let Some((record, expected)) = self.pick(at) else { return };
        let (record, expected) = (Arc::clone(record), *expected);
        let now = self.bench.at(ms);
        let next = match record.end(end, now) {
            Ending::Withdrawn => {
                self.bench.table.unlink(&record, Exit::Failed);
                Expected::Failed
            }
            Ending::Buried { written } => {
                let judge_at = now + Duration::from_millis(JUDGED_AFTER);
                assert!(written.is_some());
                self.bench.table.bury(&record, Some(judge_at), now);
                Expected::Buried { at: ms, judged: false }
            }
            Ending::Nothing => expected,
            other => panic!("{other:?} of a record that is {expected:?}"),
        };
        if let Some((_, expected)) = self.pick(at) {
            *expected = next;
        }
    }

    fn pick(&mut self, at: &prop::sample::Index) -> Option<&mut (Arc<RequestRecord>, Expected)> {
        if self.list.is_empty() { None } else { Some(at.get_mut(&mut self.list)) }
    }

    fn count(&self, is: impl Fn(&Expected) -> bool) -> u64 {
        self.list.iter().filter(|(_, expected)| is(expected)).count() as u64
    }

    fn check(&self) {
        let buried = self.count(|expected| matches!(expected, Expected::Buried { .. }));
        let answered = self.count(|expected| *expected == Expected::Answered);
        let failed = self.count(|expected| *expected == Expected::Failed) + buried;
        let waiting = self.count(Expected::waits);
        assert_eq!(self.bench.tally(), [waiting, buried, answered, failed]);
        assert_eq!(self.bench.table.waiting() as u64, waiting);
        assert!(self.bench.graves() as u64 <= 2 * buried, "empty graves are not kept");
    }
}

impl Expected {
    fn waits(&self) -> bool {
        matches!(self, Self::Queued | Self::Written)
    }
}

proptest! {
    #[test]
    fn the_table_agrees_with_the_list_and_ends_with_nothing_left(
        steps in prop::collection::vec(step(), 1..60),
        first_opaque in prop::sample::select(vec![0, i32::MAX - 5, -3]),
    ) {
        let mut pair = Pair::new(first_opaque);
        for (ms, step) in (1..).zip(&steps) {
            pair.apply(step, ms);
            pair.check();
        }
        let Pair { bench, list, .. } = pair;
        let [waiting, _, answered, failed] = bench.tally();
        bench.table.close();
        for record in bench.table.drain() {
            record.close(&crate::CloseCause::EndOfStream, bench.at(1_000));
        }
        prop_assert_eq!(bench.tally(), [0, 0, answered, failed + waiting]);
        prop_assert_eq!(answered + failed + waiting, list.len() as u64);
        prop_assert!(list.iter().all(|(record, _)| Arc::strong_count(record) == 1));
        bench.fixture.assert_idle();
    }
}

/// How long after its burial, in milliseconds, a tombstone is judged.
const JUDGED_AFTER: u64 = 10;
