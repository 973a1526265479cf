//! From a peer to a stream: resolving, dialling, socket options.

use std::{fmt, future::Future, io, net::SocketAddr, pin::Pin};

use crate::{Peer, stream::Stream};

/// Opens connections; the seam for proxies, other transports and tests.
pub trait Connector: Send + Sync + fmt::Debug {
    /// Opens one connection to `peer`. The transport bounds it by `connect_timeout` and drops it then.
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a>;
}

/// A dial in flight.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send + 'a>>;

/// Resolves host names; the seam for service discovery and tests.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// The addresses of `peer`, in the order they are tried.
    fn resolve<'a>(&'a self, peer: &'a Peer) -> Resolving<'a>;
}

/// A name resolution in flight.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;
