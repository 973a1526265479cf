//! The lock and the atomics of record, table, lane and budget: the standard ones, or a model checker's.

#[cfg(not(rocketmq_loom))]
pub(crate) use std::sync::{Arc, MutexGuard, atomic};

#[cfg(rocketmq_loom)]
pub(crate) use loom::sync::{Arc, MutexGuard, atomic};

#[cfg(rocketmq_loom)]
use loom::sync::Mutex as Inner;
#[cfg(not(rocketmq_loom))]
use std::sync::Mutex as Inner;

/// A mutex without poisoning: no foreign code runs under our locks, so a panic cannot leave them half changed.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(Inner<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Inner::new(value))
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(all(test, rocketmq_loom))]
pub(crate) mod model;
