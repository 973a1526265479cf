//! Admission: what may be in flight, in requests and in retained bytes, at client, peer and class.
//!
//! The budgets form a tree, client → peer → class, behind one lock, so that a claim takes from all of its levels
//! or from none and nobody ever sees another's roll-back.
//!
//! Data requests and long polls are charged at all three levels. Control requests are charged at their class
//! alone: their limit stands beside the others, so that heartbeats go out while data has used up everything.
//!
//! A caller is refused at once, or waits in turn: first come, first served within a class at a peer, and in
//! rotation between these leaves. A waiter holds nothing until it is polled and takes. A newcomer is admitted
//! only where it fits beside everything that already waits in its leaf, so nobody is made to wait by one who
//! came later. A waiter whose deadline has passed loses its turn as soon as anybody tells the budget a time after
//! it; the budget reads no clock of its own.

mod acquire;
mod gauge;
mod ledger;
mod slab;
mod waiter;

use std::{fmt, mem, task::Waker};

use tokio::time::Instant;

pub(crate) use self::acquire::{Acquire, AcquireError};
use self::{
    ledger::{Leaf, Ledger, Seat},
    waiter::Turn,
};
use crate::{
    Peer, PeerUsage, RequestDeadline, Used,
    sync::{Arc, Mutex},
};

/// An admission limit in both dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Requests at the same time.
    pub requests: u64,
    /// Bytes retained at the same time: bodies, a bound of the encoded header, and a fixed overhead each.
    pub bytes: u64,
}

/// What kind of work a request is; each kind has its own budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Class {
    /// Heartbeats, unregistering, ends of transactions: written before data.
    Control,
    /// Everything else.
    #[default]
    Data,
    /// Requests that the peer holds back on purpose; written among data.
    LongPoll,
}

/// The level of an admission limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// All peers together.
    Client,
    /// One peer.
    Peer,
    /// One class at one peer.
    Class(Class),
}

/// The dimension of an admission limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// Requests at the same time.
    Requests,
    /// Retained bytes.
    Bytes,
}

/// An admission refusal: which limit, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{level} is saturated in {dimension}: limit {limit}, in use {in_use}, asked {asked}")]
pub struct Refusal {
    /// The level that is full.
    pub level: Level,
    /// The dimension it is full in.
    pub dimension: Dimension,
    /// Its limit.
    pub limit: u64,
    /// What is in use of it.
    pub in_use: u64,
    /// What was asked for, together with what already waits ahead of it for the same class at the same peer.
    pub asked: u64,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control",
            Self::Data => "data",
            Self::LongPoll => "long poll",
        })
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client => f.write_str("client"),
            Self::Peer => f.write_str("peer"),
            Self::Class(class) => write!(f, "class {class}"),
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
        })
    }
}

/// A claim on all levels of the budget, given back exactly once, by its drop.
#[must_use]
pub struct Permit {
    shared: Arc<Shared>,
    seat: Seat,
    claim: Ask,
}

impl Permit {
    /// Moves `bytes` of this claim, or all of its bytes where it has fewer, into a permit of their own.
    #[inline]
    pub(crate) fn split_bytes(&mut self, bytes: u64) -> Self {
        let bytes = bytes.min(self.claim.bytes);
        self.claim.bytes -= bytes;
        Self { shared: Arc::clone(&self.shared), seat: self.seat, claim: Ask { requests: 0, bytes } }
    }

    /// Takes over what `other` claims, if both claim the same of the same tree; else `other` comes back.
    #[inline]
    fn merge(&mut self, mut other: Self) -> Result<(), Self> {
        if self.seat != other.seat || !Arc::ptr_eq(&self.shared, &other.shared) {
            return Err(other);
        }
        self.claim = self.claim.saturating_add(mem::take(&mut other.claim));
        Ok(())
    }
}

/// Permits that go back together, since each give-back takes the lock of the tree.
#[derive(Debug, Default)]
pub(crate) struct Returning(Option<Permit>);

impl Returning {
    /// Adds `permit`, and gives back at once what cannot go back together with it.
    #[inline]
    pub(crate) fn add(&mut self, permit: Permit) {
        match &mut self.0 {
            Some(returning) => {
                if let Err(other) = returning.merge(permit) {
                    *returning = other;
                }
            }
            nothing => *nothing = Some(permit),
        }
    }

    /// Gives back what was added.
    pub(crate) fn give_back(&mut self) {
        self.0 = None;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // A peer may be forgotten while nothing is in use of it, and so may the place of a claim on nothing.
        if self.claim != Ask::default() {
            let Self { shared, seat, claim } = self;
            shared.update(Deferred::default(), |ledger, deferred| ledger.give_back(*seat, *claim, deferred));
        }
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("seat", &self.seat).field("claim", &self.claim).finish()
    }
}

/// The limits of a tree; those below the client are the same at every peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) client: Limit,
    pub(crate) peer: Limit,
    pub(crate) control: Limit,
    pub(crate) data: Limit,
    pub(crate) long_poll: Limit,
}

