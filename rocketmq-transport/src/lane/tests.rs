//! The lanes, against a list for each.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use proptest::prelude::*;

use super::*;
use crate::request::{OVERHEAD, Terms, fixture::Fixture};

/// Lanes, and the records that are put into them.
struct Bench {
    fixture: Fixture,
    lanes: Lanes,
}

impl Bench {
    fn new() -> Self {
        Self { fixture: Fixture::new(), lanes: Lanes::new() }
    }

    fn push(&self, class: Class, opaque: i32) -> Arc<RequestRecord> {
        let terms = Terms { class, ..self.fixture.terms(1_000) };
        let record = self.fixture.record(opaque, terms);
        self.lanes.push(&record).expect("the lanes are open");
        record
    }

    /// The opaques of the next records, in the order in which the writer takes them; the socket accepts nothing.
    fn peek(&self, most: usize) -> Vec<i32> {
        let batch = self.take(most);
        self.lanes.put_back(batch.iter());
        batch.iter().map(|record| record.opaque.0).collect()
    }

    fn take(&self, most: usize) -> Vec<Arc<RequestRecord>> {
        let mut batch = Vec::new();
        self.lanes.take(most, usize::MAX, &mut batch);
        batch
    }

    /// The writer takes the next records, and the socket accepts some of each.
    fn start(&self, most: usize) {
        self.lanes.give_up(self.take(most).iter());
    }

    fn slots(&self) -> usize {
        let inner = self.lanes.inner.lock();
        inner.control.slots.len() + inner.data.slots.len()
    }
}

/// A waker that counts, and how often it was called.
#[derive(Default)]
struct Calls(AtomicUsize);

impl std::task::Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn calls() -> (Arc<Calls>, Waker) {
    let calls = Arc::new(Calls::default());
    (Arc::clone(&calls), calls.into())
}

#[test]
fn a_lane_keeps_its_order_whatever_is_withdrawn_from_it() {
    for (gone, left) in [(0, [2, 3]), (1, [1, 3]), (2, [1, 2])] {
        let bench = Bench::new();
        let records = [1, 2, 3].map(|opaque| bench.push(Class::Data, opaque));
        bench.lanes.unlink(&records[gone]);
        assert_eq!(bench.peek(9), left);
        let _last = bench.push(Class::LongPoll, 4);
        assert_eq!(bench.peek(9), [left[0], left[1], 4], "a long poll queues behind data");
        assert_eq!(bench.peek(2), left, "no more than asked for");
    }
}

#[test]
fn a_full_queue_of_withdrawn_frames_is_an_empty_queue() {
    let bench = Bench::new();
    let records: Vec<_> = (0..1_000).map(|opaque| bench.push(Class::Data, opaque)).collect();
    assert_eq!(bench.lanes.len(), 1_000);
    for record in records.iter().rev().step_by(2).chain(records.iter().step_by(2)) {
        bench.lanes.unlink(record);
    }
    assert_eq!(bench.lanes.len(), 0);
    assert_eq!(bench.peek(9), []);
    assert!(bench.lanes.poll_ready(&Context::from_waker(Waker::noop())).is_pending());
    assert!(records.iter().all(|record| Arc::strong_count(record) == 1), "the lane keeps no record");
}

#[test]
fn a_stale_place_takes_nothing_from_the_record_that_has_it_now() {
    let bench = Bench::new();
    let first = bench.push(Class::Data, 1);
    bench.lanes.unlink(&first);
    let second = bench.push(Class::Data, 2);
    assert_eq!(first.place(), second.place());
    bench.lanes.unlink(&first);
    assert_eq!(bench.peek(9), [2]);
}

#[test]
fn the_place_of_a_taken_record_is_the_writers_also_when_it_is_withdrawn() {
    let bench = Bench::new();
    let [first, _second] = [1, 2].map(|opaque| bench.push(Class::Data, opaque));
    let taken = bench.take(1);
    bench.lanes.unlink(&first);
    assert_eq!((bench.lanes.len(), bench.peek(9)), (2, vec![2]));
    let third = bench.push(Class::Data, 3);
    assert_ne!(third.place(), first.place());
    bench.lanes.give_up_unwritten(&taken[0]);
    assert_eq!((bench.lanes.len(), bench.peek(9)), (2, vec![2, 3]));
    assert_eq!(bench.push(Class::Data, 4).place(), first.place(), "it is free now");
}

#[test]
fn a_record_that_was_put_back_is_withdrawn_as_if_it_had_not_been_taken() {
    let bench = Bench::new();
    let records = [1, 2, 3].map(|opaque| bench.push(Class::Data, opaque));
    assert_eq!(bench.peek(2), [1, 2]);
    bench.lanes.unlink(&records[0]);
    assert_eq!(bench.peek(9), [2, 3]);
    assert_eq!(Arc::strong_count(&records[0]), 1);
}

#[test]
fn a_batch_ends_with_the_frame_that_reaches_its_bytes() {
    let bench = Bench::new();
    let bytes = OVERHEAD + 100;
    let _records = [1, 2, 3].map(|opaque| {
        let record = bench.fixture.record(opaque, Terms { bytes, ..bench.fixture.terms(1_000) });
        bench.lanes.push(&record).expect("the lanes are open");
        record
    });
    let mut batch = Vec::new();
    bench.lanes.take(9, 101, &mut batch);
    assert_eq!(batch.len(), 2);
}

#[test]
fn a_record_that_was_never_queued_has_no_place_to_give_up() {
    let bench = Bench::new();
    let _queued = bench.push(Class::Data, 1);
    let other = bench.fixture.record(2, bench.fixture.terms(1_000));
    bench.lanes.unlink(&other);
    assert_eq!(bench.peek(9), [1]);
}

