//! The lasting link to one peer: a request's way from admission to the end of its record.

mod dial;
mod keeper;

use std::{
    future::poll_fn,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
};

use arc_swap::ArcSwapOption;
use tokio::{
    task::AbortHandle,
    time::{Instant, timeout_at},
};

use self::{
    dial::{Connections, DialInFlight, Found},
    keeper::keep,
};
use crate::{
    Admission, Certainty, CloseCause, InFlight, Peer, PeerUsage, PendingRequestTable, Permit, Request,
    RetireReason, Signing, Stage, Storm, TransportConfig, TransportError, TransportErrorKind, Verdict,
    budget::{AcquireError, Ask, PeerBudget, Refused},
    closed::Closed,
    connect::Connector,
    connection::Connection,
    failure_log::{log_failure, log_folded},
    link::Attention,
    pending::Tally,
    request::OVERHEAD,
    sent::{Rejected, Sent, open_head},
    signer::Signer,
    spare::SpareHeads,
    sync::Mutex,
    trip::{Claim, Trip},
};

/// A peer and the way to it.
#[derive(Debug)]
pub(crate) struct Channel {
    shared: Arc<Shared>,
}

/// What a channel is made with, the same for all peers.
#[derive(Clone, Debug)]
pub(crate) struct Fittings {
    pub(crate) config: Arc<TransportConfig>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) signer: Option<Arc<dyn Signer>>,
    pub(crate) pending: Arc<PendingRequestTable>,
    /// Ends the waits of requests that have no record yet, and refuses new ones.
    pub(crate) closed: Closed,
}

#[derive(Debug)]
struct Shared {
    peer: Peer,
    config: Arc<TransportConfig>,
    connector: Arc<dyn Connector>,
    signer: Option<Arc<dyn Signer>>,
    pending: Arc<PendingRequestTable>,
    budget: PeerBudget,
    connections: Mutex<Connections>,
    /// The one that takes requests, for those that find it without the lock.
    live: ArcSwapOption<Connection>,
    attention: Arc<Attention>,
    spares: Arc<SpareHeads>,
    /// Failures that had no line of their own yet, by stage, certainty and kind: the line that stands for many has to
    /// be true of each.
    failures: Storm<(Stage, Certainty, &'static str), TransportError>,
    /// Started with the first connection, or the first line that was folded.
    keeper: OnceLock<AbortHandle>,
    closed: Closed,
}

impl Channel {
    pub(crate) fn new(peer: Peer, fittings: Fittings, budget: PeerBudget) -> Self {
        let Fittings { config, connector, signer, pending, closed } = fittings;
        let shared = Shared {
            peer,
            config,
            connector,
            signer,
            pending,
            budget,
            connections: Mutex::default(),
            live: ArcSwapOption::empty(),
            attention: Arc::default(),
            spares: Arc::default(),
            failures: Storm::new(),
            keeper: OnceLock::new(),
            closed,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Carries a request to a connection, if that takes no wait; else [`go_on`](Self::go_on) does. Its end will wake
    /// `waker`.
    #[inline]
    pub(crate) fn carry<'a>(
        &self,
        trip: &mut Trip<'a>,
        request: &mut Request<'_>,
        waker: &Waker,
    ) -> Result<Carried<'a>, TransportError> {
        self.shared.carry(trip, request, waker)
    }

