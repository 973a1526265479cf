//! The background tasks of a client, with one owner that ends them and awaits their end.

use std::future::Future;

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Starts tasks and ends them together. Cheap to clone.
///
/// A task holds clones of what it uses, never of the client itself, so that the drop of the last handle is
/// seen; that drop ends the tasks through [`stop_on_drop`](Self::stop_on_drop).
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    stop: CancellationToken,
    running: TaskTracker,
}

impl Tasks {
    /// Runs `task` until it ends or is stopped, which may be at any of its awaits.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.running.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }

    /// Stops the tasks and waits until each has ended.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.running.close();
        self.running.wait().await;
    }

    /// A guard whose drop stops the tasks.
    pub(crate) fn stop_on_drop(&self) -> tokio_util::sync::DropGuard {
        self.stop.clone().drop_guard()
    }
}
