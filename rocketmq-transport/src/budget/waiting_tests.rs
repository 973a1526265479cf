use std::{
    sync::Weak,
    task::{Context, Poll, Wake},
};

use super::{tests::*, *};

#[test]
fn waiters_of_a_leaf_take_in_the_order_they_came() {
    let tree = BudgetTree::new(limits(1, 100));
    let peer = tree.peer();
    let mut held = data(&peer, 1);
    let mut waiters: Vec<_> = (0..4).map(|_| Waiting::new(&peer, Class::Data, 1)).collect();
    assert!(waiters.iter_mut().all(Waiting::is_pending));
    for next in 0..4 {
        drop(held);
        let woken: Vec<_> = (0..4).filter(|each| *each >= next && waiters[*each].was_woken()).collect();
        assert_eq!(woken, [next]);
        assert!(waiters[next + 1..].iter_mut().all(Waiting::is_pending), "nobody behind it takes");
        held = waiters[next].result().map_err(|error| panic!("{error:?}"));
    }
    drop((held, waiters));
    assert_idle(&tree, &peer);
}

#[test]
fn give_backs_serve_the_leaves_in_rotation() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 1, bytes: 100 }, ..limits(9, 100) });
    let peers = [tree.peer(), tree.peer(), tree.peer()];
    let mut held = data(&peers[0], 1).ok();
    let mut waiters: Vec<_> = (0..9).map(|each| Waiting::new(&peers[each / 3], Class::Data, 1)).collect();
    assert!(waiters.iter_mut().all(Waiting::is_pending));
    let mut served = Vec::new();
    for _ in 0..9 {
        drop(held.take());
        let next =
            (0..9).find(|each| !served.contains(each) && waiters[*each].was_woken()).expect("one is woken");
        held = waiters[next].result().ok();
        served.push(next);
    }
    assert_eq!(served, [0, 3, 6, 1, 4, 7, 2, 5, 8]);
}

#[test]
fn data_and_long_polls_share_a_full_peer_in_turn_whatever_control_does() {
    let control = Limit { requests: 1, bytes: 100 };
    let tree = BudgetTree::new(Limits { control, peer: Limit { requests: 1, bytes: 100 }, ..limits(2, 200) });
    let peer = tree.peer();
    let mut held = [data(&peer, 1).ok(), take(&peer, Class::Control, 1).ok()];
    let mut waiters: Vec<_> = [Class::Data, Class::LongPoll, Class::Control]
        .iter()
        .flat_map(|class| [*class; 3])
        .map(|class| Waiting::new(&peer, class, 1))
        .collect();
    assert!(waiters.iter_mut().all(Waiting::is_pending));
    let mut served = Vec::new();
    for slot in [0, 1, 0].repeat(3) {
        drop(held[slot].take());
        let next =
            (0..9).find(|each| !served.contains(each) && waiters[*each].was_woken()).expect("one is woken");
        held[slot] = waiters[next].result().ok();
        served.push(next);
    }
    assert_eq!(served, [0, 6, 3, 1, 7, 4, 2, 8, 5]);
}

#[test]
fn a_newcomer_does_not_overtake_a_waiter_and_is_told_what_blocks_it() {
    let tree = BudgetTree::new(limits(4, 1_000));
    let peer = tree.peer();
    let held = data(&peer, 700).expect("an empty budget");
    let mut waiter = Waiting::new(&peer, Class::Data, 500);
    assert!(waiter.is_pending());
    let behind = Refusal {
        level: Level::Class(Class::Data),
        dimension: Dimension::Bytes,
        limit: 1_000,
        in_use: 700,
        asked: 510,
    };
    assert_eq!(saturated(data(&peer, 10)), behind, "the bytes that are free are not its to take");
    drop(held);
    assert_eq!(saturated(data(&peer, 501)), Refusal { in_use: 0, asked: 1_001, ..behind });
    let beside = data(&peer, 500).expect("it fits beside the waiter that was woken");
    drop(waiter.result().expect("and does not take its room"));
    drop(beside);
    assert_idle(&tree, &peer);
}

