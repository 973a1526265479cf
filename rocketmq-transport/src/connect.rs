//! From a peer to a stream: resolving, dialling, socket options.

use std::{
    error::Error,
    fmt,
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
};

use tokio::net::{TcpStream, lookup_host};

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

/// Connects over plain TCP, with `TCP_NODELAY`: the default connector.
///
/// A host that is an address is dialled as it is, any other is resolved first. The addresses are tried one
/// after another until one accepts. A failure is an [`io::Error`] that holds a [`ConnectError`] and has the
/// kind of the last attempt. Dropping the dial closes its socket; a look-up by the operating system that has
/// begun still ends on its own thread, and nobody hears of it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rocketmq_transport::{ConnectError, Connector, Peer, TcpConnector};
///
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// let peer = Peer::from(listener.local_addr()?);
/// let connector = TcpConnector::new();
/// assert!(connector.connect(&peer).await.is_ok());
///
/// drop(listener);
/// let error = connector.connect(&peer).await.unwrap_err();
/// let reason = error.get_ref().and_then(|inner| inner.downcast_ref());
/// assert!(matches!(reason, Some(ConnectError::Dial { .. })));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct TcpConnector {
    resolver: Arc<dyn Resolver>,
}

impl TcpConnector {
    /// A connector that asks the operating system for addresses.
    #[must_use]
    pub fn new() -> Self {
        Self::with_resolver(Arc::new(SystemResolver))
    }

    /// A connector that asks `resolver` for the addresses of hosts that are not addresses themselves.
    #[must_use]
    pub fn with_resolver(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver }
    }

    async fn addresses(&self, peer: &Peer) -> Result<Vec<SocketAddr>, ConnectError> {
        if let Ok(literal) = peer.host().parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(literal, peer.port())]);
        }
        match self.resolver.resolve(peer).await {
            Ok(addresses) if addresses.is_empty() => Err(ConnectError::NoAddress { peer: peer.clone() }),
            Ok(addresses) => Ok(addresses),
            Err(source) => Err(ConnectError::Resolve { peer: peer.clone(), source }),
        }
    }
}

impl Default for TcpConnector {
    fn default() -> Self {
        Self::new()
    }
}

impl Connector for TcpConnector {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        Box::pin(async move {
            let addresses = self.addresses(peer).await?;
            let mut failures = Vec::new();
            for address in addresses {
                match dial(address).await {
                    Ok(stream) => return Ok(stream.into()),
                    Err(error) => failures.push(DialFailure { address, error }),
                }
            }
            Err(ConnectError::Dial { failures }.into())
        })
    }
}

/// Why a [`TcpConnector`] opened no connection; found inside its [`io::Error`] by [`io::Error::get_ref`].
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The host's addresses could not be found out.
    Resolve {
        /// Whose.
        peer: Peer,
        /// What the resolver said.
        source: io::Error,
    },
    /// The resolver knows the host but gave no address.
    NoAddress {
        /// Whose.
        peer: Peer,
    },
    /// No address accepted the connection.
    Dial {
        /// Each address tried, in order; never empty.
        failures: Vec<DialFailure>,
    },
}

/// One address that did not accept a connection.
#[derive(Debug)]
#[non_exhaustive]
pub struct DialFailure {
    /// The address.
    pub address: SocketAddr,
    /// What the operating system said.
    pub error: io::Error,
}

impl ConnectError {
    fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::Resolve { source, .. } => source.kind(),
            Self::NoAddress { .. } => io::ErrorKind::NotFound,
            Self::Dial { failures } => failures.last().map_or(io::ErrorKind::Other, |last| last.error.kind()),
        }
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        Self::new(error.io_kind(), error)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resolve { peer, .. } => write!(f, "host of {peer} could not be resolved"),
            Self::NoAddress { peer } => write!(f, "host of {peer} has no address"),
            Self::Dial { failures } => {
                f.write_str("no connection to ")?;
                for (place, DialFailure { address, error }) in failures.iter().enumerate() {
                    let separator = if place == 0 { "" } else { "; " };
                    write!(f, "{separator}{address}: {error}")?;
                }
                Ok(())
            }
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Resolve { source, .. } => Some(source),
            // The text of a failed dial has every cause already, not only one.
            Self::NoAddress { .. } | Self::Dial { .. } => None,
        }
    }
}

/// The operating system's resolver.
#[derive(Debug)]
struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, peer: &'a Peer) -> Resolving<'a> {
        Box::pin(async move { Ok(lookup_host((peer.host(), peer.port())).await?.collect()) })
    }
}

async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    refuse_self(&stream)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A dial to a free local port may be given that very port as its own and meet itself. Kept, such a
/// connection would echo our requests to us and keep a broker that restarts from binding its port.
fn refuse_self(stream: &TcpStream) -> io::Result<()> {
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "nobody listens: the dial met itself"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
