//! How far a request got, where its time went, and what may be assumed of the peer.

use std::{fmt, time::Duration};

use tokio::time::Instant;

/// How far a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Finding out which peer to ask.
    Route,
    /// Asking the budgets for a place and bytes.
    Admission,
    /// Waiting for a live connection.
    Connect,
    /// Waiting for the signer.
    Signing,
    /// Queued; no byte of the frame has left.
    BeforeWrite,
    /// Some bytes of the frame were accepted by the socket, not all.
    Writing,
    /// All bytes were accepted; the response has not come.
    AwaitingResponse,
}

impl Stage {
    /// Every stage, in the order a request passes them.
    pub const ALL: [Self; 7] = [
        Self::Route,
        Self::Admission,
        Self::Connect,
        Self::Signing,
        Self::BeforeWrite,
        Self::Writing,
        Self::AwaitingResponse,
    ];

    /// The name as logs, errors and the command line print it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Route => "Route",
            Self::Admission => "Admission",
            Self::Connect => "Connect",
            Self::Signing => "Signing",
            Self::BeforeWrite => "BeforeWrite",
            Self::Writing => "Writing",
            Self::AwaitingResponse => "AwaitingResponse",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What may be assumed of the peer after a failure. Never wrong: where there is doubt it is [`Unknown`].
///
/// [`Unknown`]: Self::Unknown
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// The peer cannot have received the whole frame.
    NotSent,
    /// The peer, or a local limit, said no before acting.
    Refused,
    /// The peer may have acted.
    Unknown,
}

impl Certainty {
    /// The name as logs, errors and the command line print it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "NotSent",
            Self::Refused => "Refused",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of a frame whose request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameFate {
    /// The writer has stopped for good short of the frame's end, on a stream that vouches for what it did
    /// not report as accepted.
    CutShort,
    /// Anything else: all of it may leave, or has left.
    MayBeWhole,
}

/// The one place where stage becomes certainty; refusals are [`Certainty::Refused`] whatever their stage.
pub(crate) const fn certainty(stage: Stage, fate: FrameFate) -> Certainty {
    match (stage, fate) {
        (Stage::Route | Stage::Admission | Stage::Connect | Stage::Signing | Stage::BeforeWrite, _)
        | (Stage::Writing, FrameFate::CutShort) => Certainty::NotSent,
        (Stage::Writing, FrameFate::MayBeWhole) | (Stage::AwaitingResponse, _) => Certainty::Unknown,
    }
}

/// Where the time of a request went: one duration per stage passed, and one for pauses between attempts.
///
/// The durations add up to the time between its start and the instant it was stopped at. It is a value:
/// a call takes the clock so far and goes on with it.
#[derive(Clone, Copy, Debug)]
pub struct StageClock {
    /// Nanoseconds by stage, the pause last.
    spent: [u64; PAUSE + 1],
    /// Bit `n` is set once slot `n` was entered.
    entered: u8,
    current: u8,
    since: Instant,
}

impl StageClock {
    /// A clock that starts at `now` in `stage`.
    #[must_use]
    #[inline]
    pub const fn start(stage: Stage, now: Instant) -> Self {
        Self { spent: [0; PAUSE + 1], entered: 1 << stage as u8, current: stage as u8, since: now }
    }

    /// Charges the time since the last mark to the stage left and enters `stage`.
    #[inline]
    pub fn enter(&mut self, stage: Stage, now: Instant) {
        self.mark(stage as u8, now);
    }

    /// Charges the time since the last mark to the stage left and enters a pause between attempts.
    pub fn pause(&mut self, now: Instant) {
        self.mark(PAUSE as u8, now);
    }

    /// Charges the time since the last mark to the current stage, which goes on.
    #[inline]
    pub fn stop(&mut self, now: Instant) {
        self.mark(self.current, now);
    }

    /// Adds the times of `other`, which ended where this clock goes on at `now`.
    pub fn absorb(&mut self, other: &Self, now: Instant) {
        for (spent, more) in self.spent.iter_mut().zip(other.spent) {
            *spent = spent.saturating_add(more);
        }
        self.entered |= other.entered;
        self.current = other.current;
        self.since = now;
    }

    /// The stage it is in; `None` in a pause between attempts.
    #[must_use]
    pub fn stage(&self) -> Option<Stage> {
        Stage::ALL.get(usize::from(self.current)).copied()
    }

    /// The time spent in `stage`; `None` where it was never entered.
    #[must_use]
    pub fn spent(&self, stage: Stage) -> Option<Duration> {
        self.slot(stage as usize)
    }

    /// The time spent pausing between attempts; `None` where there was no pause.
    #[must_use]
    pub fn paused(&self) -> Option<Duration> {
        self.slot(PAUSE)
    }

    /// The stages entered and the time spent in each, in order.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, Duration)> + '_ {
        Stage::ALL.into_iter().filter_map(|stage| Some((stage, self.spent(stage)?)))
    }

    /// The sum over stages and pauses, up to the last mark.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.spent.iter().fold(0, |sum, more| sum.saturating_add(*more)))
    }

    /// The sum over stages and pauses up to `now`, for a clock that has not been stopped.
    #[must_use]
    pub fn elapsed_at(&self, now: Instant) -> Duration {
        self.elapsed() + now.saturating_duration_since(self.since)
    }

    /// The instant of the last mark.
    pub(crate) const fn marked_at(&self) -> Instant {
        self.since
    }

    fn slot(&self, slot: usize) -> Option<Duration> {
        (self.entered & (1 << slot) != 0).then(|| Duration::from_nanos(self.spent[slot]))
    }

    #[inline]
    fn mark(&mut self, slot: u8, now: Instant) {
        if now > self.since {
            let passed = now - self.since;
            let spent = &mut self.spent[self.current as usize];
            *spent = spent.saturating_add(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX));
            self.since = now;
        }
        self.current = slot;
        self.entered |= 1 << slot;
    }
}

/// The slot after the last stage.
const PAUSE: usize = Stage::ALL.len();

#[cfg(all(test, not(rocketmq_loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stage_durations_add_up_to_the_elapsed_time(marks in proptest::collection::vec((0usize..8, 0u64..1 << 40), 0..50)) {
            let start = Instant::now();
            let mut clock = StageClock::start(Stage::Route, start);
            let mut now = start;
            for (slot, step) in marks {
                now += Duration::from_nanos(step);
                match Stage::ALL.get(slot) {
                    Some(stage) => clock.enter(*stage, now),
                    None => clock.pause(now),
                }
            }
            clock.stop(now);
            let sum: Duration = clock.stages().map(|(_, spent)| spent).sum::<Duration>() + clock.paused().unwrap_or_default();
            prop_assert_eq!(sum, now - start);
            prop_assert_eq!(clock.elapsed(), now - start);
        }
    }

    #[test]
    fn the_stage_is_the_one_entered_last_and_none_in_a_pause() {
        let now = Instant::now();
        let mut clock = StageClock::start(Stage::Route, now);
        clock.enter(Stage::Writing, now);
        clock.stop(now);
        assert_eq!(clock.stage(), Some(Stage::Writing));
        clock.pause(now);
        assert_eq!(clock.stage(), None);
    }

    #[test]
    fn a_stage_never_entered_is_none_rather_than_zero() {
        let clock = StageClock::start(Stage::Admission, Instant::now());
        assert_eq!(clock.spent(Stage::Admission), Some(Duration::ZERO));
        assert_eq!(clock.spent(Stage::Connect), None);
        assert_eq!(clock.paused(), None);
    }
}
