//! Faults of the listening side, as a script: what a peer in trouble does, on purpose and countable.
//!
//! A [`FaultScript`] holds [`Fault`]s. A server that was [bound with it](crate::Server::bind_with_faults), or that
//! [serves one stream](crate::serve_with_faults) with it, asks it about each request and each connection. A script can
//! be changed while the server runs.
//!
//! Faults have a text form, too, which [`Fault`] reads with `parse`:
//!
//! ```text
//! [code=N,][skip=N,][times=N,]FAULT
//!
//! delay=MS             carried out at once, answered so much later
//! never                carried out, never answered
//! ignore               neither carried out nor answered
//! twice                answered twice
//! opaque=unknown       answered under a number that no request has
//! opaque=foreign       answered under the number of a request of another connection
//! answer=CODE[:REMARK] not carried out, answered with this; the remark runs to the end
//! garbage[=BYTES]      carried out, answered with bytes that are no frame [64]
//!
//! connect=slow:MS      what the client sends is not looked at for so long
//! connect=refuse       nothing listens; without skip and times
//! stop-reading[=BYTES] so many bytes are read, and no more [0]
//! cut=in:BYTES:HOW     after so many bytes of the client
//! cut=out:BYTES:HOW    after so many bytes to the client; HOW is fin, rst or half
//! ```
//!
//! The first group is about requests, of operation `code` or of any; the second about connections.
//!
//! # Examples
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{net::SocketAddr, sync::Arc, time::Duration};
//! use bytes::Bytes;
//! use rocketmq_transport::{
//!     Certainty, Code, Command, Peer, Request, RequestDeadline, Response, Server, ServerConfig, Transport,
//!     TransportConfig,
//!     fault::{Fault, FaultScript, RequestFault},
//! };
//!
//! let done = |_: Command, _: SocketAddr| async {
//!     Some(Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body: Bytes::new() })
//! };
//! let script = FaultScript::new([Fault::on(Code(310), RequestFault::Never).times(1)]);
//! let address = SocketAddr::from(([127, 0, 0, 1], 0));
//! let server =
//!     Server::bind_with_faults(address, Arc::new(done), ServerConfig::default(), script.clone()).await?;
//!
//! let (transport, peer) = (Transport::new(TransportConfig::default())?, Peer::from(server.local_addr()));
//! let send = || Request { code: Code(310), header: &(), body: Bytes::new() };
//! let soon = RequestDeadline::after(Duration::from_millis(50));
//! let error = transport.call(&peer, send(), soon).await.expect_err("the first is never answered");
//! assert_eq!(error.certainty(), Certainty::Unknown);
//! transport.call(&peer, send(), RequestDeadline::after(Duration::from_secs(5))).await?;
//! assert_eq!(script.struck(), 1);
//! # Ok(()) }
//! ```

mod listen;
mod requests;
mod script;
mod spec;
mod stream;
#[cfg(feature = "test-support")]
#[cfg(test)]
mod tests;

use std::{borrow::Cow, time::Duration};

pub(crate) use self::{listen::next_of, requests::Faulty};
pub use self::{
    script::FaultScript,
    spec::FaultError,
    stream::{Abort, FaultyStream},
};
use crate::Code;

/// One fault: what happens, to which requests or connections, and to how many of them.
///
/// # Examples
///
/// ```
/// use rocketmq_transport::{
///     Code,
///     fault::{Fault, RequestFault},
/// };
///
/// let busy = RequestFault::Answer { code: Code(2), remark: "busy".into() };
/// let fault = Fault::on(Code(310), busy).skip(3).times(2);
/// assert_eq!("code=310,skip=3,times=2,answer=2:busy".parse(), Ok(fault));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    target: Target,
    skip: u64,
    times: u64,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestFault {
    /// It is carried out at once and answered this much later; until then it counts as in flight.
    Delay(Duration),
    /// It is carried out and never answered.
    Never,
    /// It is neither carried out nor answered.
    Ignore,
    /// It is carried out and answered twice.
    Twice,
    /// It is carried out, and its answer comes under another number.
    Opaque(WrongOpaque),
    /// It is not carried out, and answered with this.
    Answer {
        /// The status.
        code: Code,
        /// The text beside it; empty for none.
        remark: Cow<'static, str>,
    },
    /// It is carried out, and in place of its answer come so many bytes that are no frame: 0xFF, again and again.
    Garbage {
        /// How many.
        bytes: usize,
    },
}

/// Under which number an answer comes that does not have its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongOpaque {
    /// One that no client counts up to: the request's own with every bit inverted.
    Unknown,
    /// That of the latest request that came on another connection; while there was none, as `Unknown`. If a request
    /// in flight on this connection happens to have it, that is the one that is answered.
    Foreign,
}

/// What happens to a connection. It is decided when the connection is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionFault {
    /// The system accepts it, and nothing of it is read for so long.
    Slow(Duration),
    /// Nothing listens, so the system refuses it. It holds while the script has it, for all new connections: skip and
    /// times say nothing, since nobody counts what the system refuses. Those that are open stay so. Without a
    /// listening socket it has no effect.
    Refuse,
    /// So many bytes of it are read, and no more; it stays open until the server ends, also when the client has left.
    StopReading {
        /// How many.
        after: u64,
    },
    /// It ends after so many bytes.
    Cut {
        /// The direction that is counted.
        direction: Direction,
        /// After how many of its bytes. 0 means at once where it is `In`, and in place of the first byte where it is
        /// `Out`.
        after: u64,
        /// How it ends.
        how: Cut,
    },
}

/// A direction of a connection, as the listening side sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// What the client sends.
    In,
    /// What the client is sent.
    Out,
}

/// How a connection ends. Whole requests that have come before are carried out in any case; nothing is answered after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Our direction ends in order, and what the client still sends is thrown away unseen.
    Fin,
    /// It is reset: the client's reads and writes fail, and what was on its way is lost.
    Rst,
    /// Our direction ends in order, and what the client still sends is read and carried out.
    Half,
}

/// What a fault is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// Requests of this code, or any.
    Request(Option<Code>, RequestFault),
    Connection(ConnectionFault),
}

impl Fault {
    /// A fault of each request of operation `code`.
    #[must_use]
    pub const fn on(code: Code, fault: RequestFault) -> Self {
        Self::with(Target::Request(Some(code), fault))
    }

    /// A fault of each request.
    #[must_use]
    pub const fn on_any(fault: RequestFault) -> Self {
        Self::with(Target::Request(None, fault))
    }

    /// A fault of each connection.
    #[must_use]
    pub const fn on_connection(fault: ConnectionFault) -> Self {
        Self::with(Target::Connection(fault))
    }

    /// Spares the first so many of those it is about. Default 0.
    #[must_use]
    pub const fn skip(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Strikes so many times and then no more. Default without limit.
    #[must_use]
    pub const fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    const fn with(target: Target) -> Self {
        Self { target, skip: 0, times: u64::MAX }
    }
}
