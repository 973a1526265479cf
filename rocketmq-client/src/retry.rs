//! What comes after an attempt: a pure function of what happened, the policy and the deadline.

use std::time::Duration;

use rocketmq_transport::{Certainty, Code, Level, Refusal, RequestDeadline, TransportErrorKind};
use tokio::time::Instant;

use crate::{
    protocol::{code, send::SendStatus},
    random,
};

/// Whether a send whose outcome is unknown may be repeated, which stores the message twice where it was
/// stored after all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Duplicates {
    /// It may: at least once, as users of RocketMQ expect.
    #[default]
    Allow,
    /// It may not: at most once. An attempt of which a byte has left is the last one unless it is known not
    /// to have been carried out.
    Forbid,
}

/// What a broker's answer to a send says of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It is stored.
    Stored(SendStatus),
    /// This broker did not take it; another may.
    Declined,
    /// No broker will take it.
    Rejected,
    /// It may be stored.
    Doubtful,
}

impl Answer {
    /// Reads the answer that has status `code` and `remark`.
    pub(crate) fn of(code: Code, remark: &str) -> Self {
        ANSWERS
            .iter()
            .find(|row| row.code == code && remark.contains(row.remark))
            .map_or(Self::Doubtful, |row| row.answer)
    }
}

/// What to do after an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Ask another broker, or this one again where [`Again`] allows it and no other is left.
    Next(Again),
    /// Nothing more can be done for the message.
    Stop,
}

/// When the broker of a failed attempt may be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Whenever no other is left.
    Now,
    /// When its back-off has ended, which still lasts so long. This attempt never reached a dial.
    AfterBackoff(Duration),
    /// After a pause that grows with each failed dial.
    AfterDial,
    /// After a pause with jitter, since it is busy.
    AfterJitter,
    /// Never within this send: it may have the message, and its connection lives.
    Never,
}

/// The decision after a broker's `answer`.
pub(crate) const fn after_answer(answer: Answer, duplicates: Duplicates) -> Decision {
    match (answer, duplicates) {
        (Answer::Declined, _) => Decision::Next(Again::AfterJitter),
        (Answer::Doubtful, Duplicates::Allow) => Decision::Next(Again::Never),
        (Answer::Doubtful, Duplicates::Forbid) | (Answer::Rejected | Answer::Stored(_), _) => Decision::Stop,
    }
}

/// The decision after a failure of the transport.
pub(crate) fn after_failure(
    kind: &TransportErrorKind,
    certainty: Certainty,
    duplicates: Duplicates,
) -> Decision {
    match (certainty, duplicates) {
        (Certainty::Unknown, Duplicates::Forbid) => return Decision::Stop,
        (Certainty::NotSent | Certainty::Refused | Certainty::Unknown, _) => {}
    }
    match kind {
        // The same everywhere: its owner has closed the transport, or the request fits no broker's limits.
        TransportErrorKind::Closed
        | TransportErrorKind::TooLarge(_)
        | TransportErrorKind::InvalidRequest(_)
        | TransportErrorKind::QueueSaturated(Refusal { level: Level::Client, .. }) => Decision::Stop,
        TransportErrorKind::QueueSaturated(_) => Decision::Next(Again::AfterJitter),
        TransportErrorKind::BackingOff { remaining, .. } => Decision::Next(Again::AfterBackoff(*remaining)),
        TransportErrorKind::ConnectFailed(_) => Decision::Next(Again::AfterDial),
        TransportErrorKind::ConnectionLost(_) => Decision::Next(Again::Now),
        _ if certainty == Certainty::Unknown => Decision::Next(Again::Never),
        _ => Decision::Next(Again::Now),
    }
}

/// Whether another broker could take another attempt after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// It could.
    Another,
    /// This is the last attempt, or no other broker is left.
    Last,
}

/// The time an attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptPlan {
    start_within: Duration,
    end_within: Duration,
}

impl AttemptPlan {
    /// Shares out what remains of `deadline` at `now`.
    pub(crate) fn new(
        deadline: RequestDeadline,
        now: Instant,
        prospect: Prospect,
        duplicates: Duplicates,
    ) -> Self {
        let remaining = deadline.remaining(now);
        let shared = if remaining == Duration::MAX { NEVER_SHARE } else { remaining };
        match (prospect, duplicates) {
            (Prospect::Another, Duplicates::Allow) => {
                Self { start_within: shared / 2, end_within: shared * 2 / 3 }
            }
            // Once a byte has left no other attempt may follow, so the wait may use all there is.
            (Prospect::Another, Duplicates::Forbid) => {
                Self { start_within: shared / 2, end_within: remaining }
            }
            (Prospect::Last, _) => Self { start_within: remaining, end_within: remaining },
        }
    }

