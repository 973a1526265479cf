use std::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Wake},
    time::Duration,
};

use super::*;

#[test]
fn a_claim_refused_by_bytes_leaves_the_count_whole() {
    let tree = BudgetTree::new(limits(4, 1_000));
    let peer = tree.peer();
    let first = data(&peer, 900).expect("an empty budget");
    for _ in 0..100 {
        let refusal = saturated(data(&peer, 200));
        assert_eq!(
            (refusal.dimension, refusal.limit, refusal.in_use, refusal.asked),
            (BYTES, 1_000, 900, 200)
        );
    }
    let small: Vec<_> = (0..3).map(|_| data(&peer, 10).expect("three places are left")).collect();
    assert_eq!(saturated(data(&peer, 10)).dimension, Dimension::Requests);
    drop((first, small));
    assert_idle(&tree, &peer);
}

#[test]
fn a_large_refused_ask_never_makes_a_small_one_fail() {
    let tree = BudgetTree::new(limits(10, 1_000));
    let (large, small) = (tree.peer(), tree.peer());
    let _held = data(&large, 500).expect("an empty budget");
    std::thread::scope(|scope| {
        scope.spawn(|| (0..10_000).for_each(|_| assert_eq!(saturated(data(&large, 501)).in_use, 500)));
        scope.spawn(|| {
            (0..10_000).for_each(|_| drop(data(&small, 10).expect("there is always room for this")))
        });
    });
}

#[test]
fn a_refusal_names_the_first_full_level_and_its_dimension() {
    const WIDE: Limit = Limit { requests: 9, bytes: 900 };
    let wide = Limits { client: WIDE, peer: WIDE, control: WIDE, data: WIDE, long_poll: WIDE };
    let count = |requests| Limit { requests, ..WIDE };
    let size = |bytes| Limit { bytes, ..WIDE };
    let class = Level::Class(Class::Data);
    for (limits, level, dimension, limit) in [
        (Limits { data: count(2), ..wide }, class, Dimension::Requests, 2),
        (Limits { data: size(250), ..wide }, class, BYTES, 250),
        (Limits { peer: count(2), ..wide }, Level::Peer, Dimension::Requests, 2),
        (Limits { peer: size(250), ..wide }, Level::Peer, BYTES, 250),
        (Limits { client: count(2), ..wide }, Level::Client, Dimension::Requests, 2),
        (Limits { client: size(250), ..wide }, Level::Client, BYTES, 250),
        (Limits { data: size(250), peer: count(2), client: count(2), ..wide }, class, BYTES, 250),
        (Limits { peer: size(250), client: count(2), ..wide }, Level::Peer, BYTES, 250),
        (Limits { client: Limit { requests: 2, bytes: 250 }, ..wide }, Level::Client, Dimension::Requests, 2),
    ] {
        let tree = BudgetTree::new(limits);
        let peer = tree.peer();
        let _held = [data(&peer, 100).expect("room for two"), data(&peer, 100).expect("room for two")];
        let (in_use, asked) = if dimension == BYTES { (200, 100) } else { (2, 1) };
        let refusal = Refusal { level, dimension, limit, in_use, asked };
        assert_eq!(data(&peer, 100).expect_err("full"), Refused::Saturated(refusal));
    }
}

#[test]
fn an_ask_larger_than_a_whole_limit_is_refused_at_once_as_too_large_also_in_wait_mode() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 9, bytes: 500 }, ..limits(9, 1_000) });
    let peer = tree.peer();
    let _held = data(&peer, 400).expect("an empty budget");
    let refusal = Refusal { level: Level::Client, dimension: BYTES, limit: 500, in_use: 400, asked: 501 };
    assert_eq!(data(&peer, 501).expect_err("never fits"), Refused::TooLarge(refusal));
    let mut waiter = Waiting::new(&peer, Class::Data, 501);
    assert_eq!(waiter.result().expect_err("never fits"), AcquireError::TooLarge(refusal));
    let mut patient = Waiting::new(&peer, Class::Data, 500);
    assert!(patient.is_pending(), "an ask of a whole limit may wait");
}

#[test]
fn one_saturated_peer_leaves_the_others_theirs() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 4, bytes: 400 }, ..limits(2, 200) });
    let (silent, healthy) = (tree.peer(), tree.peer());
    let _held = [data(&silent, 1).expect("its share"), data(&silent, 1).expect("its share")];
    let mut waiters: Vec<_> = (0..10).map(|_| Waiting::new(&silent, Class::Data, 1)).collect();
    assert!(waiters.iter_mut().all(Waiting::is_pending));
    let _share = [data(&healthy, 100).expect("its share"), data(&healthy, 100).expect("its share")];
}

#[test]
fn control_goes_through_under_saturation_and_keeps_to_its_own_limit() {
    let tree = BudgetTree::new(Limits { control: Limit { requests: 1, bytes: 64 }, ..limits(1, 100) });
    let peer = tree.peer();
    let held = data(&peer, 100).expect("an empty budget");
    let heartbeat = take(&peer, Class::Control, 64).expect("a limit of its own");
    let refusal = saturated(take(&peer, Class::Control, 1));
    assert_eq!((refusal.level, refusal.limit), (Level::Class(Class::Control), 1));
    assert_eq!(tree.used(), Used { requests: 1, bytes: 100 }, "control is not charged to the client");
    drop((held, heartbeat));
    assert_idle(&tree, &peer);
}

