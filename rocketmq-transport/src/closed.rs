//! That a transport takes no more requests.

use std::sync::{
    Arc,
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Told once by the close of a transport. Each request asks, which takes no lock, and each of its waits is ended by it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed {
    told: Arc<AtomicBool>,
    waits: CancellationToken,
}

impl Closed {
    pub(crate) fn tell(&self) {
        // Before the waits end, so that whoever goes on because of that finds it told.
        self.told.store(true, Release);
        self.waits.cancel();
    }

    pub(crate) fn is_told(&self) -> bool {
        self.told.load(Acquire)
    }

    /// Waits until it is told. Cancel safe.
    pub(crate) fn told(&self) -> WaitForCancellationFuture<'_> {
        self.waits.cancelled()
    }
}
