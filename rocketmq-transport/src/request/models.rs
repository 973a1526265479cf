//! Every interleaving of those who contend for a record.

use loom::thread;

use super::{
    fixture::{Fixture, offered, outcome, respond},
    *,
};
use crate::sync::{
    Arc,
    model::{block_on, check},
};

/// The three ways a poll of the socket can end, and three states in which a response may come.
const POLLS: [Poll; 3] = [Poll::Nothing, Poll::Some, Poll::All];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Poll {
    Nothing,
    Some,
    All,
}

/// Runs `body` in a thread of its own, on the record and the fixture.
fn spawn<T: 'static>(
    shared: &(Arc<Fixture>, Arc<RequestRecord>),
    body: impl FnOnce(&Fixture, &RequestRecord) -> T + 'static,
) -> thread::JoinHandle<T> {
    let (fixture, record) = shared.clone();
    thread::spawn(move || body(&fixture, &record))
}

fn queued(kind: Kind) -> (Arc<Fixture>, Arc<RequestRecord>) {
    let fixture = Fixture::new();
    let record = fixture.record(1, Terms { kind, ..fixture.terms(1_000) });
    (Arc::new(fixture), record)
}

/// One poll of the socket, and the rest of the frame where it was begun: how many bytes were accepted.
fn write(fixture: &Fixture, record: &RequestRecord, poll: Poll) -> usize {
    let Offer::Frame(frame) = record.offer(fixture.at(10)) else { return 0 };
    let len = frame.len();
    match poll {
        Poll::Nothing => {
            record.settle(Accepted::Nothing(frame), fixture.at(10));
            return 0;
        }
        Poll::Some => {
            record.settle(Accepted::Some, fixture.at(10));
            record.finish(fixture.at(20));
        }
        Poll::All => drop(record.settle(Accepted::All, fixture.at(10))),
    }
    len
}

#[test]
fn a_withdrawn_frame_puts_no_byte_on_the_socket() {
    for poll in POLLS {
        check(move || {
            let shared = queued(Kind::Call);
            let writer = spawn(&shared, move |fixture, record| {
                write(fixture, record, poll) + write(fixture, record, poll)
            });
            let (fixture, record) = &shared;
            let ending = record.end(End::Drop, fixture.at(15));
            let accepted = writer.join().unwrap();
            match ending {
                Ending::Withdrawn => assert_eq!(accepted, 0),
                Ending::Noted => assert_eq!(accepted > 0, poll != Poll::Nothing),
                Ending::Buried { .. } => assert!(accepted > 0),
                Ending::Removed | Ending::Nothing => panic!("{ending:?} of a call that was pending"),
            }
            fixture.assert_idle();
        });
    }
}

#[test]
fn a_withdrawal_is_one_outcome_whoever_decides_it() {
    for poll in POLLS {
        check(move || {
            let shared = queued(Kind::Call);
            let writer = spawn(&shared, move |fixture, record| write(fixture, record, poll));
            let keeper = spawn(&shared, |fixture, record| {
                record.end(End::StartBy, fixture.at(15));
            });
            let caller = spawn(&shared, |fixture, record| {
                record.end(End::Deadline, fixture.at(1_000));
                block_on(|cx| record.poll_outcome(cx)).0
            });
            let accepted = writer.join().unwrap();
            keeper.join().unwrap();
            let Outcome::Failed { stage, .. } = caller.join().unwrap() else { panic!("nobody answers") };
            assert_eq!(stage > Stage::BeforeWrite, accepted > 0, "not sent means that nothing was accepted");
            let (fixture, record) = &shared;
            assert!(outcome(record).is_none());
            fixture.assert_idle();
        });
    }
}

#[test]
fn response_deadline_and_close_end_an_offered_request_once_and_wake_its_caller() {
    for poll in POLLS {
        check(move || {
            let shared = queued(Kind::Call);
            let frame = offered(&shared.1, shared.0.at(10));
            let reader = spawn(&shared, |fixture, record| {
                respond(&record, fixture.at(10));
            });
            let timer = spawn(&shared, |fixture, record| {
                record.end(End::Deadline, fixture.at(1_000));
            });
            // The writer, and the close that comes when it has stopped.
            let writer = spawn(&shared, move |fixture, record| {
                match poll {
                    Poll::Nothing => record.settle(Accepted::Nothing(frame), fixture.at(10)),
                    Poll::Some => record.settle(Accepted::Some, fixture.at(10)),
                    Poll::All => record.settle(Accepted::All, fixture.at(10)),
                };
                record.cut_short();
                record.close(&CloseCause::EndOfStream, fixture.at(20));
            });
            let (fixture, record) = &shared;
            let (ended, _) = block_on(|cx| record.poll_outcome(cx));
            for thread in [reader, timer, writer] {
                thread.join().unwrap();
            }
            match ended {
                Outcome::Answered(_) => assert_ne!(poll, Poll::Nothing, "what was not sent is not answered"),
                Outcome::Failed { stage, .. } => {
                    assert_eq!(stage == Stage::BeforeWrite, poll == Poll::Nothing);
                }
                Outcome::Written => panic!("a call is not done when it is written"),
            }
            assert!(outcome(record).is_none(), "it ends once");
            fixture.assert_idle();
        });
    }
}

#[test]
fn response_drop_and_last_byte_leave_nothing_behind_whatever_their_order() {
    for kind in [Kind::Call, Kind::Oneway] {
        check(move || {
            let shared = queued(kind);
            let frame = offered(&shared.1, shared.0.at(10));
            shared.1.settle(Accepted::Some, shared.0.at(10));
            let reader = spawn(&shared, |fixture, record| respond(&record, fixture.at(30)));
            let caller = spawn(&shared, |fixture, record| {
                let polled = record.poll_outcome(&Context::from_waker(Waker::noop()));
                if polled.is_pending() {
                    record.end(End::Drop, fixture.at(30));
                }
                polled.is_ready()
            });
            let writer = spawn(&shared, move |fixture, record| {
                record.finish(fixture.at(30));
                drop(frame);
            });
            let delivery = reader.join().unwrap();
            let collected = caller.join().unwrap();
            writer.join().unwrap();
            let (fixture, record) = &shared;
            if collected && kind == Kind::Call {
                assert_eq!(delivery, Delivery::Completed);
            }
            if kind == Kind::Oneway {
                assert_eq!(delivery, Delivery::Unsolicited);
                assert!(!record.is_tombstone());
            }
            fixture.assert_idle();
        });
    }
}

#[test]
fn response_deadline_and_close_end_a_written_request_once_and_wake_its_caller() {
    check(|| {
        let shared = queued(Kind::Call);
        assert!(write(&shared.0, &shared.1, Poll::All) > 0);
        let reader = spawn(&shared, |fixture, record| {
            respond(&record, fixture.at(20));
        });
        let timer = spawn(&shared, |fixture, record| {
            record.end(End::Deadline, fixture.at(1_000));
        });
        let closer = spawn(&shared, |fixture, record| record.close(&CloseCause::EndOfStream, fixture.at(20)));
        let (fixture, record) = &shared;
        block_on(|cx| record.poll_outcome(cx));
        for thread in [reader, timer, closer] {
            thread.join().unwrap();
        }
        assert!(outcome(record).is_none(), "it ends once");
        fixture.assert_idle();
    });
}
