//! The answer that comes after its request has ended.

use std::{fmt, pin::pin};

use tokio::sync::Notify;

use crate::{
    Command,
    request::{Late, RequestRecord},
    sync::Arc,
};

/// The answer to a request that ended without it, should it still come; from
/// [`TransportError::late_answer`](crate::TransportError::late_answer).
///
/// It can come as long as the connection lives and remembers the request: for `late_window`, or `max_drain` once the
/// connection was retired. A handle keeps the answer, and no connection.
#[derive(Clone)]
pub struct LateAnswer {
    record: Arc<RequestRecord>,
    /// Told of every late answer of the connection, and of its end.
    changed: Arc<Notify>,
}

impl LateAnswer {
    pub(crate) const fn new(record: Arc<RequestRecord>, changed: Arc<Notify>) -> Self {
        Self { record, changed }
    }

    /// Waits for the answer; `None` once it can no longer come. It has no limit of its own but those above.
    ///
    /// # Cancel safety
    ///
    /// It can be dropped and called again, also by several at once: all get the answer.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn doc(error: rocketmq_transport::TransportError) {
    /// use std::time::Duration;
    /// use tokio::time::timeout;
    ///
    /// if let Some(late) = error.late_answer()
    ///     && let Ok(Some(response)) = timeout(Duration::from_secs(10), late.wait()).await
    /// {
    ///     println!("it was answered after all: {}", response.code());
    /// }
    /// # }
    /// ```
    pub async fn wait(&self) -> Option<Command> {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.record.late() {
                Late::Came(response) => return Some(response),
                Late::Gone => return None,
                Late::MayCome => changed.await,
            }
        }
    }
}

impl fmt::Debug for LateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.record.late() {
            Late::MayCome => "may come",
            Late::Came(_) => "came",
            Late::Gone => "gone",
        };
        write!(f, "LateAnswer({state})")
    }
}
