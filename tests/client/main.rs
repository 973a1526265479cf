//! The producer against scripted name servers and brokers in memory, on paused time.

mod evidence;
mod failure_log;
mod late;
mod lifecycle;
mod lookups;
mod network;
mod promises;
mod resolve;
mod retries;
mod sends;