    /// When a byte of an attempt that starts at `started` has to have left; `None` where only its deadline
    /// counts.
    pub(crate) fn start_by(&self, started: Instant) -> Option<Instant> {
        (self.start_within < self.end_within).then(|| started + self.start_within)
    }

    /// When an attempt that starts at `started` ends at the latest, within the `deadline` of the send.
    pub(crate) fn deadline(&self, deadline: RequestDeadline, started: Instant) -> RequestDeadline {
        // Without a share kept back it has all that remains, which ends with the send.
        if self.start_within == self.end_within {
            return deadline;
        }
        started.checked_add(self.end_within).map_or(deadline, |end| deadline.capped_at(end))
    }

    /// Within what time of the attempt's start a byte of it had to leave; [`Duration::MAX`] means no limit.
    #[must_use]
    pub const fn start_within(&self) -> Duration {
        self.start_within
    }

    /// Within what time of the attempt's start it had to end; [`Duration::MAX`] means no limit.
    #[must_use]
    pub const fn end_within(&self) -> Duration {
        self.end_within
    }
}

/// Whether an attempt after the first may begin with so much time remaining.
pub(crate) fn is_worth_starting(remaining: Duration) -> bool {
    remaining >= MIN_REMAINING
}

/// The pauses before a broker is asked again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// The transport's pause after a first failed dial.
    pub(crate) min_dial: Duration,
    /// Its longest one.
    pub(crate) max_dial: Duration,
}

impl Backoff {
    /// The pause after the `nth` failed dial (from 1): the longest that the transport makes.
    pub(crate) fn after_dial(&self, nth: u32) -> Duration {
        doubled(self.min_dial, nth).min(self.max_dial)
    }

    /// The pause after the `nth` answer of a busy broker (from 1): it doubles, and up to half of it is taken
    /// away at random.
    pub(crate) fn after_busy(&self, nth: u32) -> Duration {
        doubled(BUSY_PAUSE, nth).min(MAX_BUSY_PAUSE).mul_f64(1.0 - random::fraction() / 2.0)
    }
}

fn doubled(first: Duration, nth: u32) -> Duration {
    first.saturating_mul(2u32.saturating_pow(nth.saturating_sub(1)))
}

/// One row of the table of answers; of two rows for one code the first that fits counts.
struct Row {
    code: Code,
    /// What the remark must contain.
    remark: &'static str,
    answer: Answer,
}

const fn row(code: Code, remark: &'static str, answer: Answer) -> Row {
    Row { code, remark, answer }
}

/// Every answer we know the meaning of; any other may mean that the message is stored.
const ANSWERS: [Row; 17] = [
    row(Code::SUCCESS, "", Answer::Stored(SendStatus::Stored)),
    row(code::FLUSH_DISK_TIMEOUT, "", Answer::Stored(SendStatus::FlushDiskTimeout)),
    row(code::SLAVE_NOT_AVAILABLE, "", Answer::Stored(SendStatus::SlaveNotAvailable)),
    row(code::FLUSH_SLAVE_TIMEOUT, "", Answer::Stored(SendStatus::FlushSlaveTimeout)),
    row(code::SYSTEM_BUSY, "", Answer::Declined),
    row(code::GO_AWAY, "", Answer::Declined),
    row(code::SERVICE_NOT_AVAILABLE, "", Answer::Declined),
    row(code::TOPIC_NOT_EXIST, "", Answer::Declined),
    row(code::NO_PERMISSION, "sending message is forbidden", Answer::Declined),
    row(code::NO_PERMISSION, "", Answer::Rejected),
    // How brokers before 5.3 say that the sender is not authorised.
    row(Code::SYSTEM_ERROR, "AclException", Answer::Rejected),
    row(Code::SYSTEM_ERROR, "", Answer::Doubtful),
    row(Code::REQUEST_CODE_NOT_SUPPORTED, "", Answer::Rejected),
    row(code::MESSAGE_ILLEGAL, "", Answer::Rejected),
    row(code::VERSION_NOT_SUPPORTED, "", Answer::Rejected),
    row(code::INVALID_PARAMETER, "", Answer::Rejected),
    row(code::ILLEGAL_OPERATION, "", Answer::Rejected),
];

/// What must be left for an attempt after the first.
const MIN_REMAINING: Duration = Duration::from_millis(50);
/// What is shared out where the deadline is never.
const NEVER_SHARE: Duration = Duration::from_secs(3);
/// The first pause after a busy broker, jittered down to half.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause after a busy broker.
const MAX_BUSY_PAUSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
