//! One socket from open to close.

mod driver;

use std::{
    fmt,
    future::Future,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::driver::drive;
use crate::{CloseCause, Peer, link::Link, reader::Reader, stream::Stream, writer::Writer};

/// One generation: a socket, its tasks, and what is pending on it.
pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    pub(crate) remote: Option<SocketAddr>,
    stop: OnceLock<Stop>,
    stopping: CancellationToken,
    closing: OnceLock<Closing>,
    ended: CancellationToken,
    /// Cuts a farewell short.
    cut: CancellationToken,
}

/// A request to stop.
#[derive(Debug)]
struct Stop {
    cause: CloseCause,
    /// How long the peer may still be listened to after our side was shut down.
    farewell: Option<Duration>,
}

/// Why a connection ended, and since when that is known.
#[derive(Debug)]
pub(crate) struct Closing {
    pub(crate) cause: CloseCause,
    pub(crate) at: Instant,
}

impl Connection {
    /// Takes over `stream`. The task that is to be started runs a reader and a writer and closes them in order;
    /// dropped before its end, and also if it never runs, it ends what is pending.
    pub(crate) fn open(
        stream: Stream,
        link: Link,
        peer: &Peer,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + 'static) {
        let link = Arc::new(link);
        let (remote, acceptance) = (stream.remote, stream.acceptance);
        let (read, write) = stream.into_halves();
        let reader = Reader::new(Arc::clone(&link), read);
        let writer = Writer::new(Arc::clone(&link), write, acceptance);
        let span = tracing::info_span!(parent: None, "connection", %peer, generation = link.owner().get());
        let connection = Arc::new(Self {
            link,
            remote,
            stop: OnceLock::new(),
            stopping: CancellationToken::new(),
            closing: OnceLock::new(),
            ended: CancellationToken::new(),
            cut: CancellationToken::new(),
        });
        let task = drive(Arc::clone(&connection), reader, writer).instrument(span);
        (connection, task)
    }

    /// Asks the connection to end. What is pending ends with `cause`; the first cause counts. With a farewell
    /// the write side is shut down and the peer listened to for so long; a later stop without one cuts it short.
    pub(crate) fn stop(&self, cause: CloseCause, farewell: Option<Duration>) {
        if farewell.is_none() {
            self.cut.cancel();
        }
        if self.stop.set(Stop { cause, farewell }).is_ok() {
            self.link.table.close();
            self.stopping.cancel();
        }
    }

    /// Why it ended or is about to.
    pub(crate) fn closing(&self) -> Option<&Closing> {
        self.closing.get()
    }

    /// Whether every task of it has ended and nothing is pending.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until every task of it has ended and nothing is pending. Cancel safe.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("generation", &self.link.owner())
            .field("remote", &self.remote)
            .field("closing", &self.closing.get())
            .finish_non_exhaustive()
    }
}