    /// Carries a request on that was blocked. Cancel safe: what it has got is given back.
    pub(crate) async fn go_on<'a>(
        &self,
        mut trip: Trip<'a>,
        mut request: Request<'_>,
        mut blocked: Blocked,
    ) -> Result<Sent<'a>, TransportError> {
        loop {
            match blocked {
                Blocked::Admission(ask) => self.shared.wait_for_admission(&mut trip, ask).await?,
                Blocked::Dialing(dial) => self.shared.wait_for_dial(&mut trip, dial).await?,
                Blocked::Signing => self.shared.sign(&mut trip, &request).await?,
            }
            let carry =
                |cx: &mut Context<'_>| Poll::Ready(self.shared.carry(&mut trip, &mut request, cx.waker()));
            match poll_fn(carry).await? {
                Carried::Sent(sent) => return Ok(sent),
                Carried::Blocked(on) => blocked = on,
            }
        }
    }

    /// Writes the line of a request that failed here, or folds it where many do.
    pub(crate) fn log_failure(&self, error: &TransportError) {
        let key = (error.stage(), error.certainty(), error.code_id());
        match self.shared.failures.note(key, error.clone(), Instant::now()) {
            Verdict::Pass(error) => log_failure(&error, self.tally().waiting),
            Verdict::Opened(_) => {
                self.shared.start_keeper();
                self.shared.attention.call();
            }
            Verdict::Folded => {}
        }
    }

    /// Writes the lines of what was folded so far.
    pub(crate) fn flush_log(&self) {
        self.shared.failures.drain().iter().for_each(log_folded);
        Attention::log_strays(self.shared.attention.strays.drain());
    }

    /// What is in flight here, of at most `most` requests.
    pub(crate) fn in_flight(&self, most: usize) -> InFlight {
        let open = self.shared.connections.lock().open.clone();
        let mut seen = InFlight::default();
        for connection in open {
            connection.link.look(&self.shared.peer, most, &mut seen);
        }
        seen
    }

    /// What is in use at this peer.
    pub(crate) fn usage(&self) -> PeerUsage {
        let mut usage = self.shared.budget.usage(self.shared.peer.clone());
        let connections = self.shared.connections.lock();
        let tally = connections.tally();
        usage.pending = tally.waiting;
        usage.tombstones = tally.tombstones;
        usage.peer_requests = tally.peer_requests;
        usage.late = tally.late;
        usage.unsolicited = tally.unsolicited;
        usage.queued = connections.open.iter().map(|connection| connection.link.lanes.len() as u64).sum();
        usage
    }

    /// Retires what is open, once the transport takes no more requests.
    pub(crate) fn retire(&self) {
        let now = Instant::now();
        let mut connections = self.shared.connections.lock();
        connections.end_dial();
        let open = connections.open.clone();
        drop(connections);
        open.iter().for_each(|connection| connection.link.retire(RetireReason::Closed, now));
        self.shared.attention.call();
    }

    /// Waits, once retired, until what is in flight has ended, until `bound` at most, and ends the rest then;
    /// how many that were is the result. Cancel safe.
    pub(crate) async fn drained(&self, bound: Option<Instant>) -> u64 {
        let open = self.shared.connections.lock().open.clone();
        let mut abandoned = 0;
        for connection in open {
            let Some(bound) = bound else {
                connection.ended().await;
                continue;
            };
            if timeout_at(bound, connection.ended()).await.is_err() {
                abandoned += connection.link.table.tally().waiting;
                connection.stop(CloseCause::Closed, None);
                connection.ended().await;
            }
        }
        abandoned
    }

    /// What is pending, and what has ended so far.
    pub(crate) fn tally(&self) -> Tally {
        self.shared.connections.lock().tally()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let mut connections = self.shared.connections.lock();
        connections.end_dial();
        let open = std::mem::take(&mut connections.open);
        drop(connections);
        open.iter().for_each(|connection| connection.stop(CloseCause::Closed, None));
        if let Some(keeper) = self.shared.keeper.get() {
            keeper.abort();
        }
        self.flush_log();
    }
}

/// How far a request was carried without a wait.
pub(crate) enum Carried<'a, B = Blocked> {
    /// To a connection.
    Sent(Sent<'a>),
    /// To what it has to wait for.
    Blocked(B),
}

/// What a request has to wait for.
pub(crate) enum Blocked {
    /// Room in the budget.
    Admission(Ask),
    /// The end of a dial.
    Dialing(DialInFlight),
    /// Its signature, which may come at once.
    Signing,
}

