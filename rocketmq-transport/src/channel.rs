//! The lasting link to one peer: a request's way from admission to the end of its record.

mod dial;
mod keeper;

use std::{
    future::poll_fn,
    sync::{Arc, OnceLock},
};

use tokio::{
    task::AbortHandle,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use self::{
    dial::{Connections, Found},
    keeper::keep,
};
use crate::{
    Admission, Certainty, CloseCause, Command, InFlight, Opaque, Peer, PeerUsage, PendingRequestTable,
    Request, RetireReason, Signature, Signing, Stage, Storm, TransportConfig, TransportError,
    TransportErrorKind, Verdict,
    budget::{AcquireError, Ask, PeerBudget, Refused},
    connect::Connector,
    connection::{Claim, Connection, Rejected, Signed, outgoing},
    failure_log::{log_failure, log_folded},
    link::Attention,
    pending::Tally,
    request::Outcome,
    signer::Signer,
    sync::Mutex,
    trip::Trip,
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
    pub(crate) closed: CancellationToken,
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
    attention: Arc<Attention>,
    /// Failures that had no line of their own yet, by stage, certainty and kind: the line that stands for many has to
    /// be true of each.
    failures: Storm<(Stage, Certainty, &'static str), TransportError>,
    /// Started with the first connection, or the first line that was folded.
    keeper: OnceLock<AbortHandle>,
    closed: CancellationToken,
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
            attention: Arc::default(),
            failures: Storm::new(),
            keeper: OnceLock::new(),
            closed,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Carries `request` through every stage to its end. A call gets its response, a one-way request `None`.
    pub(crate) async fn carry(
        &self,
        trip: &mut Trip<'_>,
        request: &Request<'_>,
    ) -> Result<Option<Command>, TransportError> {
        let mut claim = self.shared.admit(trip, request).await?;
        let mut signature = None;
        loop {
            trip.enter(Stage::Connect)?;
            let connection = self.shared.connect(trip).await?;
            trip.enter(Stage::Signing)?;
            trip.connection = Some(connection);
            if signature.is_none() {
                signature = Some(self.shared.sign(trip, request).await?);
            }
            trip.enter(Stage::BeforeWrite)?;
            let connection = trip.connection.as_ref().expect("it was found above");
            let signed =
                Signed { request, signature: signature.as_deref().unwrap_or_default(), terms: trip.terms };
            match connection.submit(signed, claim, trip.clock, trip.now) {
                Ok(record) => {
                    let (outcome, clock) = connection.outcome(trip.record.insert(record)).await;
                    trip.clock = clock;
                    return match outcome {
                        Outcome::Answered(response) => Ok(Some(response)),
                        Outcome::Written => Ok(None),
                        Outcome::Failed { kind, stage, fate } => Err(trip.report(kind, stage, fate)),
                    };
                }
                Err(Rejected::Retired(back)) => claim = back,
                Err(Rejected::Expired) => return Err(trip.expired(Instant::now())),
                Err(Rejected::Invalid(error)) => {
                    return Err(trip.fail(TransportErrorKind::InvalidRequest(error)));
                }
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

impl Shared {
    /// Asks all levels of the budget for the request and for the bytes it will retain.
    async fn admit(&self, trip: &mut Trip<'_>, request: &Request<'_>) -> Result<Claim, TransportError> {
        trip.check()?;
        if self.closed.is_cancelled() {
            return Err(trip.fail(TransportErrorKind::Closed));
        }
        let frame = self.frame_bound(trip, request);
        let ask = Ask { requests: 1, bytes: frame + OVERHEAD };
        trip.terms.bytes = ask.bytes;
        let class = trip.terms.class;
        let admitted = match (self.budget.try_acquire(class, ask, trip.now), trip.admission) {
            (Err(Refused::Saturated(_)), Admission::Wait) => {
                let limit = trip.terms.deadline.capped_by(trip.terms.start_by);
                let mut acquire = self.budget.acquire(class, ask, limit);
                let turn = poll_fn(move |cx| acquire.poll_acquire(cx, Instant::now()));
                match trip.until(&self.closed, turn).await? {
                    Ok(permit) => Ok(permit),
                    Err(AcquireError::Expired) => return Err(trip.expired(Instant::now())),
                    Err(AcquireError::TooLarge(refusal)) => Err(Refused::TooLarge(refusal)),
                }
            }
            (admitted, _) => admitted,
        };
        match admitted {
            Ok(mut permit) => {
                let bytes = permit.split_bytes(frame);
                Ok(Claim { request: permit, bytes })
            }
            Err(Refused::Saturated(refusal)) => Err(trip.fail(TransportErrorKind::QueueSaturated(refusal))),
            Err(Refused::TooLarge(refusal)) => Err(trip.fail(TransportErrorKind::TooLarge(refusal))),
        }
    }

    /// A bound of the bytes of the frame, known before it is encoded.
    fn frame_bound(&self, trip: &Trip<'_>, request: &Request<'_>) -> u64 {
        let signature = self.signer.as_ref().map_or(0, |signer| signer.max_header_bytes());
        let unsigned = Signed { request, signature: &[], terms: trip.terms };
        let head = outgoing(&unsigned, Opaque(i32::MIN), &self.config).head_bound();
        (head + signature + request.body.len()) as u64
    }

    /// The live connection, or the end of the one dial in flight.
    async fn connect(self: &Arc<Self>, trip: &mut Trip<'_>) -> Result<Arc<Connection>, TransportError> {
        loop {
            let found = self.connections.lock().find(self, trip.now);
            let result = match found {
                Found::Live(connection) => return Ok(connection),
                Found::Dialing(result) => result,
                Found::ToDial(dial, result) => {
                    dial.start();
                    result
                }
                Found::BackingOff { remaining, source } => {
                    return Err(trip.fail(TransportErrorKind::BackingOff { remaining, source }));
                }
                Found::Closed => return Err(trip.fail(TransportErrorKind::Closed)),
            };
            if let Err(error) = trip.until(&self.closed, dial::dialed(result)).await? {
                return Err(trip.fail(TransportErrorKind::ConnectFailed(error)));
            }
        }
    }

    fn start_keeper(self: &Arc<Self>) {
        self.keeper.get_or_init(|| {
            tokio::spawn(keep(Arc::downgrade(self), Arc::clone(&self.attention))).abort_handle()
        });
    }

    /// The fields the signer adds.
    async fn sign(&self, trip: &mut Trip<'_>, request: &Request<'_>) -> Result<Signature, TransportError> {
        let Some(signer) = &self.signer else { return Ok(Signature::new()) };
        let signed = match signer.sign(request) {
            Signing::Ready(signed) => signed,
            Signing::Pending(signing) => trip.until(&self.closed, signing).await?,
        };
        signed.map_err(|error| trip.fail(TransportErrorKind::SigningFailed(error)))
    }
}

/// What a request retains beside its frame: its record, its places in lane and table, and the caller's wait.
const OVERHEAD: u64 = 512;