#[test]
fn a_split_permit_gives_back_its_bytes_and_the_rest_gives_back_the_count() {
    let tree = BudgetTree::new(limits(1, 100));
    let peer = tree.peer();
    let mut request = data(&peer, 100).expect("an empty budget");
    let frame = request.split_bytes(80);
    drop(frame);
    assert_eq!(tree.used(), Used { requests: 1, bytes: 20 });
    let all = request.split_bytes(u64::MAX);
    drop(request);
    assert_eq!(tree.used(), Used { requests: 0, bytes: 20 });
    drop(all);
    assert_idle(&tree, &peer);
}

#[test]
fn retained_bytes_are_charged_at_the_client_alone() {
    let tree = BudgetTree::new(Limits { client: Limit { requests: 1, bytes: 100 }, ..limits(1, 50) });
    let peer = tree.peer();
    let kept = tree.retain(80).expect("an empty budget");
    let refusal = tree.retain(21).expect_err("20 are left");
    assert_eq!((refusal.level, refusal.dimension, refusal.in_use), (Level::Client, BYTES, 80));
    assert!(usage(&peer).is_idle());
    let mut waiter = Waiting::new(&peer, Class::Data, 50);
    assert!(waiter.is_pending());
    drop(kept);
    assert!(waiter.was_woken());
    drop(waiter.result().expect("room again"));
    assert_idle(&tree, &peer);
}

#[test]
fn a_peer_keeps_its_place_until_its_last_permit_is_given_back() {
    let tree = BudgetTree::new(limits(1, 100));
    let gone = tree.peer();
    let mut permit = data(&gone, 100).expect("an empty budget");
    let (nothing, peers) = (permit.split_bytes(0), || tree.shared.ledger.lock().peer_count());
    drop(gone);
    assert_eq!(peers(), 1);
    drop(permit);
    assert_eq!(peers(), 0);
    let next = tree.peer();
    let _held = data(&next, 100).expect("a new peer starts empty");
    drop(nothing);
    assert_eq!(usage(&next).data, Used { requests: 1, bytes: 100 });
}

/// A wait, and how often it was woken.
pub(super) struct Waiting<'a> {
    acquire: Acquire<'a>,
    wakes: Arc<Wakes>,
    seen: usize,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl<'a> Waiting<'a> {
    pub(super) fn new(peer: &'a PeerBudget, class: Class, bytes: u64) -> Self {
        Self::until(peer, class, bytes, RequestDeadline::never())
    }

    pub(super) fn until(peer: &'a PeerBudget, class: Class, bytes: u64, deadline: RequestDeadline) -> Self {
        Self { acquire: peer.acquire(class, ask(bytes), deadline), wakes: Arc::default(), seen: 0 }
    }

    pub(super) fn poll(&mut self, now: Instant) -> Poll<Result<Permit, AcquireError>> {
        self.seen = self.wakes.0.load(SeqCst);
        let waker = Arc::clone(&self.wakes).into();
        self.acquire.poll_acquire(&Context::from_waker(&waker), now)
    }

    pub(super) fn is_pending(&mut self) -> bool {
        self.poll(Instant::now()).is_pending()
    }

    pub(super) fn result(&mut self) -> Result<Permit, AcquireError> {
        match self.poll(Instant::now()) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("not its turn"),
        }
    }

    /// Whether it was woken since it was last polled.
    pub(super) fn was_woken(&self) -> bool {
        self.wakes.0.load(SeqCst) > self.seen
    }
}

/// The same limit at every level, except that a client has room for two peers.
pub(super) const fn limits(requests: u64, bytes: u64) -> Limits {
    let limit = Limit { requests, bytes };
    let client = Limit { requests: 2 * requests, bytes: 2 * bytes };
    Limits { client, peer: limit, control: limit, data: limit, long_poll: limit }
}

pub(super) const fn ask(bytes: u64) -> Ask {
    Ask { requests: 1, bytes }
}

pub(super) fn take(peer: &PeerBudget, class: Class, bytes: u64) -> Result<Permit, Refused> {
    peer.try_acquire(class, ask(bytes), Instant::now())
}

pub(super) fn data(peer: &PeerBudget, bytes: u64) -> Result<Permit, Refused> {
    take(peer, Class::Data, bytes)
}

pub(super) fn saturated(result: Result<Permit, Refused>) -> Refusal {
    match result {
        Err(Refused::Saturated(refusal)) => refusal,
        other => panic!("not a refusal for want of room: {other:?}"),
    }
}

pub(super) fn usage(peer: &PeerBudget) -> PeerUsage {
    peer.usage("peer:1".parse().expect("an address"))
}

pub(super) fn assert_idle(tree: &BudgetTree, peer: &PeerBudget) {
    assert!(tree.used().is_idle(), "{:?}", tree.used());
    assert!(usage(peer).is_idle(), "{:?}", usage(peer));
    assert_eq!(tree.shared.ledger.lock().waiter_count(), 0);
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
const BYTES: Dimension = Dimension::Bytes;
