//! Every interleaving of those who queue, withdraw, write and close.

use loom::thread;

use super::*;
use crate::{
    CloseCause,
    request::{
        Accepted, End, Ending, Offer,
        fixture::{Fixture, outcome},
    },
    sync::model::{block_on, check},
};

#[test]
fn a_record_that_is_queued_while_the_lanes_are_closed_ends_and_is_not_kept() {
    check(|| {
        let (fixture, lanes) = (Fixture::new(), Arc::new(Lanes::new()));
        let record = fixture.record(1, fixture.terms(1_000));
        let closer = {
            let (lanes, record) = (Arc::clone(&lanes), Arc::clone(&record));
            let at = fixture.at(10);
            thread::spawn(move || {
                lanes.close();
                record.close(&CloseCause::EndOfStream, at);
                drop(record);
                lanes.clear();
            })
        };
        // Either way: whoever closes the lanes ends the record.
        let _ = lanes.push(&record);
        closer.join().unwrap();
        assert_eq!(Arc::strong_count(&record), 1, "the lanes keep nothing");
        assert!(outcome(&record).is_some());
        fixture.assert_idle();
    });
}

#[test]
fn the_writer_misses_no_frame_and_no_close() {
    check(|| {
        let (fixture, lanes) = (Fixture::new(), Arc::new(Lanes::new()));
        let record = fixture.record(1, fixture.terms(1_000));
        let caller = {
            let (lanes, record) = (Arc::clone(&lanes), Arc::clone(&record));
            thread::spawn(move || lanes.push(&record).is_ok())
        };
        let closer = {
            let lanes = Arc::clone(&lanes);
            thread::spawn(move || lanes.close())
        };
        let mut begun = 0;
        loop {
            match block_on(|cx| lanes.poll_ready(cx)) {
                Ready::Closed => break,
                Ready::Frames(queued) => {
                    assert_eq!(queued, 1);
                    let mut batch = Vec::new();
                    lanes.take(2, usize::MAX, &mut batch);
                    lanes.give_up(batch.iter());
                    begun += batch.len();
                    // The socket is full: only the close wakes the writer until it has looked.
                    let _ = lanes.poll_closed(&Context::from_waker(Waker::noop()));
                }
            }
        }
        let queued = caller.join().unwrap();
        closer.join().unwrap();
        assert_eq!(begun + lanes.len(), usize::from(queued));
        lanes.clear();
        assert_eq!(Arc::strong_count(&record), 1);
    });
}

#[test]
fn a_frame_wakes_the_writer_also_after_the_socket_was_full() {
    check(|| {
        let (fixture, lanes) = (Fixture::new(), Arc::new(Lanes::new()));
        let record = fixture.record(1, fixture.terms(1_000));
        let caller = {
            let lanes = Arc::clone(&lanes);
            thread::spawn(move || lanes.push(&record).expect("the lanes are open"))
        };
        let _ = lanes.poll_closed(&Context::from_waker(Waker::noop()));
        assert_eq!(block_on(|cx| lanes.poll_ready(cx)), Ready::Frames(1));
        caller.join().unwrap();
        lanes.clear();
    });
}

#[test]
fn a_withdrawn_record_is_out_of_its_lane_and_its_slot_serves_the_next() {
    check(|| {
        let (fixture, lanes) = (Fixture::new(), Arc::new(Lanes::new()));
        let first = fixture.record(1, fixture.terms(1_000));
        let second = fixture.record(2, fixture.terms(1_000));
        lanes.push(&first).expect("the lanes are open");
        let caller = {
            let (lanes, first, second) = (Arc::clone(&lanes), Arc::clone(&first), Arc::clone(&second));
            let at = fixture.at(10);
            thread::spawn(move || {
                assert_eq!(first.end(End::Drop, at), Ending::Withdrawn);
                lanes.unlink(&first);
                lanes.push(&second).expect("the lanes are open");
            })
        };
        // The writer takes the first before it is withdrawn, or finds it gone.
        let mut batch = Vec::new();
        lanes.take(1, usize::MAX, &mut batch);
        caller.join().unwrap();
        for record in &batch {
            match record.offer(fixture.at(10)) {
                Offer::Gone => {
                    assert_eq!(record.opaque.0, 1);
                    lanes.give_up_unwritten(record);
                }
                Offer::Frame(frame) => {
                    lanes.put_back([record].into_iter());
                    record.settle(Accepted::Nothing(frame), fixture.at(10));
                }
            }
        }
        let mut left = Vec::new();
        lanes.take(2, usize::MAX, &mut left);
        assert_eq!(left.iter().map(|record| record.opaque.0).collect::<Vec<_>>(), [2]);
        lanes.clear();
    });
}
