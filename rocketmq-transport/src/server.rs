//! The listening side: accepts connections, hands requests to a handler, writes its responses.

mod answering;
mod connection;
mod output;

use std::{
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinError, JoinSet},
    time::sleep,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::answering::{Answering, Reply};
use self::connection::Connection;
#[cfg(feature = "fault-script")]
use crate::fault::{self, Abort, FaultScript, Faulty};
use crate::{CloseCause, Command, FrameLimits, Response, Stream};

/// Answers requests.
///
/// A function of request and address that returns a future is a handler, too.
pub trait Handler: Send + Sync + 'static {
    /// Answers `request` of the client at `remote`; `None` answers nothing. What a one-way request is
    /// answered is dropped.
    ///
    /// Each request is handled by a task of its own, those of one connection side by side, and answered when
    /// it ends, in no order. A panic is answered with [`Code::SYSTEM_ERROR`](crate::Code::SYSTEM_ERROR). When
    /// the connection is lost, or at the end of [`max_drain`](ServerConfig::max_drain), the future is dropped
    /// at its next wait.
    fn handle(&self, request: Command, remote: SocketAddr) -> impl Future<Output = Option<Response>> + Send;

    /// Learns that the connection of the client at `remote` has ended: once for each connection, after its
    /// last request. It must not block or panic. Only where the whole server is dropped may requests still be
    /// on their way out.
    fn disconnected(&self, remote: SocketAddr) {
        let _ = remote;
    }
}

impl<F, A> Handler for F
where
    F: Fn(Command, SocketAddr) -> A + Send + Sync + 'static,
    A: Future<Output = Option<Response>> + Send,
{
    fn handle(&self, request: Command, remote: SocketAddr) -> impl Future<Output = Option<Response>> + Send {
        self(request, remote)
    }
}

/// Settings of the listening side.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Limits of frames in both directions. A request beyond them closes its connection; a response beyond
    /// them is replaced by [`Code::SYSTEM_ERROR`](crate::Code::SYSTEM_ERROR). Default 16 MiB and 1 MiB.
    pub limits: FrameLimits,
    /// How many requests of one connection are handled at the same time; with as many, nothing more is read
    /// from it. Default 256.
    pub max_in_flight: NonZeroUsize,
    /// How long requests in flight may go on once the client has ended its direction or the server is
    /// closed; the largest duration means no limit. Default 5 s.
    pub max_drain: Duration,
    /// How headers of responses are written. Default JSON.
    pub response_encoding: ResponseEncoding,
    /// The `version` field of each response (`MQVersion`). Default 479, which is 5.3.3.
    pub version: i16,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            limits: FrameLimits::default(),
            max_in_flight: const { NonZeroUsize::new(256).expect("256 is not zero") },
            max_drain: Duration::from_secs(5),
            response_encoding: ResponseEncoding::Json,
            version: 479,
        }
    }
}

/// How headers of responses are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResponseEncoding {
    /// As JSON, as brokers since 5.0 do whatever the request.
    #[default]
    Json,
    /// As the request's header was, as brokers 4.9.4 to 4.9.8 do.
    AsRequest,
}

/// A listening socket and the connections it has accepted.
///
/// Dropping it ends them all at once, and the port is free as soon as the runtime has dropped their tasks.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use std::{net::SocketAddr, sync::Arc};
/// use bytes::Bytes;
/// use rocketmq_transport::{Code, Command, Response, Server, ServerConfig};
///
/// let echo = |request: Command, _: SocketAddr| async move {
///     let body = request.body_bytes();
///     Some(Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body })
/// };
/// let address = SocketAddr::from(([127, 0, 0, 1], 0));
/// let server = Server::bind(address, Arc::new(echo), ServerConfig::default()).await?;
/// assert_ne!(server.local_addr().port(), 0);
/// server.close().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Server {
    local_addr: SocketAddr,
    counts: Arc<Counts>,
    stop: CancellationToken,
    tasks: TaskTracker,
    acceptor: AbortHandle,
}

impl Server {
    /// Listens at `address` and accepts connections from then on; port 0 means any free port.
    ///
    /// # Errors
    ///
    /// What the operating system says to listening there.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves no socket behind.
    pub async fn bind(
        address: SocketAddr,
        handler: Arc<impl Handler>,
        config: ServerConfig,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let local_addr = listener.local_addr()?;
        Ok(Self::start(local_addr, next_of(listener), Service::new(handler, config)))
    }

    /// Listens as [`bind`](Self::bind) does, and misbehaves as `script` says.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    ///
    /// # Cancel safety
    ///
    /// As [`bind`](Self::bind).
    #[cfg(feature = "fault-script")]
    pub async fn bind_with_faults(
        address: SocketAddr,
        handler: Arc<impl Handler>,
        config: ServerConfig,
        script: FaultScript,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let local_addr = listener.local_addr()?;
        let next = fault::next_of(listener, local_addr, script.clone());
        let faulty = Arc::new(Faulty { handler, script });
        Ok(Self::start(local_addr, next, Service::new(faulty, config)))
    }

