//! What the models share: how far they are explored, and how a task waits in them.

use std::task::{Context, Poll, Wake};

use loom::thread::{self, Thread};

/// Runs `model` under every interleaving with at most [`PREEMPTIONS`] pre-emptions.
pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

/// Waits as a task does: it polls again only when it was woken, so a lost wake-up is a deadlock here.
pub(crate) fn block_on<T>(mut poll: impl FnMut(&Context<'_>) -> Poll<T>) -> T {
    let waker = std::sync::Arc::new(Unpark(thread::current())).into();
    loop {
        match poll(&Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// Most faults of interleaving show with two; a third costs little in models of this size.
const PREEMPTIONS: usize = 3;
