//! Every interleaving of the budget's users, within a bound on pre-emptions.

use std::task::{Context, Poll};

use loom::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};

use super::*;
use crate::sync::model::{block_on, check};

#[test]
fn two_threads_never_hold_more_than_the_limit_and_end_whole() {
    check(|| {
        let tree = BudgetTree::new(limits(1, 100));
        let peer = Arc::new(tree.peer());
        let alone = Arc::new(AtomicBool::new(true));
        let worker = {
            let (peer, alone) = (Arc::clone(&peer), Arc::clone(&alone));
            move || {
                if let Ok(mut permit) = peer.try_acquire(Class::Data, ask(100), now()) {
                    assert!(alone.swap(false, SeqCst), "two hold the only place");
                    let frame = permit.split_bytes(60);
                    alone.store(true, SeqCst);
                    drop(permit);
                    drop(frame);
                }
            }
        };
        let other = thread::spawn(worker.clone());
        worker();
        other.join().unwrap();
        assert_idle(&tree, &peer);
    });
}

#[test]
fn the_parts_of_a_permit_are_given_back_once_each_from_any_thread() {
    check(|| {
        let tree = BudgetTree::new(limits(1, 100));
        let peer = tree.peer();
        let mut permit = peer.try_acquire(Class::Data, ask(100), now()).expect("an empty budget");
        let frame = permit.split_bytes(60);
        let writer = thread::spawn(move || drop(frame));
        let keeper = thread::spawn(move || drop(peer));
        drop(permit);
        writer.join().unwrap();
        keeper.join().unwrap();
        assert!(tree.used().is_idle());
        assert_eq!(tree.shared.ledger.lock().peer_count(), 0);
    });
}

#[test]
fn a_give_back_always_reaches_the_waiter() {
    check(|| {
        let tree = BudgetTree::new(limits(1, 100));
        let peer = Arc::new(tree.peer());
        let mut held = peer.try_acquire(Class::Data, ask(100), now()).expect("an empty budget");
        let waiter = {
            let peer = Arc::clone(&peer);
            thread::spawn(move || wait(&mut peer.acquire(Class::Data, ask(100), RequestDeadline::never())))
        };
        let frame = held.split_bytes(50);
        drop(held);
        drop(frame);
        drop(waiter.join().unwrap());
        assert_idle(&tree, &peer);
    });
}

#[test]
fn a_waiter_that_leaves_while_it_is_woken_passes_the_wake_up_on() {
    check(|| {
        let tree = BudgetTree::new(limits(1, 100));
        let peer = Arc::new(tree.peer());
        let held = peer.try_acquire(Class::Data, ask(1), now()).expect("an empty budget");
        let fickle = {
            let peer = Arc::clone(&peer);
            thread::spawn(move || {
                drop(poll_once(&mut peer.acquire(Class::Data, ask(1), RequestDeadline::never())))
            })
        };
        let patient = {
            let peer = Arc::clone(&peer);
            thread::spawn(move || {
                drop(wait(&mut peer.acquire(Class::Data, ask(1), RequestDeadline::never())))
            })
        };
        drop(held);
        fickle.join().unwrap();
        patient.join().unwrap();
        assert_idle(&tree, &peer);
    });
}

#[test]
fn two_waiters_at_two_leaves_are_both_served_while_a_newcomer_comes_and_goes() {
    check(|| {
        let client = Limit { requests: 1, bytes: 100 };
        let tree = BudgetTree::new(Limits { client, ..limits(1, 100) });
        let held = tree.retain(100).expect("an empty budget");
        let (tree, waiters) = (
            tree.clone(),
            [(); 2].map(|()| {
                let tree = tree.clone();
                thread::spawn(move || {
                    let peer = tree.peer();
                    drop(wait(&mut peer.acquire(Class::Data, ask(100), RequestDeadline::never())));
                })
            }),
        );
        drop(held);
        let newcomer = tree.peer();
        drop(newcomer.try_acquire(Class::LongPoll, ask(100), now()));
        for waiter in waiters {
            waiter.join().unwrap();
        }
        assert_idle(&tree, &newcomer);
    });
}

fn wait(acquire: &mut Acquire<'_>) -> Permit {
    block_on(|cx| acquire.poll_acquire(cx, now())).expect("no deadline, no large ask")
}

fn poll_once(acquire: &mut Acquire<'_>) -> Poll<Result<Permit, AcquireError>> {
    acquire.poll_acquire(&Context::from_waker(Waker::noop()), now())
}

/// No deadline ends in these models, so any instant will do.
fn now() -> Instant {
    Instant::now()
}

const fn limits(requests: u64, bytes: u64) -> Limits {
    let limit = Limit { requests, bytes };
    Limits { client: limit, peer: limit, control: limit, data: limit, long_poll: limit }
}

const fn ask(bytes: u64) -> Ask {
    Ask { requests: 1, bytes }
}

fn assert_idle(tree: &BudgetTree, peer: &PeerBudget) {
    assert!(tree.used().is_idle());
    assert!(peer.usage("peer:1".parse().expect("an address")).is_idle());
    assert_eq!(tree.shared.ledger.lock().waiter_count(), 0);
}
