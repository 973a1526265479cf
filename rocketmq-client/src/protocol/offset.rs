//! Asking for the offsets of a queue.

use std::borrow::Cow;

use rocketmq_transport::{Command, FieldError, Fields, Header};

/// The header of a question for the largest, the smallest or a certain offset of a queue
/// (`GetMaxOffsetRequestHeader`, `GetMinOffsetRequestHeader`, `SearchOffsetRequestHeader`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffsetRequest<'a> {
    pub(crate) topic: Cow<'a, str>,
    pub(crate) queue_id: i32,
    /// What is searched for, in milliseconds since the Unix epoch; only a search has it.
    pub(crate) timestamp: Option<i64>,
    /// Which of several messages of one time is meant, `LOWER` where it is left out; only a search has it.
    pub(crate) boundary: Option<Cow<'a, str>>,
}

impl OffsetRequest<'static> {
    /// Reads the header of `command`.
    ///
    /// # Errors
    ///
    /// A required field is missing, or a number does not parse.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        let [topic, queue_id, timestamp, boundary] =
            command.select(["topic", "queueId", "timestamp", "boundaryType"]);
        Ok(Self {
            topic: Cow::Owned(topic.require()?),
            queue_id: queue_id.require()?,
            timestamp: timestamp.parse()?,
            boundary: boundary.into_value().map(|boundary| Cow::Owned(boundary.into_owned())),
        })
    }
}

impl Header for OffsetRequest<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("topic", &self.topic);
        fields.int("queueId", self.queue_id.into());
        fields.opt_int("timestamp", self.timestamp);
        fields.opt_str("boundaryType", self.boundary.as_deref());
    }
}

/// The header of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetResponse {
    pub(crate) offset: i64,
}

impl Header for OffsetResponse {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.int("offset", self.offset);
    }
}
