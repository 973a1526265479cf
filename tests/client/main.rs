//! The producer against scripted name servers and brokers in memory, on paused time.

mod lifecycle;
mod lookups;
mod network;
mod retries;
mod sends;
