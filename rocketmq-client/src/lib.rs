//! An Apache RocketMQ client.

mod attempt;
mod error;
#[cfg(feature = "embedded-broker")]
mod embedded;
mod message;
mod protocol;
mod queue;
mod random;
mod retry;
mod routes;

pub use attempt::Attempt;
#[cfg(feature = "embedded-broker")]
pub use embedded::{
    AutoCreateTopics, EmbeddedBroker, EmbeddedBrokerBuilder, EmbeddedBrokerError, KnownClient, StoredMessage,
    TopicError,
};
pub use error::{SendError, SendErrorKind};
pub use message::{Message, MessageError};
pub use protocol::send::SendStatus;
pub use queue::MessageQueue;
pub use retry::{AttemptPlan, Duplicates};
pub use routes::{NameServerError, NameServerFailure, RouteError, RouteErrorKind};
