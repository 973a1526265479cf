//! The real Apache RocketMQ on loopback: fetched with Maven, started with a fresh store, read back with its
//! own Java consumer, and gone when the test is.
//!
//! The harness speaks to it with a few lines of its own, not with the crates under test.

mod cache;
mod cluster;
mod distribution;
mod dump;
mod error;
mod jvm;
mod node;
mod process;
mod rpc;
mod run_folder;
mod wait;

pub use cluster::{Cluster, ClusterSpec, Member};
pub use distribution::java_program;
pub use dump::Dumped;
pub use error::HarnessError;
pub use node::BrokerSpec;
pub use wait::wait_for;