#[test]
fn a_woken_waiter_that_is_dropped_passes_its_wake_up_on() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 1, bytes: 100 }, ..limits(9, 100) });
    let (peer, other) = (tree.peer(), tree.peer());
    let held = data(&peer, 1);
    let [mut first, mut second] = [(); 2].map(|()| Waiting::new(&peer, Class::Data, 1));
    let mut third = Waiting::new(&other, Class::Data, 1);
    assert!(first.is_pending() && second.is_pending() && third.is_pending());
    drop(held);
    assert!(first.was_woken() && !second.was_woken() && !third.was_woken());
    drop(first);
    assert!(third.was_woken() && !second.was_woken(), "the other leaf is next");
    drop(third);
    assert!(second.was_woken());
    drop(second.result().expect("room"));
}

#[test]
fn a_woken_waiter_that_finds_no_room_passes_its_wake_up_on() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 9, bytes: 100 }, ..limits(9, 50) });
    let (peer, other) = (tree.peer(), tree.peer());
    let kept = tree.retain(100).expect("an empty budget");
    let mut robbed = Waiting::new(&peer, Class::Data, 50);
    let mut next = Waiting::new(&other, Class::Data, 50);
    assert!(robbed.is_pending() && next.is_pending());
    drop(kept);
    assert!(robbed.was_woken() && !next.was_woken());
    let _robber = take(&peer, Class::LongPoll, 50).expect("another leaf may be quicker");
    assert!(robbed.is_pending(), "its peer is full again");
    assert!(next.was_woken());
    drop(next.result().expect("the client has room for this"));
}

#[test]
fn a_waiter_that_is_woken_already_takes_no_second_wake_up_from_others() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 9, bytes: 100 }, ..limits(9, 200) });
    let peers = [tree.peer(), tree.peer(), tree.peer()];
    let [first, second] = [(); 2].map(|()| data(&peers[0], 30));
    let kept = tree.retain(40).expect("40 are left");
    let mut idle = Waiting::new(&peers[0], Class::Data, 10);
    let mut large = Waiting::new(&peers[1], Class::Data, 70);
    let mut next = Waiting::new(&peers[2], Class::Data, 10);
    assert!(idle.is_pending() && large.is_pending() && next.is_pending());
    drop(first);
    assert!(idle.was_woken() && !next.was_woken());
    drop(second);
    assert!(next.was_woken() && !large.was_woken());
    drop(kept);
    assert!(large.was_woken());
}

#[test]
fn a_peer_that_goes_leaves_nothing_in_the_rotation() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 9, bytes: 100 }, ..limits(9, 50) });
    let (gone, rest) = (tree.peer(), [tree.peer(), tree.peer()]);
    let kept = tree.retain(100).expect("an empty budget");
    let [mut first, mut second] = [&rest[0], &rest[1]].map(|peer| Waiting::new(peer, Class::Data, 50));
    let mut leaving = Waiting::new(&gone, Class::Data, 50);
    assert!(first.is_pending() && second.is_pending() && leaving.is_pending());
    drop(kept);
    drop(leaving);
    assert!(first.was_woken() && second.was_woken());
    drop(gone);
    let taken = [first.result(), second.result()];
    assert!(taken.iter().all(Result::is_ok));
    drop(taken);
    rest.iter().for_each(|peer| assert_idle(&tree, peer));
}

#[test]
fn one_large_give_back_serves_as_many_as_fit() {
    let tree = BudgetTree::new(limits(9, 100));
    let peer = tree.peer();
    let held = data(&peer, 100);
    let mut waiters: Vec<_> = (0..4).map(|_| Waiting::new(&peer, Class::Data, 30)).collect();
    assert!(waiters.iter_mut().all(Waiting::is_pending));
    drop(held);
    let mut taken = Vec::new();
    while let Some(next) = (taken.len()..4).find(|each| waiters[*each].was_woken()) {
        taken.push(waiters[next].result().expect("its turn"));
    }
    assert_eq!(taken.len(), 3);
    assert!(waiters[3].is_pending());
}

