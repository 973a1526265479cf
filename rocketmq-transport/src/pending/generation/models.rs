//! Every interleaving of those who register, answer, end and close.

use loom::thread;

use super::*;
use crate::{
    CloseCause,
    request::{
        Accepted, End, Ending, Outcome, Settled,
        fixture::{Fixture, offered, outcome, response},
    },
    sync::model::{block_on, check},
};

struct Bench {
    fixture: Fixture,
    table: GenerationTable,
}

impl Bench {
    fn new() -> Arc<Self> {
        let table = GenerationTable::new(PendingRequestOwner::new(7, 1), 1, 1 << 32);
        Arc::new(Self { fixture: Fixture::new(), table })
    }

    /// A registered call whose frame was accepted: in part, to be finished, or whole.
    fn begun(&self, accepted: Accepted) -> Arc<RequestRecord> {
        let record = self.fixture.record(1, self.fixture.terms(1_000));
        self.table.register(&record, false, self.fixture.at(0)).expect("an open table");
        drop(offered(&record, self.fixture.at(10)));
        record.settle(accepted, self.fixture.at(10));
        record
    }

    /// What the end of a connection does with its table.
    fn close(&self) {
        self.table.close();
        for record in self.table.drain() {
            record.close(&CloseCause::EndOfStream, self.fixture.at(30));
        }
    }

    /// What a caller does at its deadline.
    fn expire(&self, record: &Arc<RequestRecord>) {
        match record.end(End::Deadline, self.fixture.at(1_000)) {
            Ending::Withdrawn | Ending::Removed => drop(self.table.unlink(record, Exit::Failed)),
            Ending::Buried { written } => {
                let judge_at = written.map(|_| self.fixture.at(2_000));
                self.table.bury(record, judge_at, self.fixture.at(1_000));
            }
            Ending::Noted | Ending::Nothing => {}
        }
    }

    fn assert_nothing_is_left(&self) {
        let Tally { waiting, tombstones, .. } = self.table.tally();
        assert_eq!((waiting, tombstones), (0, 0));
        self.fixture.assert_idle();
    }
}

fn spawn<T: 'static>(bench: &Arc<Bench>, body: impl FnOnce(&Bench) -> T + 'static) -> thread::JoinHandle<T> {
    let bench = Arc::clone(bench);
    thread::spawn(move || body(&bench))
}

#[test]
fn registering_against_retiring_and_closing_strands_nobody() {
    check(|| {
        let bench = Bench::new();
        let caller = spawn(&bench, |bench| {
            let record = bench.fixture.record(1, bench.fixture.terms(1_000));
            match bench.table.register(&record, false, bench.fixture.at(10)) {
                Ok(_) => {
                    let (outcome, _) = block_on(|cx| record.poll_outcome(cx));
                    assert!(matches!(outcome, Outcome::Failed { .. }));
                }
                Err(refused) => assert_eq!(refused, Refused::Retired),
            }
        });
        let keeper = spawn(&bench, |bench| bench.table.retire(RetireReason::Silence, bench.fixture.at(10)));
        bench.close();
        caller.join().unwrap();
        keeper.join().unwrap();
        bench.assert_nothing_is_left();
    });
}

#[test]
fn the_last_waiter_of_a_retired_generation_is_noticed() {
    check(|| {
        let bench = Bench::new();
        let record = bench.begun(Accepted::All);
        let keeper = spawn(&bench, |bench| {
            bench.table.retire(RetireReason::Silence, bench.fixture.at(20));
            bench.table.waiting() == 0
        });
        let completion = bench.table.complete_one(response(1), bench.fixture.at(20));
        let seen_by_keeper = keeper.join().unwrap();
        let Completion::Completed { vacancy } = completion else { panic!("{completion:?}") };
        assert!(seen_by_keeper || vacancy == Vacancy::Drained, "one of the two sees that it is drained");
        assert!(outcome(&record).is_some());
        bench.assert_nothing_is_left();
    });
}

#[test]
fn response_deadline_and_close_are_counted_once() {
    check(|| {
        let bench = Bench::new();
        let record = bench.begun(Accepted::All);
        let reader = spawn(&bench, |bench| bench.table.complete_one(response(1), bench.fixture.at(20)));
        let caller = {
            let record = Arc::clone(&record);
            spawn(&bench, move |bench| {
                bench.expire(&record);
                block_on(|cx| record.poll_outcome(cx)).0
            })
        };
        let completion = reader.join().unwrap();
        let ended = caller.join().unwrap();
        match ended {
            Outcome::Answered(_) => assert!(matches!(completion, Completion::Completed { .. })),
            _ => assert!(matches!(completion, Completion::Late { .. })),
        }
        let Tally { answered, failed, .. } = bench.table.tally();
        assert_eq!((answered, failed), if matches!(ended, Outcome::Answered(_)) { (1, 0) } else { (0, 1) });
        bench.close();
        bench.assert_nothing_is_left();
    });
}

#[test]
fn a_response_to_a_request_that_is_being_closed_ends_it_once() {
    check(|| {
        let bench = Bench::new();
        let record = bench.begun(Accepted::All);
        let reader = spawn(&bench, |bench| bench.table.complete_one(response(1), bench.fixture.at(20)));
        let closer = spawn(&bench, Bench::close);
        block_on(|cx| record.poll_outcome(cx));
        let _ = reader.join().unwrap();
        closer.join().unwrap();
        assert!(outcome(&record).is_none());
        let Tally { answered, failed, .. } = bench.table.tally();
        assert_eq!(answered + failed, 1);
        bench.assert_nothing_is_left();
    });
}

#[test]
fn the_peer_is_judged_by_a_tombstone_whose_frame_is_finished_while_it_is_buried() {
    check(|| {
        let bench = Bench::new();
        let record = bench.begun(Accepted::Some);
        let caller = {
            let record = Arc::clone(&record);
            spawn(&bench, move |bench| bench.expire(&record))
        };
        // The writer.
        if let Settled::Buried { written } = record.finish(bench.fixture.at(1_000)) {
            bench.table.bury(&record, written.map(|_| bench.fixture.at(2_000)), bench.fixture.at(1_000));
        }
        caller.join().unwrap();
        assert_eq!(bench.table.tally().failed, 1);
        let due = bench.fixture.at(2_000);
        assert_eq!(bench.table.take_judgement(due), Some(due));
        bench.close();
        bench.assert_nothing_is_left();
    });
}
