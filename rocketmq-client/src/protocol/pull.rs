//! Reading the messages of a queue.

use std::borrow::Cow;

use rocketmq_transport::{Command, FieldError, Fields, Header};

/// The header of a pull (`PullMessageRequestHeader`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PullRequest<'a> {
    pub(crate) group: Cow<'a, str>,
    pub(crate) topic: Cow<'a, str>,
    pub(crate) queue_id: i32,
    /// The next offset that is wanted.
    pub(crate) queue_offset: i64,
    pub(crate) max_messages: i32,
    /// Which of the other fields count; see [`PullRequest::WITH_SUBSCRIPTION`].
    pub(crate) sys_flag: i32,
    /// The filter: tags, or `*` for every message.
    pub(crate) subscription: Cow<'a, str>,
    /// The language of the filter: `TAG` where it is empty.
    pub(crate) expression_type: Cow<'a, str>,
}

impl PullRequest<'static> {
    /// The bit of `sys_flag` that says that the request has its filter with it (`PullSysFlag.FLAG_SUBSCRIPTION`).
    pub(crate) const WITH_SUBSCRIPTION: i32 = 4;

    /// Reads the header of `command`.
    ///
    /// # Errors
    ///
    /// A required field is missing, or a number does not parse.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        let [group, topic, subscription, expression_type] =
            command.select(["consumerGroup", "topic", "subscription", "expressionType"]);
        let [queue_id, queue_offset, max_messages, sys_flag] =
            command.select(["queueId", "queueOffset", "maxMsgNums", "sysFlag"]);
        Ok(Self {
            group: Cow::Owned(group.require()?),
            topic: Cow::Owned(topic.require()?),
            queue_id: queue_id.require()?,
            queue_offset: queue_offset.require()?,
            max_messages: max_messages.require()?,
            sys_flag: sys_flag.require()?,
            subscription: Cow::Owned(subscription.into_value().unwrap_or_default().into_owned()),
            expression_type: Cow::Owned(expression_type.into_value().unwrap_or_default().into_owned()),
        })
    }
}

impl Header for PullRequest<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("consumerGroup", &self.group);
        fields.str("topic", &self.topic);
        fields.int("queueId", self.queue_id.into());
        fields.int("queueOffset", self.queue_offset);
        fields.int("maxMsgNums", self.max_messages.into());
        fields.int("sysFlag", self.sys_flag.into());
        fields.int("commitOffset", 0);
        fields.int("suspendTimeoutMillis", 0);
        fields.str("subscription", &self.subscription);
        fields.int("subVersion", 0);
        fields.str("expressionType", &self.expression_type);
    }
}

/// The header of the response (`PullMessageResponseHeader`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PullResponse {
    /// The offset to go on at.
    pub(crate) next_offset: i64,
    pub(crate) min_offset: i64,
    pub(crate) max_offset: i64,
}

impl Header for PullResponse {
    fn write(&self, fields: &mut Fields<'_>) {
        // The number of the master, whom every question is for.
        fields.int("suggestWhichBrokerId", 0);
        fields.int("nextBeginOffset", self.next_offset);
        fields.int("minOffset", self.min_offset);
        fields.int("maxOffset", self.max_offset);
    }
}
