//! One request, one deadline: where each request stops, what may be assumed of the peer, and that nobody else is
//! hurt, with the peer's own count as the witness.
//!
//! Time is paused and pipes are in memory, but for `sockets`, where the socket is the point.

#![cfg(test)]

mod admission;
mod backoff;
mod closing;
mod deadline;
mod dropped;
mod hostile;
mod late;
mod logged;
mod queued;
mod retiring;
mod runtime_end;
mod sockets;
mod support;
mod torn;
mod waiting;
mod writing;
