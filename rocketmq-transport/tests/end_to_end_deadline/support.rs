//! What every script of the suite starts with: a client, a network, and calls in flight.

use std::{future::Future, pin::Pin, sync::Arc, task::Poll, time::Duration};

use bytes::Bytes;
use rocketmq_transport::{
    Admission, CallOptions, Certainty, Class, Code, Completed, EncodeOptions, Fields, FrameLimits, Header,
    Opaque, Peer, PeerUsage, Request, RequestDeadline, Signer, Stage, StageClock, Transport, TransportConfig,
    TransportError, Written,
    test_support::{Network, ScriptedPeer, settle},
};
use tokio::{task::JoinHandle, time::Instant};

/// A client of one peer, unless a request says otherwise.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) transport: Transport,
    time: Time,
}

/// Which time a script runs in.
#[derive(Clone, Copy)]
enum Time {
    Paused,
    Real,
}

/// A client with default settings, and the network it dials in, whose pipes hold `pipe_bytes`.
pub(crate) fn scene(pipe_bytes: usize) -> (Client, Network) {
    scene_with(TransportConfig::default(), pipe_bytes)
}

/// The same with settings.
pub(crate) fn scene_with(config: TransportConfig, pipe_bytes: usize) -> (Client, Network) {
    let network = Network::new(pipe_bytes);
    let transport = Transport::builder(config).connector(network.connector()).build().unwrap();
    (Client { transport, time: Time::Paused }, network)
}

/// The same with a signer.
pub(crate) fn scene_signed(signer: Arc<dyn Signer>, config: TransportConfig) -> (Client, Network) {
    let network = Network::new(ROOMY);
    let builder = Transport::builder(config).connector(network.connector());
    let transport = builder.signer(signer).build().unwrap();
    (Client { transport, time: Time::Paused }, network)
}

/// The peer of a connection that has answered one request, so that the next ones keep their order.
pub(crate) async fn connected(client: &Client, network: &mut Network) -> ScriptedPeer {
    let first = client.call(ask(SECOND));
    let mut peer = network.accept().await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    first.succeeds().await;
    peer
}

/// Settings that differ from the defaults as `change` says.
pub(crate) fn config(change: impl FnOnce(&mut TransportConfig)) -> TransportConfig {
    let mut config = TransportConfig::default();
    change(&mut config);
    config
}

/// A request of a script.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) code: i32,
    pub(crate) peer: Peer,
    pub(crate) field: Option<String>,
    pub(crate) body: Bytes,
    pub(crate) options: CallOptions,
}

/// A request without a body, under a deadline `budget` from now.
pub(crate) fn ask(budget: Duration) -> Ask {
    let options = CallOptions::from(RequestDeadline::after(budget));
    Ask { code: SEND, peer: broker(), field: None, body: Bytes::new(), options }
}

impl Ask {
    pub(crate) fn code(self, code: i32) -> Self {
        Self { code, ..self }
    }

    pub(crate) fn to(self, peer: Peer) -> Self {
        Self { peer, ..self }
    }

    pub(crate) fn field(self, value: impl Into<String>) -> Self {
        Self { field: Some(value.into()), ..self }
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn class(mut self, class: Class) -> Self {
        self.options.class = class;
        self
    }

    /// Waits for room.
    pub(crate) fn waiting(mut self) -> Self {
        self.options.admission = Admission::Wait;
        self
    }

    pub(crate) fn start_by(mut self, limit: Duration) -> Self {
        self.options.start_by = Some(Instant::now() + limit);
        self
    }

    pub(crate) fn suspend(mut self, suspend: Duration) -> Self {
        self.options.suspend = suspend;
        self
    }

    /// The length of its frame under default settings.
    pub(crate) fn frame_len(&self, opaque: i32) -> u64 {
        let request = Request { code: Code(self.code), header: self, body: self.body.clone() };
        let options =
            EncodeOptions { version: TransportConfig::default().version, ..EncodeOptions::default() };
        request.encode(Opaque(opaque), options, &FrameLimits::default()).unwrap().len() as u64
    }
}

impl Header for Ask {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.opt_str(FIELD, self.field.as_deref());
    }
}

impl Client {
    /// A client in real time, for real sockets.
    pub(crate) fn real(transport: Transport) -> Self {
        Self { transport, time: Time::Real }
    }

    /// Begins a call in a task of its own.
    pub(crate) fn call(&self, ask: Ask) -> InFlight<Completed> {
        InFlight(tokio::spawn(self.begin(ask)))
    }

    /// A call that goes on when it is polled, and ends when it is dropped.
    pub(crate) fn begin(&self, ask: Ask) -> Begun<Completed> {
        let (transport, time) = (self.transport.clone(), self.time);
        Box::pin(async move {
            let started = Instant::now();
            let request = Request { code: Code(ask.code), header: &ask, body: ask.body.clone() };
            let ended = transport.call(&ask.peer, request, ask.options).await;
            check_clock(&ask, ended.as_ref().map(|completed| &completed.clock), started, time);
            ended
        })
    }

