//! A connector whose dials arrive as scripted peers.

use std::{
    fmt, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::sync::{mpsc, watch};

use super::{PipeEnd, ScriptedPeer, Then, within_patience};
use crate::{Acceptance, Connecting, Connector, Peer, Stream};

/// A network in memory: what a transport dials arrives here, as a [`ScriptedPeer`].
///
/// A new network lets every dial succeed at once. Other dials are scripted with [`set_dialing`](Self::set_dialing).
#[derive(Debug)]
pub struct Network {
    dialer: Arc<Dialer>,
    arrivals: mpsc::UnboundedReceiver<ScriptedPeer>,
}

/// What becomes of dials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialing {
    /// They succeed.
    Connect,
    /// They stay in flight until something else is set.
    Hold,
    /// They fail.
    Refuse(io::ErrorKind),
    /// They panic.
    Panic,
}

impl Network {
    /// A network whose pipes hold `pipe_bytes` in each direction.
    #[must_use]
    pub fn new(pipe_bytes: usize) -> Self {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let dialer = Dialer {
            pipe_bytes,
            dialing: watch::Sender::new(Dialing::Connect),
            fresh: Mutex::new(Fresh { allowance: u64::MAX, acceptance: Acceptance::Exact }),
            dials: AtomicUsize::new(0),
            arrived,
        };
        Self { dialer: Arc::new(dialer), arrivals }
    }

    /// The connector to build a transport with.
    #[must_use]
    pub fn connector(&self) -> Arc<dyn Connector> {
        Arc::clone(&self.dialer) as Arc<dyn Connector>
    }

    /// Says what becomes of dials, those in flight included.
    pub fn set_dialing(&self, dialing: Dialing) {
        self.dialer.dialing.send_replace(dialing);
    }

    /// How many bytes a new connection accepts of the transport at first; the rest waits for
    /// [`ScriptedPeer::accept_only`] or [`ScriptedPeer::accept_all`]. Default: all that there is room for.
    pub fn set_allowance(&self, bytes: u64) {
        self.dialer.fresh().allowance = bytes;
    }

    /// What a new connection's report of accepted bytes is worth. Default exact.
    pub fn set_acceptance(&self, acceptance: Acceptance) {
        self.dialer.fresh().acceptance = acceptance;
    }

    /// How many dials have begun so far.
    #[must_use]
    pub fn dials(&self) -> usize {
        self.dialer.dials.load(Relaxed)
    }

    /// The other end of the next connection, in the order in which dials succeed.
    ///
    /// # Panics
    ///
    /// Where no dial succeeds for ten minutes.
    ///
    /// # Cancel safety
    ///
    /// No connection is lost when the future is dropped.
    pub async fn accept(&mut self) -> ScriptedPeer {
        let arrival = within_patience("a connection", self.arrivals.recv()).await;
        arrival.expect("the network itself keeps the channel open")
    }

    /// The other end of the next connection, if there is one already.
    pub fn try_accept(&mut self) -> Option<ScriptedPeer> {
        self.arrivals.try_recv().ok()
    }
}

/// The network as the transport sees it.
struct Dialer {
    pipe_bytes: usize,
    dialing: watch::Sender<Dialing>,
    fresh: Mutex<Fresh>,
    /// It stands for itself, hence `Relaxed`.
    dials: AtomicUsize,
    arrived: mpsc::UnboundedSender<ScriptedPeer>,
}

/// How a new connection behaves.
#[derive(Clone, Copy)]
struct Fresh {
    allowance: u64,
    acceptance: Acceptance,
}

impl Dialer {
    fn fresh(&self) -> std::sync::MutexGuard<'_, Fresh> {
        self.fresh.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn open(&self, peer: &Peer) -> Stream {
        let (near, far) = PipeEnd::pair(self.pipe_bytes);
        let Fresh { allowance, acceptance } = *self.fresh();
        far.accept_only(allowance, Then::Wait);
        // A network that is gone has dropped its end, which is what a peer that hangs up at once does.
        let _ = self.arrived.send(ScriptedPeer::at(peer.clone(), far));
        Stream::new(near, acceptance)
    }
}

impl Connector for Dialer {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        self.dials.fetch_add(1, Relaxed);
        Box::pin(async move {
            let mut dialing = self.dialing.subscribe();
            let decided = dialing.wait_for(|dialing| *dialing != Dialing::Hold).await;
            match *decided.expect("the dialer keeps the script") {
                Dialing::Connect | Dialing::Hold => Ok(self.open(peer)),
                Dialing::Refuse(kind) => Err(kind.into()),
                Dialing::Panic => panic!("the dial was told to panic"),
            }
        })
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("dials", &self.dials).finish_non_exhaustive()
    }
}
