//! The suite against the real Apache RocketMQ, which it fetches and starts itself.

mod access;
mod harness;
mod name_servers;
mod refused;
mod round_trip;
mod setup;
mod topics;
mod workload;
