//! What is behind the budget's one lock: the gauges of the tree and the queues at its leaves.
//!
//! No wake-up is lost, since two things hold whenever the lock is free:
//!
//! - A leaf whose front waiter sleeps is in `rotation` unless its class or its peer has no room for that
//!   waiter. Only a give-back at that peer, or another front, changes this, and both [`enlist`](Ledger::enlist).
//! - While the front of some leaf would fit, some front is `Woken`. It takes and wakes the next, or finds no
//!   room, expires or is dropped, and wakes the next: each goes through [`pass_on`](Ledger::pass_on).

use std::{collections::VecDeque, mem, task::Poll};

use tokio::time::Instant;

use super::{
    Ask, Class, Deferred, Dimension, Level, Limits, Refusal, Refused,
    gauge::Gauge,
    slab::Slab,
    waiter::{Queue, Turn, Waiter},
};
use crate::{RequestDeadline, Used};

/// One class at one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) peer: u32,
    pub(super) class: Class,
}

/// Where a claim is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seat {
    /// At the client level alone.
    Client,
    /// At a class and, unless that is control, at its peer and the client too.
    Leaf(Leaf),
}

#[derive(Debug)]
pub(super) struct Ledger {
    limits: Limits,
    client: Gauge,
    peers: Slab<PeerNode>,
    waiters: Slab<Waiter>,
    /// Leaves whose front nothing below the client level kept from taking when last looked at.
    rotation: VecDeque<Leaf>,
    /// The latest instant that a caller has told.
    latest: Option<Instant>,
}

#[derive(Debug)]
struct PeerNode {
    held: bool,
    gauge: Gauge,
    leaves: [LeafNode; 3],
    /// Which of its leaves is enlisted first; one that was woken goes last.
    order: [Class; 3],
}

#[derive(Debug)]
struct LeafNode {
    gauge: Gauge,
    queue: Queue,
    enlisted: bool,
}

