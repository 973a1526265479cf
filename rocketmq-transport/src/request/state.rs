//! The states of a request.

use tokio::time::Instant;

use super::{End, Frame, Outcome};
use crate::{Command, Stage, stage::FrameFate};

/// ```text
///             ┌─── no byte accepted ───┐
///             ▼                        │
/// Queued ──offered for one poll──▶ Offered ──some──▶ Writing ──last byte──▶ AwaitingResponse
///   │ deadline, drop, close            │ (notes what happens)     │                 │
///   ▼                                  └── applied after the poll │                 │
/// Ended (withdrawn)                                               │                 │
///                Writing, AwaitingResponse ──response─────────────┴──▶ Ended ◀──────┘
///                Writing, AwaitingResponse ──deadline, drop──▶ Tombstone ──response──▶ AnsweredLate
///                every state ──close──▶ Ended, with the certainty of the writer's final count
/// ```
///
/// What the caller has not collected yet is `untold`.
#[derive(Debug)]
pub(super) enum State {
    Queued(Frame),
    /// The writer has the frame for one poll of the socket.
    Offered(Noted),
    /// `cut` once the writer has stopped for good short of the frame's end, on a stream that vouches.
    Writing {
        fate: FrameFate,
    },
    AwaitingResponse {
        written: Instant,
    },
    /// Untold is the stage in which the deadline came.
    Tombstone {
        ended: Instant,
        untold: Option<Stage>,
    },
    /// The answer to a tombstone, for whoever still wants to know.
    AnsweredLate {
        response: Command,
        untold: Option<Stage>,
    },
    Ended {
        untold: Option<Outcome>,
    },
}

/// What happened while the frame was offered, in order.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) end: Option<End>,
    pub(super) response: Option<Command>,
    /// Whether the response came before the end.
    pub(super) response_first: bool,
}

impl State {
    /// What the caller has to be told, once.
    #[inline]
    pub(super) fn take_untold(&mut self) -> Option<Outcome> {
        match self {
            Self::Ended { untold } => untold.take(),
            Self::Tombstone { untold, .. } | Self::AnsweredLate { untold, .. } => {
                untold.take().and_then(|stage| failed(End::Deadline, stage))
            }
            Self::Queued(_) | Self::Offered(_) | Self::Writing { .. } | Self::AwaitingResponse { .. } => None,
        }
    }

    /// Tombstone → AnsweredLate.
    pub(super) fn answer_late(&mut self, response: Command) {
        if let Self::Tombstone { untold, .. } = *self {
            *self = Self::AnsweredLate { response, untold };
        }
    }

    /// Leaves nothing but what the caller has to be told.
    pub(super) fn end(&mut self) {
        *self = Self::Ended { untold: self.take_untold() };
    }
}

/// What the caller of a request is told that `end` ended in `stage`; nothing if it has gone.
pub(super) fn failed(end: End, stage: Stage) -> Option<Outcome> {
    end.kind().map(|kind| Outcome::Failed { kind, stage, fate: FrameFate::MayBeWhole })
}

impl Noted {
    pub(super) const fn is_nothing(&self) -> bool {
        self.end.is_none() && self.response.is_none()
    }

    /// The first end counts; a start-by instant gives way to what ends a started request too.
    pub(super) fn note(&mut self, end: End) {
        if self.end.is_none_or(|noted| noted == End::StartBy) {
            self.end = Some(end);
        }
    }
}
