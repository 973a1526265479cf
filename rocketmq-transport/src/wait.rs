//! The caller's one wait: for its record to end.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use tokio::time::{Instant, sleep_until};

use crate::{
    StageClock,
    link::Link,
    request::{End, Outcome, RequestRecord},
};

/// Waits for `record` to end: by its response, its deadline, its start-by instant, or the end of `link`.
///
/// Dropping the wait abandons the request: a queued frame is withdrawn, a begun one leaves a tombstone.
pub(crate) async fn outcome(link: &Link, record: Arc<RequestRecord>) -> (Outcome, StageClock) {
    let mut guard = Guard { link, record: &record, armed: true };
    let (mut limit, mut end) = match (record.terms.start_by, record.terms.deadline.at()) {
        (Some(start_by), at) if at.is_none_or(|at| start_by < at) => (Some(start_by), End::StartBy),
        (_, at) => (at, End::Deadline),
    };
    let mut timer = pin!(sleep_until(limit.unwrap_or_else(Instant::now)));
    let ended = poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = record.poll_outcome(cx) {
                return Poll::Ready(ended);
            }
            if limit.is_none() {
                return Poll::Pending;
            }
            std::task::ready!(timer.as_mut().poll(cx));
            link.end(&record, end, Instant::now());
            // Ended by that, or started, or offered: then the writer ends it after its poll, and wakes us.
            limit = if end == End::StartBy { record.terms.deadline.at() } else { None };
            end = End::Deadline;
            if let Some(at) = limit {
                timer.as_mut().reset(at);
            }
        }
    })
    .await;
    guard.armed = false;
    ended
}

/// Abandons the request when the wait for it is dropped.
struct Guard<'a> {
    link: &'a Link,
    record: &'a Arc<RequestRecord>,
    armed: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.link.end(self.record, End::Drop, Instant::now());
        }
    }
}