impl Ledger {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            client: Gauge::new(limits.client),
            peers: Slab::new(),
            waiters: Slab::new(),
            rotation: VecDeque::new(),
            latest: None,
        }
    }

    pub(super) fn add_peer(&mut self) -> u32 {
        let leaf = |limit| LeafNode { gauge: Gauge::new(limit), queue: Queue::default(), enlisted: false };
        let Limits { peer, control, data, long_poll, .. } = self.limits;
        let leaves = [leaf(control), leaf(data), leaf(long_poll)];
        self.peers.insert(PeerNode { held: true, gauge: Gauge::new(peer), leaves, order: CLASSES })
    }

    pub(super) fn drop_peer(&mut self, peer: u32) {
        self.peers.at_mut(peer).held = false;
        self.forget_if_idle(peer);
    }

    pub(super) fn try_take_bytes(&mut self, bytes: u64) -> Result<(), Refusal> {
        let ask = Ask { requests: 0, bytes };
        self.client.saturated(Level::Client, ask).map_or(Ok(()), Err)?;
        self.client.take(ask);
        Ok(())
    }

    /// Takes `ask` where nobody waits and there is room: what most requests find, for less than [`try_take`](Self::try_take).
    #[inline]
    pub(super) fn take_unless_waited_for(&mut self, leaf: Leaf, ask: Ask) -> bool {
        let free = self.waiters.is_empty() && self.fits(leaf, ask);
        if free {
            self.take(leaf, ask);
        }
        free
    }

    pub(super) fn try_take(
        &mut self,
        leaf: Leaf,
        ask: Ask,
        now: Instant,
        deferred: &mut Deferred,
    ) -> Result<(), Refused> {
        self.latest = self.latest.max(Some(now));
        let expired = self.expire_fronts(leaf, deferred);
        let taken = match self.saturated_for_newcomer(leaf, ask) {
            None => {
                self.take(leaf, ask);
                Ok(())
            }
            Some(refusal) => {
                Err(self.too_large(leaf, ask).map_or(Refused::Saturated(refusal), Refused::TooLarge))
            }
        };
        if expired {
            self.pass_on(leaf, deferred);
        }
        taken
    }

    pub(super) fn give_back(&mut self, seat: Seat, ask: Ask, deferred: &mut Deferred) {
        self.each_gauge(seat, |gauge| gauge.give_back(ask));
        if !self.waiters.is_empty() {
            self.offer_room(seat, deferred);
        }
        if let Seat::Leaf(Leaf { peer, .. }) = seat {
            self.forget_if_idle(peer);
        }
    }

    /// Puts a waiter at the end of its leaf's queue; the caller polls it under the same lock.
    pub(super) fn join(&mut self, leaf: Leaf, ask: Ask, deadline: RequestDeadline) -> u32 {
        let (queue, waiters) = self.queue_mut(leaf);
        queue.join(waiters, Waiter::new(leaf, ask, deadline))
    }

    /// Ready once the waiter has left: true when it took, false when its deadline has passed.
    pub(super) fn poll(&mut self, index: u32, now: Instant, deferred: &mut Deferred) -> Poll<bool> {
        self.latest = self.latest.max(Some(now));
        let Waiter { leaf, ask, deadline, .. } = *self.waiters.at(index);
        self.expire_fronts(leaf, deferred);
        if self.is_expired(deadline) {
            self.leave(index, deferred);
            return Poll::Ready(false);
        }
        if self.leaf(leaf).queue.front == Some(index) && self.saturated(leaf, ask).is_none() {
            self.take(leaf, ask);
            self.leave(index, deferred);
            return Poll::Ready(true);
        }
        let waiter = self.waiters.at_mut(index);
        if let Some(waker) = deferred.sleeper.take() {
            deferred.discard(mem::replace(&mut waiter.turn, Turn::Waiting(waker)));
        }
        self.pass_on(leaf, deferred);
        Poll::Pending
    }

    /// Takes a waiter out, whether it took, expired or was dropped.
    pub(super) fn leave(&mut self, index: u32, deferred: &mut Deferred) {
        let leaf = self.waiters.at(index).leaf;
        if !matches!(self.waiters.at(index).turn, Turn::Expired) {
            let (queue, waiters) = self.queue_mut(leaf);
            queue.leave(waiters, index);
        }
        deferred.discard(self.waiters.remove(index).turn);
        self.pass_on(leaf, deferred);
    }

    pub(super) const fn client_used(&self) -> Used {
        self.client.used()
    }

    /// What is in use at the peer, then at its classes.
    pub(super) fn peer_used(&self, peer: u32) -> (Used, [Used; 3]) {
        let node = self.peers.at(peer);
        (node.gauge.used(), node.leaves.each_ref().map(|leaf| leaf.gauge.used()))
    }

    #[cfg(test)]
    pub(super) const fn peer_count(&self) -> usize {
        self.peers.len()
    }

    #[cfg(test)]
    pub(super) const fn waiter_count(&self) -> usize {
        self.waiters.len()
    }

    /// There is more room at `seat`: whoever waits for it may be woken.
    fn offer_room(&mut self, seat: Seat, deferred: &mut Deferred) {
        if let Seat::Leaf(Leaf { peer, .. }) = seat {
            for class in self.peers.at(peer).order {
                self.enlist(Leaf { peer, class }, deferred);
            }
        }
        self.wake_next(deferred);
    }

    /// Sees to it that a wake-up which the front of `leaf` may have held is not lost with it.
    fn pass_on(&mut self, leaf: Leaf, deferred: &mut Deferred) {
        self.enlist(leaf, deferred);
        self.wake_next(deferred);
    }

    /// Puts `leaf` into the rotation where its front sleeps and has room below the client level.
    fn enlist(&mut self, leaf: Leaf, deferred: &mut Deferred) {
        self.expire_fronts(leaf, deferred);
        let node = self.leaf(leaf);
        let (Some(front), false) = (node.queue.front, node.enlisted) else { return };
        let Waiter { ask, turn: Turn::Waiting(_), .. } = self.waiters.at(front) else { return };
        if let None | Some(Refusal { level: Level::Client, .. }) = self.saturated(leaf, *ask) {
            self.leaf_mut(leaf).enlisted = true;
            self.rotation.push_back(leaf);
        }
    }

    /// Wakes the first front that fits, in rotation.
    fn wake_next(&mut self, deferred: &mut Deferred) {
        for _ in 0..self.rotation.len() {
            let Some(leaf) = self.rotation.pop_front() else { return };
            self.leaf_mut(leaf).enlisted = false;
            self.expire_fronts(leaf, deferred);
            let Some(front) = self.leaf(leaf).queue.front else { continue };
            match self.saturated(leaf, self.waiters.at(front).ask) {
                None => return self.wake(leaf, front, deferred),
                Some(Refusal { level: Level::Client, .. }) => {
                    self.leaf_mut(leaf).enlisted = true;
                    self.rotation.push_back(leaf);
                }
                Some(_) => {}
            }
        }
    }

    fn wake(&mut self, leaf: Leaf, front: u32, deferred: &mut Deferred) {
        deferred.wake(mem::replace(&mut self.waiters.at_mut(front).turn, Turn::Woken));
        let order = &mut self.peers.at_mut(leaf.peer).order;
        if let Some(place) = order.iter().position(|class| *class == leaf.class) {
            order[place..].rotate_left(1);
        }
    }

    /// Takes waiters whose deadline has passed from the front of `leaf`. Whoever calls this passes on the
    /// wake-up that one of them may have held.
    fn expire_fronts(&mut self, leaf: Leaf, deferred: &mut Deferred) -> bool {
        let mut any = false;
        while let Some(front) = self.leaf(leaf).queue.front
            && self.is_expired(self.waiters.at(front).deadline)
        {
            let (queue, waiters) = self.queue_mut(leaf);
            queue.leave(waiters, front);
            deferred.wake(mem::replace(&mut waiters.at_mut(front).turn, Turn::Expired));
            any = true;
        }
        any
    }

    fn is_expired(&self, deadline: RequestDeadline) -> bool {
        self.latest.is_some_and(|latest| deadline.is_expired(latest))
    }

    /// Why a newcomer does not fit beside all that waits in its leaf already.
    fn saturated_for_newcomer(&self, leaf: Leaf, ask: Ask) -> Option<Refusal> {
        let queue = &self.leaf(leaf).queue;
        let Some(front) = queue.front else { return self.saturated(leaf, ask) };
        let with_those_ahead = queue.asked.saturating_add(ask);
        let Some(refusal) = self.saturated(leaf, self.waiters.at(front).ask) else {
            return self.saturated(leaf, with_those_ahead);
        };
        let asked = match refusal.dimension {
            Dimension::Requests => with_those_ahead.requests,
            Dimension::Bytes => with_those_ahead.bytes,
        };
        Some(Refusal { asked, ..refusal })
    }

    /// Whether nothing of [`path`](Self::path) is saturated.
    #[inline]
    fn fits(&self, leaf: Leaf, ask: Ask) -> bool {
        let node = self.peers.at(leaf.peer);
        let shared = || node.gauge.fits(ask) && self.client.fits(ask);
        node.leaves[leaf.class as usize].gauge.fits(ask) && (leaf.class == Class::Control || shared())
    }

    fn saturated(&self, leaf: Leaf, ask: Ask) -> Option<Refusal> {
        self.path(leaf).find_map(|(level, gauge)| gauge.saturated(level, ask))
    }

    fn too_large(&self, leaf: Leaf, ask: Ask) -> Option<Refusal> {
        self.path(leaf).find_map(|(level, gauge)| gauge.too_large(level, ask))
    }

    #[inline]
    fn take(&mut self, leaf: Leaf, ask: Ask) {
        self.each_gauge(Seat::Leaf(leaf), |gauge| gauge.take(ask));
    }

    /// The gauges that a request of `leaf` is charged to, in the order in which they refuse.
    fn path(&self, leaf: Leaf) -> impl Iterator<Item = (Level, &Gauge)> {
        let shared = (leaf.class != Class::Control)
            .then(|| [(Level::Peer, &self.peers.at(leaf.peer).gauge), (Level::Client, &self.client)]);
        [(Level::Class(leaf.class), &self.leaf(leaf).gauge)].into_iter().chain(shared.into_iter().flatten())
    }

    #[inline]
    fn each_gauge(&mut self, seat: Seat, change: impl Fn(&mut Gauge)) {
        let Seat::Leaf(Leaf { peer, class }) = seat else { return change(&mut self.client) };
        let node = self.peers.at_mut(peer);
        change(&mut node.leaves[class as usize].gauge);
        if class != Class::Control {
            change(&mut node.gauge);
            change(&mut self.client);
        }
    }

    fn forget_if_idle(&mut self, peer: u32) {
        let node = self.peers.at(peer);
        let idle = |leaf: &LeafNode| leaf.gauge.used().is_idle() && leaf.queue.front.is_none();
        if !node.held && node.leaves.iter().all(idle) {
            self.peers.remove(peer);
            self.rotation.retain(|leaf| leaf.peer != peer);
        }
    }

    fn leaf(&self, leaf: Leaf) -> &LeafNode {
        &self.peers.at(leaf.peer).leaves[leaf.class as usize]
    }

    fn leaf_mut(&mut self, leaf: Leaf) -> &mut LeafNode {
        &mut self.peers.at_mut(leaf.peer).leaves[leaf.class as usize]
    }

    fn queue_mut(&mut self, leaf: Leaf) -> (&mut Queue, &mut Slab<Waiter>) {
        (&mut self.peers.at_mut(leaf.peer).leaves[leaf.class as usize].queue, &mut self.waiters)
    }
}

/// Every class, at its place among a peer's leaves.
pub(super) const CLASSES: [Class; 3] = [Class::Control, Class::Data, Class::LongPoll];