impl Shared {
    /// Goes through the stages up to registration, from where the request is; the path of every request.
    fn carry<'a>(
        self: &Arc<Self>,
        trip: &mut Trip<'a>,
        request: &mut Request<'_>,
        waker: &Waker,
    ) -> Result<Carried<'a>, TransportError> {
        trip.check()?;
        if trip.claim.is_none()
            && let Some(ask) = self.admit(trip, request)?
        {
            return Ok(Carried::Blocked(Blocked::Admission(ask)));
        }
        loop {
            trip.enter(Stage::Connect);
            let connection = match self.connect(trip)? {
                Ok(connection) => connection,
                Err(dial) => return Ok(Carried::Blocked(Blocked::Dialing(dial))),
            };
            trip.enter(Stage::Signing);
            trip.connection = Some(connection);
            if self.signer.is_some() && trip.signature.is_none() {
                return Ok(Carried::Blocked(Blocked::Signing));
            }
            trip.enter(Stage::BeforeWrite);
            match Sent::submit(trip, request, waker) {
                Ok(sent) => return Ok(Carried::Sent(sent)),
                Err(Rejected::Retired) => {}
                Err(Rejected::Expired) => return Err(trip.expired(Instant::now())),
                Err(Rejected::Invalid(error)) => {
                    return Err(trip.fail(TransportErrorKind::InvalidRequest(error)));
                }
            }
        }
    }

    /// Asks all levels of the budget for the request and for the bytes it will retain. What it asks for is
    /// returned where it has to wait for it.
    #[inline]
    fn admit(&self, trip: &mut Trip<'_>, request: &Request<'_>) -> Result<Option<Ask>, TransportError> {
        if self.closed.is_told() {
            return Err(trip.fail(TransportErrorKind::Closed));
        }
        let head = open_head(request, trip, &self.config, &self.spares)
            .map_err(|error| trip.fail(TransportErrorKind::InvalidRequest(error)))?;
        let mut bytes = head.len() + request.body.len();
        match &self.signer {
            // The signature goes into the head, which is written again for that.
            Some(signer) => {
                bytes += signer.max_header_bytes();
                self.spares.give(head.into_memory());
            }
            None => trip.head = Some(head),
        }
        let ask = Ask { requests: 1, bytes: bytes as u64 + OVERHEAD };
        trip.terms.bytes = ask.bytes;
        match (self.budget.try_acquire(trip.terms.class, ask, trip.now), trip.admission) {
            (Ok(permit), _) => {
                trip.claim = Some(claim(permit, ask));
                Ok(None)
            }
            (Err(Refused::Saturated(_)), Admission::Wait) => {
                // Who waits retains nothing that it has no claim to.
                trip.head = None;
                Ok(Some(ask))
            }
            (Err(Refused::Saturated(refusal)), Admission::Refuse) => {
                Err(trip.fail(TransportErrorKind::QueueSaturated(refusal)))
            }
            (Err(Refused::TooLarge(refusal)), _) => Err(trip.fail(TransportErrorKind::TooLarge(refusal))),
        }
    }

    async fn wait_for_admission(&self, trip: &mut Trip<'_>, ask: Ask) -> Result<(), TransportError> {
        let limit = trip.terms.deadline.capped_by(trip.terms.start_by);
        let mut acquire = self.budget.acquire(trip.terms.class, ask, limit);
        let turn = poll_fn(move |cx| acquire.poll_acquire(cx, Instant::now()));
        match trip.until(&self.closed, turn).await? {
            Ok(permit) => {
                trip.claim = Some(claim(permit, ask));
                Ok(())
            }
            Err(AcquireError::Expired) => Err(trip.expired(Instant::now())),
            Err(AcquireError::TooLarge(refusal)) => Err(trip.fail(TransportErrorKind::TooLarge(refusal))),
        }
    }

    /// The live connection, or the dial in flight.
    #[inline]
    fn connect(
        self: &Arc<Self>,
        trip: &mut Trip<'_>,
    ) -> Result<Result<Arc<Connection>, DialInFlight>, TransportError> {
        if let Some(live) = &*self.live.load()
            && !self.closed.is_told()
            && !live.link.pulse.is_idle(trip.now, self.config.max_idle)
            && live.link.table.is_accepting()
        {
            return Ok(Ok(Arc::clone(live)));
        }
        let found = self.connections.lock().find(self, trip.now);
        match found {
            Found::Live(connection) => Ok(Ok(connection)),
            Found::Dialing(dial) => Ok(Err(dial)),
            Found::ToDial(new, dial) => {
                new.start();
                Ok(Err(dial))
            }
            Found::BackingOff { remaining, source } => {
                Err(trip.fail(TransportErrorKind::BackingOff { remaining, source }))
            }
            Found::Closed => Err(trip.fail(TransportErrorKind::Closed)),
        }
    }

    async fn wait_for_dial(&self, trip: &mut Trip<'_>, dial: DialInFlight) -> Result<(), TransportError> {
        let dialed = trip.until(&self.closed, dial.ended()).await?;
        dialed.map_err(|error| trip.fail(TransportErrorKind::ConnectFailed(error)))
    }

    /// Has the signer add its fields.
    async fn sign(&self, trip: &mut Trip<'_>, request: &Request<'_>) -> Result<(), TransportError> {
        let Some(signer) = &self.signer else { return Ok(()) };
        let signed = match signer.sign(request) {
            Signing::Ready(signed) => signed,
            Signing::Pending(signing) => trip.until(&self.closed, signing).await?,
        };
        trip.signature = Some(signed.map_err(|error| trip.fail(TransportErrorKind::SigningFailed(error)))?);
        Ok(())
    }

    fn start_keeper(self: &Arc<Self>) {
        self.keeper.get_or_init(|| {
            tokio::spawn(keep(Arc::downgrade(self), Arc::clone(&self.attention))).abort_handle()
        });
    }
}

/// The claim of a request on what it was admitted for.
#[inline]
fn claim(mut permit: Permit, ask: Ask) -> Claim {
    let bytes = permit.split_bytes(ask.bytes - OVERHEAD);
    Claim { request: permit, bytes }
}
