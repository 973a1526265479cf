//! The wire format against frames that Apache RocketMQ's own classes wrote.

mod decoding;
mod encoding;
mod samples;
mod vectors;