#[test]
fn slots_are_used_again_so_that_a_lane_is_as_large_as_its_longest_queue() {
    let bench = Bench::new();
    for round in 0..50 {
        let records: Vec<_> = (0..4).map(|opaque| bench.push(Class::Data, round * 4 + opaque)).collect();
        for place in [2, 0, 3, 1] {
            bench.lanes.unlink(&records[place]);
        }
    }
    assert_eq!(bench.slots(), 4);
}

#[test]
fn control_goes_first_and_at_most_eight_in_a_row_while_data_waits() {
    let bench = Bench::new();
    let _data = [101, 102, 103].map(|opaque| bench.push(Class::Data, opaque));
    let _control: Vec<_> = (1..=20).map(|opaque| bench.push(Class::Control, opaque)).collect();
    let order: Vec<_> = (1..=8).chain([101]).chain(9..=16).chain([102]).chain(17..=20).chain([103]).collect();
    assert_eq!(bench.peek(99), order);
}

#[test]
fn the_row_of_control_goes_on_over_batches_and_counts_only_what_started() {
    let bench = Bench::new();
    let _data = bench.push(Class::Data, 101);
    let control: Vec<_> = (1..=12).map(|opaque| bench.push(Class::Control, opaque)).collect();
    bench.start(6);
    bench.lanes.unlink(&control[6]);
    assert_eq!(bench.peek(4), [8, 9, 101, 10], "six have started, one was withdrawn");
    bench.start(3);
    let _more = bench.push(Class::Data, 102);
    assert_eq!(bench.peek(99), [10, 11, 12, 102], "data has begun the row anew");
}

#[test]
fn data_goes_next_after_a_long_row_of_control_that_nobody_waited_for() {
    let bench = Bench::new();
    let _control: Vec<_> = (1..=20).map(|opaque| bench.push(Class::Control, opaque)).collect();
    bench.start(15);
    let _data = bench.push(Class::Data, 101);
    assert_eq!(bench.peek(3), [101, 16, 17]);
}

#[test]
fn a_push_wakes_the_writer_that_waits_for_frames_once() {
    let bench = Bench::new();
    let (calls, waker) = calls();
    assert!(bench.lanes.poll_ready(&Context::from_waker(&waker)).is_pending());
    let _records = [1, 2].map(|opaque| bench.push(Class::Data, opaque));
    assert_eq!(calls.0.load(Relaxed), 1);
    assert_eq!(bench.lanes.poll_ready(&Context::from_waker(&waker)), Poll::Ready(Ready::Frames(2)));
}

#[test]
fn a_push_leaves_the_writer_alone_while_the_socket_is_full() {
    let bench = Bench::new();
    let (calls, waker) = calls();
    assert!(bench.lanes.poll_closed(&Context::from_waker(&waker)).is_pending());
    let _record = bench.push(Class::Control, 1);
    assert_eq!(calls.0.load(Relaxed), 0);
    bench.lanes.close();
    assert_eq!(calls.0.load(Relaxed), 1, "a stop does wake it");
    assert!(bench.lanes.poll_closed(&Context::from_waker(&waker)).is_ready());
}

#[test]
fn closed_lanes_take_no_record_and_keep_theirs_until_they_are_cleared() {
    let bench = Bench::new();
    let record = bench.push(Class::Data, 1);
    bench.lanes.close();
    let refused = bench.fixture.record(2, bench.fixture.terms(1_000));
    assert!(bench.lanes.push(&refused).is_err());
    assert_eq!(
        bench.lanes.poll_ready(&Context::from_waker(Waker::noop())),
        Poll::Ready(Ready::Closed),
        "also with frames queued"
    );
    assert_eq!((bench.lanes.len(), Arc::strong_count(&record), Arc::strong_count(&refused)), (1, 2, 1));
    bench.lanes.clear();
    assert_eq!((bench.lanes.len(), Arc::strong_count(&record)), (0, 1));
}

proptest! {
    /// `Some` queues a record of the class, `None` withdraws the one at that share of those ever queued.
    #[test]
    fn the_lanes_agree_with_two_lists(
        steps in prop::collection::vec((0..3u8, any::<prop::sample::Index>()), 1..80),
    ) {
        let bench = Bench::new();
        let (mut control, mut data) = (VecDeque::new(), VecDeque::new());
        let (mut ever, mut peak) = (Vec::new(), [0, 0]);
        for (opaque, (kind, at)) in (0..).zip(steps) {
            match kind {
                0 => {
                    ever.push(bench.push(Class::Control, opaque));
                    control.push_back(opaque);
                }
                1 => {
                    ever.push(bench.push(Class::Data, opaque));
                    data.push_back(opaque);
                }
                _ if ever.is_empty() => {}
                _ => {
                    let gone = at.get(&ever);
                    bench.lanes.unlink(gone);
                    control.retain(|opaque| *opaque != gone.opaque.0);
                    data.retain(|opaque| *opaque != gone.opaque.0);
                }
            }
            peak = [peak[0].max(control.len()), peak[1].max(data.len())];
            prop_assert_eq!(bench.lanes.len(), control.len() + data.len());
        }
        prop_assert_eq!(bench.slots(), peak[0] + peak[1]);
        let order = bench.peek(usize::MAX);
        let (in_control, in_data): (Vec<_>, Vec<_>) =
            order.into_iter().partition(|opaque| control.contains(opaque));
        prop_assert_eq!(control, in_control);
        prop_assert_eq!(data, in_data);
    }
}