    /// The address it listens at, with the port that was chosen.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.counts.open.load(Ordering::Relaxed)
    }

    /// How many frames came in that were no requests, and were ignored.
    #[must_use]
    pub fn ignored(&self) -> u64 {
        self.counts.ignored.load(Ordering::Relaxed)
    }

    /// Stops listening, reads no more requests, lets those in flight go on for at most
    /// [`max_drain`](ServerConfig::max_drain), writes their responses, and returns when every connection is
    /// closed and every task has ended. Further calls wait for the same end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the close back.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn start(
        local_addr: SocketAddr,
        next: impl FnMut(&mut Context<'_>) -> Poll<Accepted> + Send + 'static,
        service: Service<impl Answering>,
    ) -> Self {
        let (counts, stop, tasks) =
            (Arc::clone(&service.counts), CancellationToken::new(), TaskTracker::new());
        let acceptor = tasks.spawn(accept(next, service, stop.clone())).abort_handle();
        Self { local_addr, counts, stop, tasks, acceptor }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The acceptor owns the listener and the connections, and they own their requests.
        self.acceptor.abort();
    }
}

/// Serves one client over `stream`, which needs no listening socket, and returns why it ended. `remote` is
/// the address the handler knows the client by.
///
/// # Cancel safety
///
/// Dropping the future closes the stream and drops the requests in flight.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::{net::SocketAddr, sync::Arc};
/// use rocketmq_transport::{Acceptance, CloseCause, Command, ServerConfig, Stream, serve};
///
/// let silent = |_: Command, _: SocketAddr| async { None };
/// let (near, far) = tokio::io::duplex(1024);
/// drop(far);
/// let remote = SocketAddr::from(([192, 0, 2, 1], 1));
/// let stream = Stream::new(near, Acceptance::Exact);
/// let cause = serve(stream, remote, Arc::new(silent), ServerConfig::default()).await;
/// assert!(matches!(cause, CloseCause::EndOfStream));
/// # }
/// ```
pub async fn serve(
    stream: Stream,
    remote: SocketAddr,
    handler: Arc<impl Handler>,
    config: ServerConfig,
) -> CloseCause {
    Connection::open(Service::new(handler, config), remote).run(stream, CancellationToken::new()).await
}

/// Serves one client as [`serve`] does, over any stream that can be reset, and misbehaves as `script` says.
///
/// # Cancel safety
///
/// As [`serve`].
#[cfg(feature = "fault-script")]
pub async fn serve_with_faults(
    stream: impl Abort,
    remote: SocketAddr,
    handler: Arc<impl Handler>,
    config: ServerConfig,
    script: FaultScript,
) -> CloseCause {
    let stream = Stream::new(script.wrap(stream), crate::Acceptance::Exact);
    let service = Service::new(Arc::new(Faulty { handler, script }), config);
    Connection::open(service, remote).run(stream, CancellationToken::new()).await
}

/// What all connections of a server share.
struct Service<H> {
    handler: Arc<H>,
    config: ServerConfig,
    counts: Arc<Counts>,
}

impl<H> Service<H> {
    fn new(handler: Arc<H>, config: ServerConfig) -> Self {
        Self { handler, config, counts: Arc::default() }
    }
}

impl<H> Clone for Service<H> {
    fn clone(&self) -> Self {
        Self { handler: Arc::clone(&self.handler), config: self.config, counts: Arc::clone(&self.counts) }
    }
}

/// Gauges and counters; no other memory depends on their order.
#[derive(Debug, Default)]
struct Counts {
    open: AtomicUsize,
    ignored: AtomicU64,
}

/// The next connection of a listening socket.
pub(crate) type Accepted = io::Result<(Stream, SocketAddr)>;

fn next_of(listener: TcpListener) -> impl FnMut(&mut Context<'_>) -> Poll<Accepted> + Send {
    move |context| {
        listener.poll_accept(context).map_ok(|(stream, remote)| {
            // A socket that fails here fails again at its first read, where its end has a name.
            let _ = stream.set_nodelay(true);
            (stream.into(), remote)
        })
    }
}

/// Accepts until it is stopped, then waits for the connections to end. No failure ends it before.
async fn accept<H: Answering>(
    mut next: impl FnMut(&mut Context<'_>) -> Poll<Accepted> + Send,
    service: Service<H>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    let mut pause = MIN_PAUSE;
    while !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => {}
            accepted = poll_fn(&mut next) => match accepted {
                Ok((stream, remote)) => {
                    pause = MIN_PAUSE;
                    connections.spawn(Connection::open(service.clone(), remote).run(stream, stop.clone()));
                }
                Err(error) if is_of_one_client(&error) => tracing::debug!(%error, "a client gave up"),
                Err(error) => {
                    let pause_ms = pause.as_millis() as u64;
                    tracing::warn!(%error, pause_ms, "accepting failed, trying again after a pause");
                    let _ = stop.run_until_cancelled(sleep(pause)).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            },
            Some(ended) = connections.join_next(), if !connections.is_empty() => log_panic(ended),
        }
    }
    drop(next);
    while let Some(ended) = connections.join_next().await {
        log_panic(ended);
    }
}

/// A connection panics only where the handler's `disconnected` does.
fn log_panic(ended: Result<CloseCause, JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!("the handler panicked at the end of a connection");
    }
}

/// Whether the failure belongs to the connection that was to be accepted, and the next may do.
fn is_of_one_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The first pause after the socket failed to accept, mostly for want of file descriptors.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// The longest such pause.
const MAX_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
