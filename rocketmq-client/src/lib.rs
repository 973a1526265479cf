//! An Apache RocketMQ client.

mod attempt;
#[cfg(feature = "embedded-broker")]
mod embedded;
mod error;
mod failure_log;
mod heartbeat;
mod identity;
mod message;
mod producer;
mod protocol;
mod queue;
mod random;
mod retry;
mod routes;
mod tasks;

pub use attempt::Attempt;
#[cfg(feature = "embedded-broker")]
pub use embedded::{
    AutoCreateTopics, EmbeddedBroker, EmbeddedBrokerBuilder, EmbeddedBrokerError, KnownClient, StoredMessage,
    TopicError,
};
pub use error::{SendError, SendErrorKind};
pub use message::{Message, MessageError};
pub use producer::{
    BuildError, OnewayReceipt, Producer, ProducerBuilder, SendOptions, SendReceipt, ShutdownReport,
    StartError,
};
pub use protocol::send::SendStatus;
pub use queue::MessageQueue;
pub use retry::{AttemptPlan, Duplicates};
pub use routes::{NameServerError, NameServerFailure, RouteError, RouteErrorKind};
