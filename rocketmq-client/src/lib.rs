//! An Apache RocketMQ client.

#[cfg(feature = "embedded-broker")]
mod embedded;
mod protocol;

#[cfg(feature = "embedded-broker")]
pub use embedded::{
    AutoCreateTopics, EmbeddedBroker, EmbeddedBrokerBuilder, EmbeddedBrokerError, KnownClient, StoredMessage,
    TopicError,
};
