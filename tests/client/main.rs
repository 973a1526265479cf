//! The producer against scripted name servers and brokers in memory, on paused time.

mod failure_log;
mod lifecycle;
mod limits;
mod lookups;
mod network;
mod promises;
mod retries;
mod sends;
