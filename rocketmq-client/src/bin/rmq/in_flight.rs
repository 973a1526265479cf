//! What is in flight, for people and for programs.

use std::fmt;

use rocketmq_client::Producer;
use rocketmq_transport::{Code, InFlightRequest};
use serde::Serialize;

/// What was in flight when it was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Snapshot {
    requests: Vec<Seen>,
    /// How many more there were.
    omitted: u64,
}

/// One request, or what is left of one that has ended without its answer.
#[derive(Debug, Serialize)]
struct Seen {
    peer: String,
    generation: u64,
    opaque: i32,
    /// The code of its operation.
    request: i32,
    /// None for one that has ended, and whose answer may still come.
    stage: Option<&'static str>,
    age_ms: u64,
    /// None where there is no limit.
    budget_left_ms: Option<u64>,
    bytes: u64,
    #[serde(skip)]
    text: String,
}

impl Snapshot {
    /// Everything that `producer` has in flight.
    pub(crate) fn of(producer: &Producer) -> Self {
        Self::of_those(producer, |_| true)
    }

    /// The messages of `producer` in flight; none where there are none. Its heartbeats and look-ups are left out.
    pub(crate) fn of_messages(producer: &Producer) -> Option<Self> {
        let left = Self::of_those(producer, |request| request.code == SEND_MESSAGE_V2);
        Some(left).filter(|left| !left.requests.is_empty() || left.omitted > 0)
    }

    fn of_those(producer: &Producer, wanted: impl Fn(&InFlightRequest) -> bool) -> Self {
        let seen = producer.in_flight(MAX_SEEN);
        let requests: Vec<_> = seen.requests.iter().filter(|request| wanted(request)).collect();
        let omitted = seen.omitted + requests.len().saturating_sub(MAX_SHOWN) as u64;
        Self { requests: requests.into_iter().take(MAX_SHOWN).map(Seen::from).collect(), omitted }
    }
}

impl From<&InFlightRequest> for Seen {
    fn from(request: &InFlightRequest) -> Self {
        Self {
            peer: request.peer.to_string(),
            generation: request.generation.get(),
            opaque: request.opaque.0,
            request: request.code.0,
            stage: request.stage.map(|stage| stage.as_str()),
            age_ms: u64::try_from(request.age.as_millis()).unwrap_or(u64::MAX),
            budget_left_ms: u64::try_from(request.budget_left.as_millis()).ok(),
            bytes: request.bytes,
            text: request.to_string(),
        }
    }
}

/// A line for each, under one that counts them.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in flight: {}", self.requests.len() as u64 + self.omitted)?;
        self.requests.iter().try_for_each(|request| write!(f, "\n  {}", request.text))?;
        match self.omitted {
            0 => Ok(()),
            omitted => write!(f, "\n  and {omitted} more"),
        }
    }
}

/// What messages are sent with (`RequestCode.SEND_MESSAGE_V2`).
const SEND_MESSAGE_V2: Code = Code(310);
/// So many are looked at: more than may be sent at a time.
const MAX_SEEN: usize = 20_000;
/// So many are shown one by one.
const MAX_SHOWN: usize = 100;
