//! An Apache RocketMQ client.

mod protocol;