    /// Begins a one-way request in a task of its own.
    pub(crate) fn oneway(&self, ask: Ask) -> InFlight<Written> {
        let (transport, time) = (self.transport.clone(), self.time);
        InFlight(tokio::spawn(async move {
            let started = Instant::now();
            let request = Request { code: Code(ask.code), header: &ask, body: ask.body.clone() };
            let ended = transport.oneway(&ask.peer, request, ask.options).await;
            check_clock(&ask, ended.as_ref().map(|written| &written.clock), started, time);
            ended
        }))
    }

    /// What is in use at the broker.
    pub(crate) fn usage(&self) -> PeerUsage {
        let mut peers = self.transport.usage().peers;
        assert_eq!(peers.len(), 1, "one peer was asked");
        peers.remove(0)
    }
}

/// A request in a task of its own.
pub(crate) struct InFlight<T>(JoinHandle<Result<T, TransportError>>);

/// A request that is polled by hand.
pub(crate) type Begun<T> = Pin<Box<dyn Future<Output = Result<T, TransportError>> + Send>>;

impl<T: std::fmt::Debug> InFlight<T> {
    pub(crate) async fn ended(self) -> Result<T, TransportError> {
        self.0.await.unwrap()
    }

    pub(crate) async fn succeeds(self) -> T {
        self.ended().await.unwrap()
    }

    pub(crate) async fn fails(self) -> TransportError {
        self.ended().await.unwrap_err()
    }

    /// Lets every task run that can, and checks that this request has not ended.
    pub(crate) async fn is_pending(&self) -> bool {
        settle().await;
        !self.0.is_finished()
    }

    /// Lets every task run that can; how this request has ended, if it has.
    pub(crate) async fn pending_or_ended(&mut self) -> Option<Result<T, TransportError>> {
        settle().await;
        if self.0.is_finished() { Some((&mut self.0).await.unwrap()) } else { None }
    }

    /// Drops its future.
    pub(crate) async fn dropped(self) {
        self.0.abort();
        assert!(self.0.await.unwrap_err().is_cancelled(), "it had ended before it was dropped");
    }
}

/// Polls `future` once, which must not end it.
pub(crate) async fn poll_pending<T: std::fmt::Debug>(future: &mut Begun<T>) {
    let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
    assert!(polled.is_pending(), "{polled:?}");
}

/// Every failure names the request it is about, and the stages of every request add up to the time it took.
fn check_clock(ask: &Ask, ended: Result<&StageClock, &TransportError>, started: Instant, time: Time) {
    let clock = match ended {
        Ok(clock) => clock,
        Err(error) => {
            assert_eq!((error.code(), error.peer()), (Code(ask.code), &ask.peer));
            assert_eq!(error.budget(), ask.options.deadline.budget());
            error.stage_clock()
        }
    };
    let sum: Duration = clock.stages().map(|(_, spent)| spent).sum();
    assert_eq!(sum, clock.elapsed());
    match time {
        Time::Paused => assert_eq!(sum, started.elapsed()),
        Time::Real => assert!(sum <= started.elapsed()),
    }
}

/// The request stopped in `stage`, with `certainty`.
#[track_caller]
pub(crate) fn assert_ended(error: &TransportError, stage: Stage, certainty: Certainty) {
    assert_eq!((error.stage(), error.certainty()), (stage, certainty), "{error}");
}

/// Every gauge is zero.
#[track_caller]
pub(crate) fn assert_idle(client: &Client) {
    let usage = client.transport.usage();
    assert!(usage.is_idle(), "{usage:?}");
}

/// Every gauge is zero, but that `tombstones` wait for late responses.
#[track_caller]
pub(crate) fn assert_only_tombstones(client: &Client, tombstones: u64) {
    let mut usage = client.transport.usage();
    let found: u64 = usage.peers.iter_mut().map(|peer| std::mem::take(&mut peer.tombstones)).sum();
    assert_eq!(found, tombstones, "{usage:?}");
    assert!(usage.is_idle(), "{usage:?}");
}

/// Lets `duration` pass, and every task that is due run.
pub(crate) async fn pass(duration: Duration) {
    tokio::time::advance(duration).await;
    settle().await;
}

pub(crate) fn broker() -> Peer {
    "broker-a.example:10911".parse().unwrap()
}

pub(crate) fn other_broker() -> Peer {
    "broker-b.example:10911".parse().unwrap()
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The code of a request that nothing else is said about.
pub(crate) const SEND: i32 = 310;
/// The name of the one field.
pub(crate) const FIELD: &str = "properties";
/// The size of a pipe that is not the point.
pub(crate) const ROOMY: usize = 1 << 20;
