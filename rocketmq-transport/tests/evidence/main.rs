//! What a failure offers as evidence beside its stage and certainty: whether the peer was heard, whether our own process
//! stalled, why there is no connection, the answer that comes late, what is in flight, and how storms are counted.

mod in_flight;
mod late;
mod lost;
mod storms;
#[cfg(test)]
mod support;
mod timeouts;
