//! An Apache RocketMQ client.

#[cfg(feature = "embedded-broker")]
mod embedded;
mod message;
mod protocol;
mod queue;

#[cfg(feature = "embedded-broker")]
pub use embedded::{
    AutoCreateTopics, EmbeddedBroker, EmbeddedBrokerBuilder, EmbeddedBrokerError, KnownClient, StoredMessage,
    TopicError,
};
pub use message::{Message, MessageError};
pub use queue::MessageQueue;
