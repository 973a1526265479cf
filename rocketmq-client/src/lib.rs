//! An Apache RocketMQ client.

mod message;
mod protocol;
mod queue;

pub use message::{Message, MessageError};
pub use queue::MessageQueue;
