//! The public entry: from peer to channel, calls, closing.

use std::{collections::HashMap, fmt, future::Future, sync::Arc, time::Duration};

use arc_swap::{ArcSwap, Guard};

use crate::{
    Command, ConfigError, Connector, FailureLog, InFlight, IntoCallOptions, Opaque, Peer,
    PendingRequestOwner, Permit, Refusal, Request, RequestDeadline, Signer, StageClock, TcpConnector,
    TransportConfig, TransportError, Usage,
    budget::BudgetTree,
    call::{Call, Entering},
    channel::{Channel, Fittings},
    closed::Closed,
    peer::PeerHash,
    pending::{PendingRequestTable, Tally},
    request::Kind,
    sent::Ended,
};

/// A call that was answered.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completed {
    /// The response, whatever its status.
    pub response: Command,
    /// Where the time went.
    pub clock: StageClock,
    /// The connection that carried it.
    pub generation: PendingRequestOwner,
    /// Its correlation number there.
    pub opaque: Opaque,
}

/// A one-way request whose last byte was accepted by the socket, which says no more than that.
#[derive(Debug)]
#[non_exhaustive]
pub struct Written {
    /// Where the time went.
    pub clock: StageClock,
    /// The connection that carried it.
    pub generation: PendingRequestOwner,
    /// Its correlation number there.
    pub opaque: Opaque,
}

/// What a graceful close left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseReport {
    /// Requests that were answered, or one-way and written, during the close.
    pub finished: u64,
    /// Requests that ended otherwise during the close: by their deadline, their caller, a lost connection.
    pub failed: u64,
    /// Requests that were still in flight when the bound came, and were ended by it.
    pub abandoned: u64,
}

/// Requests and responses with any number of peers, each over one connection at a time.
///
/// A handle is cheap to clone. Connections are opened by the first request that needs them; the drop of the
/// last handle closes them and ends every task. It must be used within a tokio runtime with time and I/O enabled.
///
/// # Examples
///
/// ```no_run
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use bytes::Bytes;
/// use rocketmq_transport::{Code, Request, Transport, TransportConfig};
///
/// let transport = Transport::new(TransportConfig::default())?;
/// let heartbeat = Request { code: Code(34), header: &(), body: Bytes::from_static(br#"{"clientID":"me"}"#) };
/// match transport.call(&"127.0.0.1:10911".parse()?, heartbeat, Duration::from_secs(3)).await {
///     Ok(completed) => println!("status {}", completed.response.code()),
///     Err(error) => println!("{error}, in {} with certainty {}", error.stage(), error.certainty()),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Transport {
    shared: Arc<Shared>,
}

/// By peer; none is ever taken out.
pub(crate) type Channels = HashMap<Peer, Arc<Channel>, PeerHash>;

struct Shared {
    fittings: Fittings,
    budget: BudgetTree,
    /// Replaced as a whole by the first request to a peer; every request reads it, for which it shares no counter or
    /// lock with those of other threads.
    channels: ArcSwap<Channels>,
}

impl Transport {
    /// A transport over plain TCP, without a signer.
    ///
    /// # Errors
    ///
    /// The first setting that is out of range.
    pub fn new(config: TransportConfig) -> Result<Self, ConfigError> {
        Self::builder(config).build()
    }

    /// A transport with a connector or a signer of its own.
    pub fn builder(config: TransportConfig) -> TransportBuilder {
        TransportBuilder { config, connector: None, signer: None }
    }

