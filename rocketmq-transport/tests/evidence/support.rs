//! What every script of the suite starts with.

use std::time::Duration;

use bytes::Bytes;
use rocketmq_transport::{
    Code, Command, Completed, IntoCallOptions, Peer, Request, RequestDeadline, Transport, TransportConfig,
    TransportError,
    test_support::{Network, ScriptedPeer, settle},
};
use tokio::task::JoinHandle;

/// A transport with settings that differ from the defaults as `change` says, and the network it dials in.
pub(crate) fn scene(change: impl FnOnce(&mut TransportConfig)) -> (Transport, Network) {
    let mut config = TransportConfig::default();
    change(&mut config);
    let network = Network::new(1 << 20);
    let transport = Transport::builder(config).connector(network.connector()).build().unwrap();
    (transport, network)
}

/// The peer of a connection that has answered one request.
pub(crate) async fn connected(transport: &Transport, network: &mut Network) -> ScriptedPeer {
    let first = spawn(transport, ms(1_000));
    let mut peer = network.accept().await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    first.await.unwrap().unwrap();
    peer
}

pub(crate) type Call = JoinHandle<Result<Completed, TransportError>>;

/// A call in a task of its own.
pub(crate) fn spawn(transport: &Transport, budget: Duration) -> Call {
    let transport = transport.clone();
    tokio::spawn(async move { call(&transport, RequestDeadline::after(budget)).await })
}

pub(crate) async fn call(
    transport: &Transport,
    options: impl IntoCallOptions,
) -> Result<Completed, TransportError> {
    transport.call(&broker(), request(), options).await
}

pub(crate) fn request() -> Request<'static> {
    Request { code: Code(310), header: &(), body: Bytes::from_static(b"body") }
}

/// A call that has failed with its deadline, and what its peer has read of it.
pub(crate) async fn timed_out(
    transport: &Transport,
    peer: &mut ScriptedPeer,
    budget: Duration,
) -> (TransportError, Command) {
    let call = spawn(transport, budget);
    let request = peer.expect().await;
    (call.await.unwrap().unwrap_err(), request)
}

/// Lets `duration` pass in one jump, and every task that is due run.
pub(crate) async fn pass(duration: Duration) {
    tokio::time::advance(duration).await;
    settle().await;
}

pub(crate) fn broker() -> Peer {
    "broker-a.example:10911".parse().unwrap()
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