#[test]
fn a_large_ask_that_leaves_lets_the_small_one_behind_it_through() {
    let tree = BudgetTree::new(limits(9, 100));
    let peer = tree.peer();
    let _held = data(&peer, 50).expect("an empty budget");
    let mut large = Waiting::new(&peer, Class::Data, 60);
    let mut middle = Waiting::new(&peer, Class::Data, 60);
    let mut small = Waiting::new(&peer, Class::Data, 10);
    assert!(large.is_pending() && middle.is_pending() && small.is_pending());
    drop(middle);
    assert!(!small.was_woken());
    drop(large);
    assert!(small.was_woken());
    drop(small.result().expect("room"));
}

#[test]
fn a_waiter_whose_deadline_has_passed_ends_expired_even_where_there_is_room() {
    let tree = BudgetTree::new(limits(1, 100));
    let peer = tree.peer();
    let now = Instant::now();
    let held = data(&peer, 1);
    let mut late = Waiting::until(&peer, Class::Data, 1, RequestDeadline::from(now, SECOND));
    assert!(late.poll(now).is_pending());
    drop(held);
    assert!(late.was_woken());
    assert!(matches!(late.poll(now + SECOND), Poll::Ready(Err(AcquireError::Expired))));
    let mut never_began = Waiting::until(&peer, Class::Data, 1, RequestDeadline::from(now, SECOND));
    assert!(matches!(never_began.poll(now + SECOND), Poll::Ready(Err(AcquireError::Expired))));
    assert_idle(&tree, &peer);
}

#[test]
fn an_expired_waiter_that_nobody_polls_holds_up_nobody() {
    let tree = BudgetTree::new(limits(1, 100));
    let peer = tree.peer();
    let now = Instant::now();
    let held = data(&peer, 1);
    let mut late = Waiting::until(&peer, Class::Data, 1, RequestDeadline::from(now, SECOND));
    let mut next = Waiting::new(&peer, Class::Data, 1);
    assert!(late.poll(now).is_pending() && next.poll(now).is_pending());
    drop(held);
    assert!(late.was_woken() && !next.was_woken());
    assert!(peer.try_acquire(Class::Data, ask(1), now + SECOND).is_err(), "the next waiter is before it");
    assert!(next.was_woken(), "the newcomer told the time");
    let held = next.result();
    let mut last = Waiting::until(&peer, Class::Data, 1, RequestDeadline::from(now, 2 * SECOND));
    assert!(last.poll(now).is_pending());
    drop(held);
    drop(peer.try_acquire(Class::Data, ask(1), now + 2 * SECOND).expect("only an expired one is before it"));
    assert!(matches!(late.poll(now), Poll::Ready(Err(AcquireError::Expired))), "time does not go back");
    drop((late, last));
    assert_idle(&tree, &peer);
}

#[test]
fn wakers_are_called_and_dropped_outside_the_lock() {
    struct Locking(BudgetTree);
    impl Wake for Locking {
        fn wake(self: Arc<Self>) {
            self.0.used();
        }
    }
    impl Drop for Locking {
        fn drop(&mut self) {
            self.0.used();
        }
    }
    let tree = BudgetTree::new(limits(1, 100));
    let peer = tree.peer();
    let poll = |acquire: &mut Acquire<'_>| {
        let locking = Arc::new(Locking(tree.clone()));
        let alive: Weak<_> = Arc::downgrade(&locking);
        let pending =
            acquire.poll_acquire(&Context::from_waker(&locking.into()), Instant::now()).is_pending();
        (pending, alive)
    };
    let held = data(&peer, 1);
    let [mut woken, mut dropped] =
        [(); 2].map(|()| peer.acquire(Class::Data, ask(1), RequestDeadline::never()));
    let (_, replaced) = poll(&mut woken);
    assert!(poll(&mut woken).0 && replaced.strong_count() == 0);
    let (_, left) = poll(&mut dropped);
    drop(dropped);
    assert_eq!(left.strong_count(), 0);
    drop(held);
    assert!(!poll(&mut woken).0);
}
