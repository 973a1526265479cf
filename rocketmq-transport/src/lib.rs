//! Apache RocketMQ requests and responses over TCP, under one deadline.
//!
//! [`Transport::call`] carries a request through admission, connecting, signing, queueing, writing and the wait for its
//! response. If it fails, the [`TransportError`] says in which [`Stage`], where the time went ([`StageClock`]), and what may
//! be assumed of the peer ([`Certainty`]). Neighbours on the same connection keep their outcome and their connection.
//!
//! The crate knows frames, headers and codes, and neither topics nor brokers: those are `rocketmq-client`'s.
//!
//! ```no_run
//! # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use bytes::Bytes;
//! use rocketmq_transport::{Certainty, Code, Peer, Request, RequestDeadline, Transport, TransportConfig};
//!
//! let transport = Transport::new(TransportConfig::default())?;
//! let broker: Peer = "127.0.0.1:10911".parse()?;
//! let request = Request { code: Code(28), header: &(), body: Bytes::new() };
//! let deadline = RequestDeadline::after(Duration::from_millis(500));
//! match transport.call(&broker, request, deadline).await {
//!     Ok(completed) => println!("{} bytes", completed.response.body().len()),
//!     Err(error) if error.certainty() == Certainty::Unknown => println!("the broker may have acted: {error}"),
//!     Err(error) => println!("the broker has not acted: {error}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | what it adds | default |
//! |---|---|---|
//! | `fault-script` | a listening side that misbehaves as it is told to | no |
//! | `test-support` | scripted peers and controlled streams, for tests; includes `fault-script` | no |
//!
//! # Logs
//!
//! With `tracing`: each failed request is one `warn` line, target `rocketmq::request`, with its stage, certainty and the
//! milliseconds spent in each stage; late responses are `debug`, unsolicited ones `warn`, connections `info`. No body, field
//! value or secret is in any of them.

#![cfg_attr(
    rocketmq_loom,
    expect(dead_code, unused_imports, reason = "the model checker compiles only what its models need")
)]

mod budget;
mod codec;
mod command;
mod deadline;
mod error;
mod generation;
mod lane;
mod late;
mod peer;
mod pending;
mod request;
mod stage;
mod sync;
mod usage;

// What follows is not compiled for the model checker: it stands on tasks and sockets.
#[cfg(not(rocketmq_loom))]
mod call;
#[cfg(not(rocketmq_loom))]
mod channel;
#[cfg(not(rocketmq_loom))]
mod closed;
#[cfg(not(rocketmq_loom))]
mod config;
#[cfg(not(rocketmq_loom))]
mod connect;
#[cfg(not(rocketmq_loom))]
mod connection;
#[cfg(not(rocketmq_loom))]
mod failure_log;
#[cfg(all(feature = "fault-script", not(rocketmq_loom)))]
pub mod fault;
#[cfg(not(rocketmq_loom))]
mod in_flight;
#[cfg(not(rocketmq_loom))]
mod link;
#[cfg(not(rocketmq_loom))]
mod options;
#[cfg(not(rocketmq_loom))]
mod pulse;
#[cfg(not(rocketmq_loom))]
mod reader;
#[cfg(not(rocketmq_loom))]
mod sent;
#[cfg(not(rocketmq_loom))]
mod server;
#[cfg(not(rocketmq_loom))]
mod signer;
#[cfg(not(rocketmq_loom))]
mod spare;
#[cfg(not(rocketmq_loom))]
mod storm;
#[cfg(not(rocketmq_loom))]
mod stream;
#[cfg(all(feature = "test-support", not(rocketmq_loom)))]
pub mod test_support;
#[cfg(not(rocketmq_loom))]
mod transport;
#[cfg(not(rocketmq_loom))]
mod trip;
#[cfg(not(rocketmq_loom))]
mod writer;

pub use budget::{Class, Dimension, Level, Limit, Permit, Refusal};
pub use codec::{
    Command, EncodeError, EncodeOptions, Field, FirstBytes, FrameError, FrameLimits, JsonError, decode_frame,
    normalize_json,
};
pub use command::{Code, FieldError, Fields, Header, HeaderEncoding, Opaque, Request, Response};
pub use deadline::RequestDeadline;
pub use error::{CloseCause, RetireReason, TransportError, TransportErrorKind};
pub use generation::PendingRequestOwner;
pub use late::LateAnswer;
pub use peer::{Peer, PeerError};
pub(crate) use pending::{Completion, PendingRequestTable};
pub use stage::{Certainty, Stage, StageClock};
pub use usage::{PeerUsage, Usage, Used};

#[cfg(not(rocketmq_loom))]
pub use self::{
    config::{ConfigError, FailureLog, RetirePolicy, TransportConfig},
    connect::{ConnectError, Connecting, Connector, DialFailure, Resolver, Resolving, TcpConnector},
    failure_log::FailureLine,
    in_flight::{InFlight, InFlightRequest},
    options::{Admission, CallOptions, IntoCallOptions},
    server::{Handler, ResponseEncoding, Server, ServerConfig, serve},
    signer::{AclError, AclSigner, SignError, Signature, Signer, Signing},
    storm::{Fold, Storm, Verdict},
    stream::{Acceptance, Stream},
    transport::{CloseReport, Completed, Transport, TransportBuilder, Written},
};
