//! The way to a live connection: one dial at a time, and a pause after a failure.
//!
//! Tasks are started outside the lock: a runtime that is shutting down drops them on the spot, and what they drop
//! takes the lock.

use std::{
    hash::{BuildHasher, RandomState},
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Shared;
use crate::{
    CloseCause, RetireReason, TransportConfig, connection::Connection, link::Link, pending::Tally,
    stream::Stream,
};

/// The connections of a channel, and how the next one comes about.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// The one that takes requests, if there is one.
    current: Option<Arc<Connection>>,
    /// All that have not ended, the current one included.
    pub(super) open: Vec<Arc<Connection>>,
    dial: Option<Dial>,
    backoff: Backoff,
    /// Of the connections that have ended.
    past: Tally,
}

#[derive(Debug)]
struct Dial {
    in_flight: DialInFlight,
    stop: CancellationToken,
}

/// A dial in flight, to be waited for.
#[derive(Clone, Debug)]
pub(crate) struct DialInFlight(watch::Receiver<DialResult>);

/// `None` while the dial is in flight.
type DialResult = Option<Result<(), Arc<io::Error>>>;

/// What a request in need of a connection finds.
pub(super) enum Found {
    Live(Arc<Connection>),
    /// A dial in flight, to be waited for.
    Dialing(DialInFlight),
    /// A dial to be started, and then waited for.
    ToDial(NewDial, DialInFlight),
    BackingOff {
        remaining: Duration,
        source: Arc<io::Error>,
    },
    Closed,
}

impl Connections {
    /// The live connection, or the one dial in flight; if there is none, the caller starts it.
    #[inline]
    pub(super) fn find(&mut self, channel: &Arc<Shared>, now: Instant) -> Found {
        if channel.closed.is_told() {
            return Found::Closed;
        }
        if let Some(current) = &self.current {
            if current.link.pulse.is_idle(now, channel.config.max_idle) {
                current.link.retire(RetireReason::Idle, now);
            }
            if current.link.table.is_accepting() {
                return Found::Live(Arc::clone(current));
            }
            if let Some(current) = self.current.take() {
                channel.live.store(None);
                self.backoff.after_end(&current, &channel.config);
            }
        }
        if let Some(dial) = &self.dial {
            return Found::Dialing(dial.in_flight.clone());
        }
        if let Some((remaining, source)) = self.backoff.pending(now) {
            return Found::BackingOff { remaining, source };
        }
        let (sender, result) = watch::channel(None);
        let stop = CancellationToken::new();
        let in_flight = DialInFlight(result);
        self.dial = Some(Dial { in_flight: in_flight.clone(), stop: stop.clone() });
        let guard = DialGuard { channel: Arc::downgrade(channel), result: sender };
        Found::ToDial(NewDial { guard, stop }, in_flight)
    }

    /// Ends the dial in flight.
    pub(super) fn end_dial(&mut self) {
        if let Some(dial) = self.dial.take() {
            dial.stop.cancel();
        }
    }

    /// Forgets the connections that have ended, but for their tally.
    pub(super) fn prune(&mut self) {
        let past = &mut self.past;
        self.open.retain(|connection| {
            let open = !connection.has_ended();
            if !open {
                past.add(connection.link.table.tally());
            }
            open
        });
    }

    /// What is pending, and what has ended so far.
    pub(super) fn tally(&self) -> Tally {
        let mut sum = self.past;
        self.open.iter().for_each(|connection| sum.add(connection.link.table.tally()));
        sum
    }
}

impl DialInFlight {
    /// Waits for its end. Cancel safe: the dial goes on for whoever else waits for it.
    pub(super) async fn ended(mut self) -> Result<(), Arc<io::Error>> {
        match self.0.wait_for(Option::is_some).await {
            Ok(done) => done.clone().unwrap_or(Ok(())),
            Err(_) => Err(Arc::new(io::Error::other("the dial was abandoned"))),
        }
    }
}

/// A dial whose place is taken and whose task is not started yet.
pub(super) struct NewDial {
    guard: DialGuard,
    stop: CancellationToken,
}

impl NewDial {
    /// Starts its task, which goes on whoever waits for it.
    pub(super) fn start(self) {
        let Self { guard, stop } = self;
        tokio::spawn(async move { stop.run_until_cancelled(dial(guard)).await });
    }
}

