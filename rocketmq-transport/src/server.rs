//! The listening side: accept, hand requests to a handler, write responses.

use std::{future::Future, io, net::SocketAddr};
use std::sync::Arc;

use crate::{Command, FrameLimits, Response};

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// Answers `request` of the client at `remote`; `None` answers nothing. The response to a one-way request is dropped.
    fn handle(&self, request: Command, remote: SocketAddr) -> impl Future<Output = Option<Response>> + Send;
    /// Told once when the connection from `remote` has ended, after its last request was handled.
    fn disconnected(&self, remote: SocketAddr) { let _ = remote; }
}

/// A listening socket
#[derive(Debug)]
pub struct Server {}
impl Server {
    /// Binds and starts accepting
    pub async fn bind(address: SocketAddr, handler: Arc<impl Handler>, limits: FrameLimits) -> io::Result<Self> { let _ = (address, handler, limits); unimplemented!() }
    /// doc
    pub fn local_addr(&self) -> SocketAddr { unimplemented!() }
    /// Stops accepting, closes all connections and waits for tasks
    pub async fn close(self) { unimplemented!() }
}
