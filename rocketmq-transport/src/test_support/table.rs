//! The pending-request table on its own, without sockets.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use tokio::time::Instant;

use super::encoded_success;
use crate::{
    Class, Code, Command, Completion, FrameLimits, Opaque, Peer, PendingRequestOwner, PendingRequestTable,
    Permit, RequestDeadline, RetireReason, Stage, StageClock, TransportConfig,
    budget::{Ask, BudgetTree, PeerBudget},
    decode_frame,
    link::Link,
    request::{Accepted, End, Frame, Kind, Offer, Outcome, RequestRecord, Terms},
};

/// A pending-request table as a transport has one, without the connections.
///
/// With it a test can hand a response to any owner, also to one of another table, which no
/// [`Transport`](crate::Transport) ever does.
#[derive(Debug)]
pub struct PendingTable {
    pending: Arc<PendingRequestTable>,
    config: TransportConfig,
    budget: PeerBudget,
}

/// What the table made of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It ended a request that waited for it.
    Completed,
    /// Its request had ended this long ago.
    Late(Duration),
    /// Nobody waits for it, and no tombstone remembers it.
    Unsolicited {
        /// Whether the generation ever used the opaque.
        ever_used: bool,
    },
    /// The table never issued the owner.
    ForeignOwner,
}

impl PendingTable {
    /// An empty table under the limits of `config`.
    #[must_use]
    pub fn new(config: TransportConfig) -> Self {
        let budget = BudgetTree::new(config.limits()).peer();
        Self { pending: Arc::new(PendingRequestTable::new()), config, budget }
    }

    /// A new generation, whose first request has `first_opaque`.
    #[must_use]
    pub fn open(&self, first_opaque: i32) -> Generation<'_> {
        let config = Arc::new(TransportConfig { first_opaque, ..self.config.clone() });
        let link =
            Link::new(config, Arc::clone(&self.pending), Arc::default(), Arc::default(), Instant::now());
        Generation { link, budget: &self.budget }
    }

    /// Claims room for one data request of so many bytes; `None` where there is not as much.
    #[must_use]
    pub fn admit(&self, bytes: u64) -> Option<Permit> {
        self.budget.try_acquire(Class::Data, Ask { requests: 1, bytes }, Instant::now()).ok()
    }

    /// Hands a response to the request that `owner` has under `opaque`.
    #[must_use]
    pub fn complete(&self, owner: PendingRequestOwner, opaque: Opaque) -> Verdict {
        let mut frame = BytesMut::from(&encoded_success(opaque)[..]);
        let response = decode_frame(&mut frame, &FrameLimits::default());
        self.complete_with(owner, response.ok().flatten().expect("what was encoded is a whole frame"))
    }

    /// Hands `response` to the request that `owner` has under its opaque.
    #[must_use]
    pub fn complete_with(&self, owner: PendingRequestOwner, response: Command) -> Verdict {
        let pending = self.pending.of(owner);
        match pending.map_or_else(|nothing| nothing, |table| table.complete_one(response, Instant::now())) {
            Completion::Completed { .. } => Verdict::Completed,
            Completion::Late { by } => Verdict::Late(by),
            Completion::Unsolicited { ever_used } => Verdict::Unsolicited { ever_used },
            Completion::ForeignOwner => Verdict::ForeignOwner,
        }
    }

    /// Whether nothing is in use of the budget that its requests are charged to.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let peer = Peer::from(std::net::SocketAddr::from(([127, 0, 0, 1], 1)));
        self.budget.usage(peer).is_idle()
    }
}

/// One generation of a [`PendingTable`].
#[derive(Debug)]
pub struct Generation<'a> {
    link: Link,
    budget: &'a PeerBudget,
}

impl<'a> Generation<'a> {
    /// Its owner half of the key.
    #[must_use]
    pub fn owner(&self) -> PendingRequestOwner {
        self.link.owner()
    }

    /// Registers a request under the next opaque, which counts as written at once; `None` where the generation
    /// takes no more.
    #[must_use]
    pub fn register(&'a self, deadline: RequestDeadline) -> Option<PendingRequest<'a>> {
        let now = Instant::now();
        let record = self.enter(deadline, now)?;
        if let Offer::Frame(frame) = record.offer(now) {
            drop(frame);
            record.settle(Accepted::All, now);
        }
        Some(PendingRequest { record, link: &self.link })
    }

    /// Registers a request under the next opaque and queues its frame, which nobody writes; `None` where the generation
    /// takes no more.
    #[must_use]
    pub fn queue(&'a self, deadline: RequestDeadline) -> Option<PendingRequest<'a>> {
        let record = self.enter(deadline, Instant::now())?;
        self.link.lanes.push(&record).ok()?;
        Some(PendingRequest { record, link: &self.link })
    }

    /// Takes no more requests from now on.
    pub fn retire(&self) {
        self.link.retire(RetireReason::Silence, Instant::now());
    }

    /// Admits a request and enters it into the table.
    fn enter(&self, deadline: RequestDeadline, now: Instant) -> Option<Arc<RequestRecord>> {
        let opaque = self.link.table.issue_opaque()?;
        let terms = Terms {
            code: Code(0),
            bytes: 0,
            class: Class::Data,
            kind: Kind::Call,
            deadline,
            start_by: None,
            suspend: Duration::ZERO,
        };
        let ask = Ask { requests: 1, bytes: 1 };
        let mut permit = self.budget.try_acquire(Class::Data, ask, now).ok()?;
        let frame = Frame { head: Vec::new(), body: Bytes::new(), bytes: permit.split_bytes(1) };
        let clock = StageClock::start(Stage::BeforeWrite, now);
        let record = Arc::new(RequestRecord::new(opaque, terms, (frame, permit), clock, Waker::noop()));
        self.link.register(&record, now).ok()?;
        Some(record)
    }
}

/// One request of a [`Generation`].
#[derive(Debug)]
pub struct PendingRequest<'a> {
    record: Arc<RequestRecord>,
    link: &'a Link,
}

impl PendingRequest<'_> {
    /// Its correlation number.
    #[must_use]
    pub fn opaque(&self) -> Opaque {
        self.record.opaque
    }

    /// Lets its deadline come now.
    pub fn expire(&self) {
        self.link.end(&self.record, End::Deadline, Instant::now());
    }

    /// How it ended, once: with its response, or in this stage; `None` while it has not.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<Command, Stage>> {
        match self.record.poll_outcome(&Context::from_waker(Waker::noop())) {
            Poll::Ready((Outcome::Answered(response), _)) => Some(Ok(response)),
            Poll::Ready((Outcome::Failed { stage, .. }, _)) => Some(Err(stage)),
            Poll::Ready((Outcome::Written, _)) | Poll::Pending => None,
        }
    }
}
