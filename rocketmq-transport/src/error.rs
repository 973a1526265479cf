//! Why a request failed, where, when, and what the peer may have.

mod kind;

use std::{error::Error, fmt, net::SocketAddr, sync::Arc, time::Duration};

pub use self::kind::{CloseCause, RetireReason, TransportErrorKind};
use crate::{Certainty, Code, LateAnswer, Opaque, Peer, PendingRequestOwner, Stage, StageClock};

/// A request that did not succeed. One pointer wide and cheap to clone: one lost connection ends many calls.
#[derive(Clone)]
pub struct TransportError(Arc<Report>);

/// Everything that is known of a failed request.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) kind: TransportErrorKind,
    pub(crate) certainty: Certainty,
    pub(crate) stage: Stage,
    pub(crate) clock: StageClock,
    pub(crate) peer: Peer,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) generation: Option<PendingRequestOwner>,
    pub(crate) opaque: Option<Opaque>,
    pub(crate) code: Code,
    pub(crate) budget: Duration,
    pub(crate) bytes: u64,
    pub(crate) last_heard: Option<Duration>,
    /// Since the last byte of this request had left, whatever its clock had counted before.
    pub(crate) waited: Option<Duration>,
    pub(crate) client_stalled: Option<Duration>,
    pub(crate) late: Option<LateAnswer>,
}

impl TransportError {
    pub(crate) fn new(report: Report) -> Self {
        Self(Arc::new(report))
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &TransportErrorKind {
        &self.0.kind
    }

    /// How far the request got.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.0.stage
    }

    /// What may be assumed of the peer.
    #[must_use]
    pub fn certainty(&self) -> Certainty {
        self.0.certainty
    }

    /// The peer the request was meant for, as it was configured.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.0.peer
    }

    /// The resolved address, once connected.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        self.0.remote
    }

    /// The connection that carried the request, from [`Stage::Signing`] on.
    #[must_use]
    pub fn generation(&self) -> Option<PendingRequestOwner> {
        self.0.generation
    }

    /// The request's correlation number, from [`Stage::BeforeWrite`] on.
    #[must_use]
    pub fn opaque(&self) -> Option<Opaque> {
        self.0.opaque
    }

    /// The operation asked for.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The budget the deadline came from.
    #[must_use]
    pub fn budget(&self) -> Duration {
        self.0.budget
    }

    /// The time from the start of the request to its end.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.clock.elapsed()
    }

    /// Where that time went.
    #[must_use]
    pub fn stage_clock(&self) -> &StageClock {
        &self.0.clock
    }

    /// The bytes that admission charges the request with; 0 where it never asked.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// For a request whose response did not come: how long before its end the peer was last heard on the
    /// connection, in whatever it said; `None` where it was never heard on it.
    #[must_use]
    pub fn last_heard(&self) -> Option<Duration> {
        self.0.last_heard
    }

    /// For a request whose response did not come: whether the peer was heard after our last byte had left. A peer
    /// that was heard lives, and is slow with this request; one that was not may be frozen or gone. `None` for a
    /// request that never got so far.
    #[must_use]
    pub fn heard_since_written(&self) -> Option<bool> {
        if self.stage() != Stage::AwaitingResponse {
            return None;
        }
        let waited = self.0.waited?;
        Some(self.0.last_heard.is_some_and(|heard| heard < waited))
    }

    /// For an expired deadline: how long our own process stood still, where that was 50 ms or more: it noticed the
    /// deadline so much too late, or had not polled the connection's reader for so long since an earlier response was
    /// missed. It may have had the response lying in its socket.
    #[must_use]
    pub fn client_stalled(&self) -> Option<Duration> {
        self.0.client_stalled
    }

    /// The answer, should it still come; `None` where none can.
    #[must_use]
    pub fn late_answer(&self) -> Option<&LateAnswer> {
        self.0.late.as_ref()
    }

    /// The stable identifier of the failure kind, as in `docs/errors.md`.
    #[must_use]
    pub fn code_id(&self) -> &'static str {
        self.0.kind.code_id()
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &*self.0;
        write!(
            f,
            "{} {}: request {} to {} ended in {} ({}) after {} ms of {}",
            self.code_id(),
            report.kind,
            report.code,
            report.peer,
            report.stage,
            report.certainty,
            self.elapsed().as_millis(),
            Budget(report.budget),
        )
    }
}

impl fmt::Debug for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.kind.cause()
    }
}

/// A budget in milliseconds, or never.
struct Budget(Duration);

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Duration::MAX { f.write_str("no limit") } else { write!(f, "{} ms", self.0.as_millis()) }
    }
}
