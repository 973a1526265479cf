//! Apache RocketMQ requests over TCP under one deadline.

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
mod peer;
mod pending;
mod request;
mod stage;
mod sync;
mod usage;

// What follows is not compiled for the model checker: it stands on tasks and sockets.
#[cfg(not(rocketmq_loom))]
mod channel;
#[cfg(not(rocketmq_loom))]
mod config;
#[cfg(not(rocketmq_loom))]
mod connect;
#[cfg(not(rocketmq_loom))]
mod connection;
#[cfg(not(rocketmq_loom))]
mod failure_log;
#[cfg(not(rocketmq_loom))]
mod link;
#[cfg(not(rocketmq_loom))]
mod reader;
#[cfg(not(rocketmq_loom))]
mod server;
#[cfg(not(rocketmq_loom))]
mod signer;
#[cfg(not(rocketmq_loom))]
mod stream;
#[cfg(not(rocketmq_loom))]
mod transport;
#[cfg(not(rocketmq_loom))]
mod trip;
#[cfg(not(rocketmq_loom))]
mod wait;
#[cfg(not(rocketmq_loom))]
mod writer;

pub use budget::{Class, Dimension, Level, Limit, Permit, Refusal};
pub use codec::{
    Command, EncodeError, EncodeOptions, FirstBytes, FrameError, FrameLimits, JsonError, decode_frame,
    normalize_json,
};
pub use command::{Code, FieldError, Fields, Header, HeaderEncoding, Opaque, Request, Response};
pub use deadline::RequestDeadline;
pub use error::{CloseCause, RetireReason, TransportError, TransportErrorKind};
pub use generation::PendingRequestOwner;
pub use peer::{Peer, PeerError};
pub(crate) use pending::{Completion, PendingRequestTable};
pub use stage::{Certainty, Stage, StageClock};
pub use usage::{PeerUsage, Usage, Used};

#[cfg(not(rocketmq_loom))]
pub use self::{
    config::{ConfigError, FailureLog, RetirePolicy, TransportConfig},
    connect::{ConnectError, Connecting, Connector, DialFailure, Resolver, Resolving, TcpConnector},
    server::{Handler, ResponseEncoding, Server, ServerConfig, serve},
    signer::{AclError, AclSigner, SignError, Signature, Signer, Signing},
    stream::{Acceptance, Stream},
    transport::{Admission, CallOptions, CloseReport, Completed, Transport, TransportBuilder, Written},
};
