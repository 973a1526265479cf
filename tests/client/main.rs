//! The producer against scripted name servers and brokers in memory, on paused time.

mod evidence;
mod failure_log;
mod late;
mod lifecycle;
mod limits;
mod lookups;
mod network;
mod promises;
mod resolve;
mod retries;
mod sends;
