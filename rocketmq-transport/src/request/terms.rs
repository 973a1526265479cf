//! What a request is asked with, and what its transitions are told and tell.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::{Class, Code, Command, Permit, RequestDeadline, Stage, TransportErrorKind, stage::FrameFate};

/// An encoded request: header and body, and the permit for their bytes.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Bytes,
    /// Given back when the frame is dropped: at withdrawal, or when the writer has let go of it.
    pub(crate) bytes: Permit,
}

impl Frame {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Drops the body; hands out the permit, and the head's memory.
    #[inline]
    pub(crate) fn let_go(self) -> (Permit, Vec<u8>) {
        (self.bytes, self.head)
    }
}

/// Whether a response is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Oneway,
}

/// What a request was asked with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) code: Code,
    /// What admission charged.
    pub(crate) bytes: u64,
    pub(crate) class: Class,
    pub(crate) kind: Kind,
    pub(crate) deadline: RequestDeadline,
    /// A request that has not started by then never does.
    pub(crate) start_by: Option<Instant>,
    /// How long the peer holds the response back on purpose.
    pub(crate) suspend: Duration,
}

impl Terms {
    /// A bound of the bytes of its frame.
    #[inline]
    pub(crate) const fn frame_bytes(&self) -> u64 {
        self.bytes.saturating_sub(OVERHEAD)
    }

    /// The instant at which a request that has not started ends.
    #[inline]
    pub(crate) fn start_limit(&self) -> Option<Instant> {
        match (self.start_by, self.deadline.at()) {
            (Some(start_by), Some(at)) => Some(start_by.min(at)),
            (start_by, at) => start_by.or(at),
        }
    }

    /// When the peer's silence may be judged by a request whose last byte was accepted at `written`; `None`
    /// means never.
    pub(crate) fn judge_at(&self, written: Instant, min_silence: Duration) -> Option<Instant> {
        let silent = written.checked_add(self.suspend)?.checked_add(min_silence)?;
        Some(silent.max(self.deadline.at()?))
    }

    /// Whether a request that has not started at `now` still may.
    #[inline]
    pub(crate) fn may_start(&self, now: Instant) -> bool {
        self.start_limit().is_none_or(|limit| now < limit)
    }

    /// What has come at `now` of the two that end a request which has not started; the deadline goes first.
    #[inline]
    pub(crate) fn due(&self, now: Instant) -> Option<End> {
        if self.deadline.is_expired(now) {
            Some(End::Deadline)
        } else {
            self.start_by.filter(|start_by| *start_by <= now).map(|_| End::StartBy)
        }
    }
}

/// What a request retains beside its frame: its record, its places in lane and table, and the caller's wait.
pub(crate) const OVERHEAD: u64 = 512;

/// What ends a request from outside, other than a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Its deadline has come.
    Deadline,
    /// Its start-by instant has come; a request that has started goes on.
    StartBy,
    /// Its caller has gone.
    Drop,
}

impl End {
    /// What its caller is told; nothing if that has gone.
    pub(crate) const fn kind(self) -> Option<TransportErrorKind> {
        match self {
            Self::Deadline => Some(TransportErrorKind::DeadlineExpired),
            Self::StartBy => Some(TransportErrorKind::NotStarted),
            Self::Drop => None,
        }
    }
}

/// How a request ended, for its caller.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Command),
    /// A one-way request's last byte was accepted.
    Written,
    Failed {
        kind: TransportErrorKind,
        stage: Stage,
        fate: FrameFate,
    },
}

/// What ending a request from outside came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Not one byte of it will reach the socket: out of lane and table with it.
    Withdrawn,
    /// Its tombstone stays in the table; the peer may be judged by it once its frame is written.
    Buried { written: Option<Instant> },
    /// Out of the table with it; it leaves no tombstone.
    Removed,
    /// It is offered: the writer decides, and wakes the caller.
    Noted,
    /// It had ended, or has started where only the start was limited.
    Nothing,
}

/// What the writer finds when it wants to offer a frame.
#[derive(Debug)]
pub(crate) enum Offer {
    /// The frame, which goes back with [`RequestRecord::settle`](super::RequestRecord::settle).
    Frame(Frame),
    /// Nothing to write; take it out of lane and table.
    Gone,
}

/// How much of an offered frame the socket accepted.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Nothing; the frame goes back.
    Nothing(Frame),
    /// Some bytes, not all; the writer keeps the frame and finishes it.
    Some,
    /// All of it.
    All,
}

/// What an offered or written frame came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Back in its place.
    Queued,
    /// Withdrawn while offered: out of lane and table with it.
    Withdrawn,
    /// Started; its caller waits.
    Started,
    /// Started, and done: answered, or one-way and written. Out of the table with it.
    Finished,
    /// Started, and ended without a tombstone: out of the table with it.
    Removed,
    /// Started, and its caller has gone: its tombstone stays in the table.
    Buried { written: Option<Instant> },
}

/// What a response came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It ended the request: out of the table with it.
    Completed,
    /// The frame is offered; the writer decides.
    Noted,
    /// Nobody waits for it any more: out of the table with it.
    Late { by: Duration },
    /// The request has not left, takes no response, or has had one: nothing changes.
    Unsolicited,
}

/// What is known of the answer to a request that has ended.
#[derive(Clone, Debug)]
pub(crate) enum Late {
    /// A tombstone waits for it.
    MayCome,
    /// It came.
    Came(Command),
    /// It was not waited for, or no longer is.
    Gone,
}

/// Where a request is, and how old it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) place: Place,
    /// Since its deadline was frozen.
    pub(crate) age: Duration,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Stage(Stage),
    Tombstone,
    Ended,
}
