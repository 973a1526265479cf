//! The suite against the real Apache RocketMQ, which it fetches and starts itself.

mod access;
mod harness;
mod name_servers;
mod pair;
mod refused;
mod restarted;
mod round_trip;
mod setup;
mod topics;
mod traffic;
mod workload;
