//! The suite against the real Apache RocketMQ, which it fetches and starts itself.

mod harness;