    /// Sends `request` to `peer` and waits for its response.
    ///
    /// `options` is a budget from the first poll on, a deadline, or all [`CallOptions`](crate::CallOptions). The deadline covers admission, connecting,
    /// signing, queueing, writing and the wait. A response of any
    /// status is a success here; what the status means is the caller's to say.
    ///
    /// # Errors
    ///
    /// [`TransportError::kind`] says what happened, [`TransportError::stage`] where, and
    /// [`TransportError::certainty`] whether the peer may have acted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives back its place in the budget at once. A queued frame is withdrawn, and not one
    /// byte of it is sent; once writing has begun the frame is finished, and the peer may act on it.
    ///
    /// # Examples
    ///
    /// See [`Transport`].
    pub fn call<'a>(
        &'a self,
        peer: &'a Peer,
        request: Request<'a>,
        options: impl IntoCallOptions + 'a,
    ) -> impl Future<Output = Result<Completed, TransportError>> + Send + 'a {
        Call::new(self, peer, Entering { request, options, kind: Kind::Call }, |ended| {
            let Ended { response, clock, generation, opaque } = ended;
            let response = response.expect("a call ends with a response or an error");
            Completed { response, clock, generation, opaque }
        })
    }

    /// Sends `request` to `peer` without asking for a response.
    ///
    /// Success means that the socket has accepted its last byte, which says no more than that: the peer may
    /// never read it.
    ///
    /// # Errors
    ///
    /// As for [`call`](Self::call).
    ///
    /// # Cancel safety
    ///
    /// As for [`call`](Self::call).
    pub fn oneway<'a>(
        &'a self,
        peer: &'a Peer,
        request: Request<'a>,
        options: impl IntoCallOptions + 'a,
    ) -> impl Future<Output = Result<Written, TransportError>> + Send + 'a {
        Call::new(self, peer, Entering { request, options, kind: Kind::Oneway }, |ended| {
            let Ended { clock, generation, opaque, .. } = ended;
            Written { clock, generation, opaque }
        })
    }

    /// Claims client-level bytes for what is kept outside of a request, such as a body kept for a retry. They
    /// are given back by the permit's drop.
    ///
    /// # Errors
    ///
    /// The client-level limit, where it is full.
    pub fn retain(&self, bytes: u64) -> Result<Permit, Refusal> {
        self.shared.budget.retain(bytes)
    }

    /// What is in use, per level and peer.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let peers = self.channels().values().map(|channel| channel.usage()).collect();
        Usage { client: self.shared.budget.used(), peers }
    }

    /// A look at what is in flight, of at most `most` requests and tombstones. Each is as it was when it was looked
    /// at; the locks are held for one connection, or one request, at a time.
    #[must_use]
    pub fn in_flight(&self, most: usize) -> InFlight {
        let mut seen = InFlight::default();
        for channel in self.all_channels() {
            let InFlight { requests, omitted } = channel.in_flight(most.saturating_sub(seen.requests.len()));
            seen.requests.extend(requests);
            seen.omitted += omitted;
        }
        seen
    }

    /// Closes gracefully: takes no more requests, lets those in flight end for up to `bound`, ends the rest,
    /// shuts the connections down, and waits until every task has ended.
    ///
    /// Requests that are not registered with a connection yet end at once. A second close waits for the same
    /// end, by its own bound. [`Duration::MAX`] means no bound but the requests' own deadlines.
    ///
    /// # Cancel safety
    ///
    /// What was begun goes on when the future is dropped, without the bound; call it again to wait on.
    pub async fn close(&self, bound: Duration) -> CloseReport {
        let bound = RequestDeadline::after(bound).at();
        // First of all: a channel that is not listed below finds it told before it opens anything.
        self.shared.fittings.closed.tell();
        // A write, so that it comes before or after that of each channel.
        self.shared.channels.rcu(Arc::clone);
        let channels = self.all_channels();
        let mut before = Tally::default();
        for channel in &channels {
            before.add(channel.tally());
            channel.retire();
        }
        let mut after = Tally::default();
        let mut abandoned = 0;
        for channel in &channels {
            abandoned += channel.drained(bound).await;
            after.add(channel.tally());
            channel.flush_log();
        }
        CloseReport {
            finished: after.answered.saturating_sub(before.answered),
            failed: after.failed.saturating_sub(before.failed).saturating_sub(abandoned),
            abandoned,
        }
    }

    /// Writes the line of a request that failed, unless a layer above does.
    pub(crate) fn log_failure(&self, peer: &Peer, error: &TransportError) {
        if self.shared.fittings.config.failure_log == FailureLog::On {
            self.channel(peer).log_failure(error);
        }
    }

    /// The channels there are.
    #[inline]
    pub(crate) fn channels(&self) -> Guard<Arc<Channels>> {
        self.shared.channels.load()
    }

    /// The channel of `peer`, which is made if there is none.
    pub(crate) fn channel(&self, peer: &Peer) -> Arc<Channel> {
        if let Some(channel) = self.channels().get(peer) {
            return Arc::clone(channel);
        }
        let mut new = None;
        self.shared.channels.rcu(|channels| {
            if channels.contains_key(peer) {
                return Arc::clone(channels);
            }
            let channel = new.get_or_insert_with(|| {
                let Shared { fittings, budget, .. } = &*self.shared;
                Arc::new(Channel::new(peer.clone(), fittings.clone(), budget.peer()))
            });
            let mut more = Channels::clone(channels);
            more.insert(peer.clone(), Arc::clone(channel));
            Arc::new(more)
        });
        Arc::clone(&self.channels()[peer])
    }

    fn all_channels(&self) -> Vec<Arc<Channel>> {
        self.channels().values().cloned().collect()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("channels", &self.channels().len()).finish_non_exhaustive()
    }
}

/// A transport to be built; see [`Transport::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct TransportBuilder {
    config: TransportConfig,
    connector: Option<Arc<dyn Connector>>,
    signer: Option<Arc<dyn Signer>>,
}

impl TransportBuilder {
    /// How connections are opened. Default [`TcpConnector`].
    pub fn connector(mut self, connector: Arc<dyn Connector>) -> Self {
        self.connector = Some(connector);
        self
    }

    /// What signs each request. Default: nothing does.
    pub fn signer(mut self, signer: Arc<dyn Signer>) -> Self {
        self.signer = Some(signer);
        self
    }

    /// The transport. Nothing is opened yet.
    ///
    /// # Errors
    ///
    /// The first setting that is out of range.
    pub fn build(self) -> Result<Transport, ConfigError> {
        self.config.validate()?;
        let budget = BudgetTree::new(self.config.limits());
        let fittings = Fittings {
            config: Arc::new(self.config),
            connector: self.connector.unwrap_or_else(|| Arc::new(TcpConnector::new())),
            signer: self.signer,
            pending: Arc::new(PendingRequestTable::new()),
            closed: Closed::default(),
        };
        Ok(Transport { shared: Arc::new(Shared { fittings, budget, channels: ArcSwap::default() }) })
    }
}
