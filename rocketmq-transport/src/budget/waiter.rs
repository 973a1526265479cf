//! Who waits for room in a leaf, in order.

use std::task::Waker;

use super::{Ask, ledger::Leaf, slab::Slab};
use crate::RequestDeadline;

/// One entry of a leaf's queue. It holds nothing of the budget.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) leaf: Leaf,
    pub(super) ask: Ask,
    pub(super) deadline: RequestDeadline,
    pub(super) turn: Turn,
    before: Option<u32>,
    behind: Option<u32>,
}

/// ```text
/// joins ─▶ Woken ──polled, no room or not in front──▶ Waiting
///          │ │ ▲                                      │   │
///   takes ◀┘ │ └───────────── room, in front ─────────┘   │
///            └── deadline ──▶ Expired ◀────── deadline ───┘
/// ```
#[derive(Debug)]
pub(super) enum Turn {
    /// Its future sleeps and is to be woken through this.
    Waiting(Waker),
    /// Its future is about to be polled; until then it answers for one wake-up.
    Woken,
    /// Out of its queue, since its deadline has passed; its future has yet to see it.
    Expired,
}

impl Waiter {
    pub(super) const fn new(leaf: Leaf, ask: Ask, deadline: RequestDeadline) -> Self {
        Self { leaf, ask, deadline, turn: Turn::Woken, before: None, behind: None }
    }
}

/// The queue of one leaf: a list through the waiters, left from any place in O(1).
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) front: Option<u32>,
    back: Option<u32>,
    /// The sum of what its waiters ask for.
    pub(super) asked: Ask,
}

impl Queue {
    pub(super) fn join(&mut self, waiters: &mut Slab<Waiter>, mut waiter: Waiter) -> u32 {
        waiter.before = self.back;
        self.asked = self.asked.saturating_add(waiter.ask);
        let index = waiters.insert(waiter);
        match self.back.replace(index) {
            Some(before) => waiters.at_mut(before).behind = Some(index),
            None => self.front = Some(index),
        }
        index
    }

    pub(super) fn leave(&mut self, waiters: &mut Slab<Waiter>, index: u32) {
        let Waiter { ask, before, behind, .. } = *waiters.at(index);
        self.asked = self.asked.saturating_sub(ask);
        match before {
            Some(before) => waiters.at_mut(before).behind = behind,
            None => self.front = behind,
        }
        match behind {
            Some(behind) => waiters.at_mut(behind).before = before,
            None => self.back = before,
        }
    }
}
