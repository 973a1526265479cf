//! The public entry: peer to channel, calls, closing.

use std::time::Duration;
use std::sync::Arc;
use tokio::time::Instant;

use crate::{Class, Command, ConfigError, Opaque, Peer, PendingRequestOwner, Permit, Request, RequestDeadline, Stage, StageClock, TransportConfig, TransportError, Usage, connect::Connector, signer::Signer};

/// How a call is to be carried out.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CallOptions {
    /// When the call ends at the latest.
    pub deadline: RequestDeadline,
    /// When a byte of the frame must have left at the latest; a call that has started goes on to its deadline.
    /// Default: no such instant.
    pub start_by: Option<Instant>,
    /// The budget and lane it uses. Default data.
    pub class: Class,
    /// What to do when the budget is full. Default refuse.
    pub admission: Admission,
    /// How long the peer has been asked to hold the answer back; its silence is judged only after it. Default zero.
    pub suspend: Duration,
    /// The time spent so far, which the call goes on with. Default: a clock that starts with the call.
    pub clock: Option<StageClock>,
}
/// What to do when the budget is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admission {
    /// Fail at once.
    #[default]
    Refuse,
    /// Wait in turn until the deadline.
    Wait,
}
impl From<RequestDeadline> for CallOptions {
    fn from(deadline: RequestDeadline) -> Self {
        Self { deadline, start_by: None, class: Class::Data, admission: Admission::Refuse, suspend: Duration::ZERO, clock: None }
    }
}

/// A call that was answered.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completed {
    /// The response, whatever its status.
    pub response: Command,
    /// Where the time went.
    pub clock: StageClock,
    /// The connection that carried it.
    pub generation: PendingRequestOwner,
    /// Its correlation number there.
    pub opaque: Opaque,
}

/// A one-way request whose last byte was accepted by the socket, which says no more than that.
#[derive(Debug)]
#[non_exhaustive]
pub struct Written {
    /// Where the time went.
    pub clock: StageClock,
    /// The connection that carried it.
    pub generation: PendingRequestOwner,
    /// Its correlation number there.
    pub opaque: Opaque,
}

/// What a graceful close left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseReport {
    /// Requests that were answered during the close.
    pub finished: u64,
    /// Requests that ended otherwise during the close, by their own deadline or a lost connection.
    pub failed: u64,
    /// Requests that the close itself ended when its bound came.
    pub abandoned: u64,
}

/// All channels of a client.
#[derive(Clone, Debug)]
pub struct Transport {}

impl Transport {
    /// doc
    pub fn new(config: TransportConfig) -> Result<Self, ConfigError> { Self::builder(config).build() }
    /// doc
    pub fn builder(config: TransportConfig) -> TransportBuilder { let _ = config; unimplemented!() }
    /// doc
    pub async fn call(&self, peer: &Peer, request: Request<'_>, options: impl Into<CallOptions>) -> Result<Completed, TransportError> { let _ = (peer, request, options.into()); unimplemented!() }
    /// doc
    pub async fn oneway(&self, peer: &Peer, request: Request<'_>, options: impl Into<CallOptions>) -> Result<Written, TransportError> { let _ = (peer, request, options.into()); unimplemented!() }
    /// A client-level permit for bytes kept outside of a request, such as bodies kept for a retry.
    pub fn retain(&self, bytes: u64) -> Result<Permit, crate::Refusal> { let _ = bytes; unimplemented!() }
    /// doc
    pub fn usage(&self) -> Usage { unimplemented!() }
    /// Graceful
    pub async fn close(&self, bound: Duration) -> CloseReport { let _ = bound; unimplemented!() }
}

/// doc
#[derive(Debug)]
pub struct TransportBuilder {}
impl TransportBuilder {
    /// doc
    pub fn connector(self, _connector: Arc<dyn Connector>) -> Self { self }
    /// doc
    pub fn signer(self, _signer: Arc<dyn Signer>) -> Self { self }
    /// doc
    pub fn build(self) -> Result<Transport, ConfigError> { unimplemented!() }
}