/// Dials under its own limit, whoever waits for it, and makes the result the channel's current connection.
async fn dial(guard: DialGuard) {
    let Some(channel) = guard.channel.upgrade() else { return };
    let (connector, peer) = (Arc::clone(&channel.connector), channel.peer.clone());
    let limit = channel.config.connect_timeout;
    // The dial must not keep alive a channel that nobody uses.
    drop(channel);
    let dialed = match timeout(limit, connector.connect(&peer)).await {
        Ok(dialed) => dialed,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no connection within {} ms", limit.as_millis()),
        )),
    };
    guard.finish(dialed);
}

/// Frees the dial's place and tells its waiters, also when the dial panics, is stopped or never runs.
struct DialGuard {
    channel: Weak<Shared>,
    result: watch::Sender<DialResult>,
}

impl DialGuard {
    fn finish(&self, dialed: io::Result<Stream>) {
        let result = match self.channel.upgrade() {
            Some(channel) => settle(&channel, dialed),
            None => Err(Arc::new(io::Error::other("the channel was dropped"))),
        };
        self.result.send_replace(Some(result));
    }
}

impl Drop for DialGuard {
    fn drop(&mut self) {
        if self.result.borrow().is_none() {
            self.finish(Err(io::Error::other("the dial panicked or was stopped")));
        }
    }
}

/// Makes a dialled stream the current connection, or starts the pause after a failure.
fn settle(channel: &Arc<Shared>, dialed: io::Result<Stream>) -> Result<(), Arc<io::Error>> {
    let now = Instant::now();
    let mut connections = channel.connections.lock();
    connections.dial = None;
    let opened = match dialed {
        Ok(stream) if !channel.closed.is_told() => {
            let (config, pending) = (Arc::clone(&channel.config), Arc::clone(&channel.pending));
            let (attention, spares) = (Arc::clone(&channel.attention), Arc::clone(&channel.spares));
            let link = Link::new(config, pending, attention, spares, now);
            let (connection, task) = Connection::open(stream, link, &channel.peer);
            connections.current = Some(Arc::clone(&connection));
            channel.live.store(Some(Arc::clone(&connection)));
            connections.open.push(connection);
            Ok(task)
        }
        Ok(_) => Err(Arc::new(io::Error::other("the transport was closed"))),
        Err(error) => {
            let error = Arc::new(error);
            connections.backoff.fail(Arc::clone(&error), now, &channel.config);
            tracing::info!(peer = %channel.peer, error = %error, "dial failed");
            Err(error)
        }
    };
    drop(connections);
    let result = opened.map(|task| {
        tokio::spawn(task);
        channel.start_keeper();
    });
    channel.attention.call();
    result
}

/// The pause after failures: doubled with each, capped, jittered; over with the first valid response.
#[derive(Debug, Default)]
struct Backoff {
    failures: u32,
    pause: Option<Pause>,
}

#[derive(Debug)]
struct Pause {
    until: Instant,
    cause: Arc<io::Error>,
}

impl Backoff {
    fn pending(&self, now: Instant) -> Option<(Duration, Arc<io::Error>)> {
        let pause = self.pause.as_ref().filter(|pause| now < pause.until)?;
        Some((pause.until - now, Arc::clone(&pause.cause)))
    }

    /// A connection has gone: a fault before its first valid response counts as a failed dial.
    fn after_end(&mut self, connection: &Connection, config: &TransportConfig) {
        if connection.link.pulse.last_response().is_some() {
            *self = Self::default();
            return;
        }
        if let Some(closing) = connection.closing()
            && !matches!(closing.cause, CloseCause::Retired(_) | CloseCause::Closed)
        {
            let cause = io::Error::new(closing.cause.io_kind(), closing.cause.clone());
            self.fail(Arc::new(cause), closing.at, config);
        }
    }

    fn fail(&mut self, cause: Arc<io::Error>, at: Instant, config: &TransportConfig) {
        let full =
            config.min_backoff.saturating_mul(1 << self.failures.min(MAX_DOUBLINGS)).min(config.max_backoff);
        self.failures = self.failures.saturating_add(1);
        self.pause = at.checked_add(jittered(full)).map(|until| Pause { until, cause });
    }
}

/// Between half of `full` and all of it, so that clients which failed together do not come back together.
fn jittered(full: Duration) -> Duration {
    // Each `RandomState` is seeded anew, which is all the randomness that is needed here.
    let random = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(u32::MAX);
    full.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

const MAX_DOUBLINGS: u32 = 16;
