//! When a connection was last used and heard, and whether its reader is polled.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// When a connection was last used and heard, in nanoseconds since it was opened. The values stand for
/// themselves: nothing else is published through them, hence `Relaxed` throughout.
#[derive(Debug)]
pub(crate) struct Pulse {
    opened: Instant,
    last_used: AtomicU64,
    /// 0 while nothing has been read.
    last_heard: AtomicU64,
    /// 0 while no response has been read.
    last_response: AtomicU64,
    /// When the reader, asked by the keeper, last found the socket empty.
    found_empty: AtomicU64,
    /// Since when the reader is asked to look at the socket and was not polled; 0 while it is not asked.
    asked: AtomicU64,
    look: Notify,
}

impl Pulse {
    pub(crate) fn new(opened: Instant) -> Self {
        Self {
            opened,
            last_used: AtomicU64::new(0),
            last_heard: AtomicU64::new(0),
            last_response: AtomicU64::new(0),
            found_empty: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            look: Notify::new(),
        }
    }

    pub(crate) fn mark_used(&self, now: Instant) {
        self.last_used.store(self.since_opened(now), Relaxed);
    }

    /// Whether it was not used for more than `limit`.
    #[inline]
    pub(crate) fn is_idle(&self, now: Instant, limit: Duration) -> bool {
        let unused = self.since_opened(now).saturating_sub(self.last_used.load(Relaxed));
        Duration::from_nanos(unused) > limit
    }

    pub(crate) fn last_used(&self) -> Instant {
        self.opened + Duration::from_nanos(self.last_used.load(Relaxed))
    }

    pub(crate) fn mark_heard(&self, now: Instant) {
        self.last_heard.store(self.since_opened(now).max(1), Relaxed);
        self.asked.store(0, Relaxed);
    }

    /// When the peer was last heard, in whatever it said.
    pub(crate) fn last_heard(&self) -> Option<Instant> {
        match self.last_heard.load(Relaxed) {
            0 => None,
            nanos => Some(self.opened + Duration::from_nanos(nanos)),
        }
    }

    pub(crate) fn last_response(&self) -> Option<Instant> {
        match self.last_response.load(Relaxed) {
            0 => None,
            nanos => Some(self.opened + Duration::from_nanos(nanos)),
        }
    }

    /// Asks the reader to look at the socket, and to say when it has found it empty.
    pub(crate) fn ask_to_look(&self, now: Instant) {
        // Who asks first counts: since then the reader was not polled.
        let _ = self.asked.compare_exchange(0, self.since_opened(now).max(1), Relaxed, Relaxed);
        self.look.notify_one();
    }

    /// Waits to be asked, which may have been before. Cancel safe.
    pub(crate) async fn asked_to_look(&self) {
        self.look.notified().await;
    }

    /// For how long the reader has been asked to look and was not polled: our own process's doing.
    pub(crate) fn unpolled(&self, now: Instant) -> Duration {
        match self.asked.load(Relaxed) {
            0 => Duration::ZERO,
            nanos => now.saturating_duration_since(self.opened + Duration::from_nanos(nanos)),
        }
    }

    pub(crate) fn mark_found_empty(&self, now: Instant) {
        self.found_empty.store(self.since_opened(now), Relaxed);
        self.asked.store(0, Relaxed);
    }

    pub(crate) fn found_empty(&self) -> Instant {
        self.opened + Duration::from_nanos(self.found_empty.load(Relaxed))
    }

    pub(crate) fn mark_response(&self, now: Instant) {
        self.last_response.store(self.since_opened(now).max(1), Relaxed);
    }

    #[inline]
    fn since_opened(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.opened).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_is_asked_and_not_polled_is_stalled_since_the_first_question() {
        let opened = Instant::now();
        let at = |ms| opened + Duration::from_millis(ms);
        let pulse = Pulse::new(opened);
        assert_eq!(pulse.unpolled(at(500)), Duration::ZERO, "nobody has asked");
        pulse.ask_to_look(at(100));
        pulse.ask_to_look(at(150));
        assert_eq!(pulse.unpolled(at(180)), Duration::from_millis(80));

        pulse.mark_found_empty(at(200));
        assert_eq!(pulse.unpolled(at(500)), Duration::ZERO);
        pulse.ask_to_look(at(300));
        pulse.mark_heard(at(310));
        assert_eq!(pulse.unpolled(at(500)), Duration::ZERO, "one that reads is polled");
    }
}
