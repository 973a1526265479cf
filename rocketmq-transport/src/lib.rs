//! Apache RocketMQ requests over TCP under one deadline.

mod budget;
mod channel;
mod codec;
mod command;
mod config;
mod connect;
mod connection;
mod deadline;
mod error;
mod failure_log;
mod generation;
mod lane;
mod link;
mod peer;
mod pending;
mod reader;
mod request;
mod server;
mod signer;
mod stage;
mod stream;
mod sync;
mod transport;
mod trip;
mod usage;
mod writer;

pub use budget::{Class, Dimension, Level, Limit, Permit, Refusal};
pub use codec::{
    Command, EncodeError, EncodeOptions, FirstBytes, FrameError, FrameLimits, JsonError, decode_frame,
    normalize_json,
};
pub use command::{Code, FieldError, Fields, Header, HeaderEncoding, Opaque, Request, Response};
pub use config::{ConfigError, FailureLog, RetirePolicy, TransportConfig};
pub use connect::{ConnectError, Connecting, Connector, DialFailure, Resolver, Resolving, TcpConnector};
pub use deadline::RequestDeadline;
pub use error::{CloseCause, RetireReason, TransportError, TransportErrorKind};
pub use generation::PendingRequestOwner;
pub use peer::{Peer, PeerError};
pub(crate) use pending::{Completion, PendingRequestTable};
pub use server::{Handler, ResponseEncoding, Server, ServerConfig, serve};
pub use signer::{AclError, AclSigner, SignError, Signature, Signer, Signing};
pub use stage::{Certainty, Stage, StageClock};
pub use stream::{Acceptance, Stream};
pub use transport::{Admission, CallOptions, CloseReport, Completed, Transport, TransportBuilder, Written};

pub use usage::{PeerUsage, Usage, Used};