/// What a request wants of every level it is charged at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
}

impl Ask {
    const fn saturating_add(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    const fn saturating_sub(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// Why an ask was refused at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The first limit without room, in the order class, peer, client, and requests before bytes.
    Saturated(Refusal),
    /// The first whole limit, in the same order, that the ask alone exceeds.
    TooLarge(Refusal),
}

/// The budgets of a client and its peers. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct BudgetTree {
    shared: Arc<Shared>,
}

impl BudgetTree {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { shared: Arc::new(Shared { ledger: Mutex::new(Ledger::new(limits)) }) }
    }

    /// Adds a peer. Its place is free again when the handle is gone and nothing is in use of it.
    pub(crate) fn peer(&self) -> PeerBudget {
        let peer = self.shared.ledger.lock().add_peer();
        PeerBudget { shared: Arc::clone(&self.shared), peer }
    }

    /// A permit for bytes kept outside of a request, at the client level alone.
    pub(crate) fn retain(&self, bytes: u64) -> Result<Permit, Refusal> {
        self.shared.ledger.lock().try_take_bytes(bytes)?;
        let claim = Ask { requests: 0, bytes };
        Ok(Permit { shared: Arc::clone(&self.shared), seat: Seat::Client, claim })
    }

    /// What is in use at the client level.
    pub(crate) fn used(&self) -> Used {
        self.shared.ledger.lock().client_used()
    }
}

/// The budgets of one peer.
#[derive(Debug)]
pub(crate) struct PeerBudget {
    shared: Arc<Shared>,
    peer: u32,
}

impl PeerBudget {
    /// Takes `ask` at once or is refused.
    #[inline]
    pub(crate) fn try_acquire(&self, class: Class, ask: Ask, now: Instant) -> Result<Permit, Refused> {
        let leaf = self.leaf(class);
        if self.shared.ledger.lock().take_unless_waited_for(leaf, ask) {
            return Ok(self.permit(class, ask));
        }
        self.shared
            .update(Deferred::default(), |ledger, deferred| ledger.try_take(leaf, ask, now, deferred))
            .map(|()| self.permit(class, ask))
    }

    /// Waits in turn for `ask`, until `deadline`.
    pub(crate) const fn acquire(&self, class: Class, ask: Ask, deadline: RequestDeadline) -> Acquire<'_> {
        Acquire::new(self, class, ask, deadline)
    }

    /// What is in use here, under the name `peer`; the counts of its connections are left at zero.
    pub(crate) fn usage(&self, peer: Peer) -> PeerUsage {
        let (used, [control, data, long_poll]) = self.shared.ledger.lock().peer_used(self.peer);
        PeerUsage {
            peer,
            used,
            control,
            data,
            long_poll,
            pending: 0,
            queued: 0,
            tombstones: 0,
            peer_requests: 0,
            late: 0,
            unsolicited: 0,
        }
    }

    #[inline]
    const fn leaf(&self, class: Class) -> Leaf {
        Leaf { peer: self.peer, class }
    }

    /// The permit for what has just been taken.
    #[inline]
    fn permit(&self, class: Class, claim: Ask) -> Permit {
        Permit { shared: Arc::clone(&self.shared), seat: Seat::Leaf(self.leaf(class)), claim }
    }
}

impl Drop for PeerBudget {
    fn drop(&mut self) {
        self.shared.ledger.lock().drop_peer(self.peer);
    }
}

#[derive(Debug)]
struct Shared {
    ledger: Mutex<Ledger>,
}

impl Shared {
    /// Changes the ledger under its lock, and does what was deferred once the lock is free.
    fn update<T>(&self, mut deferred: Deferred, change: impl FnOnce(&mut Ledger, &mut Deferred) -> T) -> T {
        let result = change(&mut self.ledger.lock(), &mut deferred);
        deferred.woken.into_iter().for_each(Waker::wake);
        result
    }
}

/// Wakers, which are foreign code: they are called and dropped when the lock is free.
#[derive(Debug, Default)]
struct Deferred {
    woken: Vec<Waker>,
    /// The waker of a waiter that has left or been polled again: one change lets go of one at most.
    discarded: Option<Waker>,
    /// The waker of the waiter that is polled, until it is put into its entry.
    sleeper: Option<Waker>,
}

impl Deferred {
    fn with_sleeper(waker: Waker) -> Self {
        Self { sleeper: Some(waker), ..Self::default() }
    }

    fn wake(&mut self, turn: Turn) {
        if let Turn::Waiting(waker) = turn {
            self.woken.push(waker);
        }
    }

    fn discard(&mut self, turn: Turn) {
        if let Turn::Waiting(waker) = turn {
            self.discarded = Some(waker);
        }
    }
}

#[cfg(all(test, rocketmq_loom))]
mod loom_tests;
#[cfg(all(test, not(rocketmq_loom)))]
mod model_tests;
#[cfg(all(test, not(rocketmq_loom)))]
mod tests;
#[cfg(all(test, not(rocketmq_loom)))]
mod waiting_tests;
