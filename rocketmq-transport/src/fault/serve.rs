//! Servers under a script.

use std::{io, net::SocketAddr, sync::Arc};

use tokio::net::TcpListener;

use super::{Abort, FaultScript, listen::next_of, requests::Faulty};
use crate::{Acceptance, CloseCause, Handler, Server, ServerConfig, Stream, server::Service};

impl Server {
    /// Listens as [`bind`](Self::bind) does, and misbehaves as `script` says.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    ///
    /// # Cancel safety
    ///
    /// As [`bind`](Self::bind).
    pub async fn bind_with_faults(
        address: SocketAddr,
        handler: Arc<impl Handler>,
        config: ServerConfig,
        script: FaultScript,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let local_addr = listener.local_addr()?;
        let next = next_of(listener, local_addr, script.clone());
        Ok(Self::start(local_addr, next, Service::new(Arc::new(Faulty { handler, script }), config)))
    }
}

/// Serves one client as [`serve`](crate::serve) does, over any stream that can be reset, and misbehaves as `script`
/// says.
///
/// # Cancel safety
///
/// As [`serve`](crate::serve).
pub async fn serve(
    stream: impl Abort,
    remote: SocketAddr,
    handler: Arc<impl Handler>,
    config: ServerConfig,
    script: FaultScript,
) -> CloseCause {
    let stream = Stream::new(script.wrap(stream), Acceptance::Exact);
    Service::new(Arc::new(Faulty { handler, script }), config).serve(stream, remote).await
}
