//! Creating a topic.

use std::borrow::Cow;

use rocketmq_transport::{Command, FieldError, Fields, Header};

/// The header of a topic's creation or change (`CreateTopicRequestHeader`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateTopic<'a> {
    pub(crate) topic: Cow<'a, str>,
    /// The topic whose settings it inherits.
    pub(crate) default_topic: Cow<'a, str>,
    pub(crate) read_queue_nums: i32,
    pub(crate) write_queue_nums: i32,
    /// Permission bits: 4 read, 2 write.
    pub(crate) perm: i32,
    pub(crate) sys_flag: i32,
    pub(crate) order: bool,
}

impl CreateTopic<'static> {
    /// Reads the header of `command`.
    ///
    /// # Errors
    ///
    /// A required field is missing, or a number does not parse.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        let [topic, default_topic, order] = command.select(["topic", "defaultTopic", "order"]);
        let [read_queue_nums, write_queue_nums, perm, sys_flag] =
            command.select(["readQueueNums", "writeQueueNums", "perm", "topicSysFlag"]);
        Ok(Self {
            topic: Cow::Owned(topic.require()?),
            default_topic: Cow::Owned(default_topic.require()?),
            read_queue_nums: read_queue_nums.require()?,
            write_queue_nums: write_queue_nums.require()?,
            perm: perm.require()?,
            sys_flag: sys_flag.parse()?.unwrap_or(0),
            order: order.value().is_some_and(|value| value.eq_ignore_ascii_case("true")),
        })
    }
}

impl Header for CreateTopic<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("topic", &self.topic);
        fields.str("defaultTopic", &self.default_topic);
        fields.int("readQueueNums", self.read_queue_nums.into());
        fields.int("writeQueueNums", self.write_queue_nums.into());
        fields.int("perm", self.perm.into());
        fields.str("topicFilterType", "SINGLE_TAG");
        fields.int("topicSysFlag", self.sys_flag.into());
        fields.bool("order", self.order);
    }
}
