//! Storing a message: the request in its two layouts, and the response.

use std::{borrow::Cow, fmt};

use rocketmq_transport::{Command, FieldError, Fields, Header};

#[cfg(any(test, feature = "embedded-broker"))]
use crate::protocol::code;

/// The header of a send (`SendMessageRequestHeader`, `SendMessageRequestHeaderV2`); the body is the
/// message's.
///
/// As a [`Header`] it has the layout of `SEND_MESSAGE_V2`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendRequest<'a> {
    pub(crate) group: Cow<'a, str>,
    pub(crate) topic: Cow<'a, str>,
    /// The topic whose settings a topic inherits that the broker creates for this send.
    pub(crate) default_topic: Cow<'a, str>,
    pub(crate) default_topic_queue_nums: i32,
    /// The queue; the broker picks one where it is negative.
    pub(crate) queue_id: i32,
    pub(crate) sys_flag: i32,
    /// Milliseconds since the Unix epoch.
    pub(crate) born_timestamp: i64,
    /// The application's own flag.
    pub(crate) flag: i32,
    /// Encoded properties; empty for none.
    pub(crate) properties: Cow<'a, str>,
    pub(crate) reconsume_times: i32,
    /// Whether the body holds several messages.
    pub(crate) batch: bool,
    /// The broker's name, which proxies insist on.
    pub(crate) broker: Cow<'a, str>,
}

impl SendRequest<'_> {
    pub(super) fn write_as(&self, names: &Names, fields: &mut Fields<'_>) {
        fields.str(names.group, &self.group);
        fields.str(names.topic, &self.topic);
        fields.str(names.default_topic, &self.default_topic);
        fields.int(names.default_topic_queue_nums, self.default_topic_queue_nums.into());
        fields.int(names.queue_id, self.queue_id.into());
        fields.int(names.sys_flag, self.sys_flag.into());
        fields.int(names.born_timestamp, self.born_timestamp);
        fields.int(names.flag, self.flag.into());
        fields.str(names.properties, &self.properties);
        fields.int(names.reconsume_times, self.reconsume_times.into());
        if self.batch {
            fields.bool(names.batch, true);
        }
        fields.str(names.broker, &self.broker);
    }
}

impl Header for SendRequest<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        self.write_as(&V2, fields);
    }
}

#[cfg(any(test, feature = "embedded-broker"))]
impl SendRequest<'static> {
    /// Reads the header of `command` in the layout of its code.
    ///
    /// # Errors
    ///
    /// A required field is missing, or a number does not parse.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        let names = if command.code() == code::SEND_MESSAGE { &V1 } else { &V2 };
        let [group, topic, default_topic, properties, broker, batch] = command.select([
            names.group,
            names.topic,
            names.default_topic,
            names.properties,
            names.broker,
            names.batch,
        ]);
        let [default_topic_queue_nums, queue_id, sys_flag, born_timestamp, flag, reconsume_times] = command
            .select([
                names.default_topic_queue_nums,
                names.queue_id,
                names.sys_flag,
                names.born_timestamp,
                names.flag,
                names.reconsume_times,
            ]);
        Ok(Self {
            group: Cow::Owned(group.require()?),
            topic: Cow::Owned(topic.require()?),
            default_topic: Cow::Owned(default_topic.require()?),
            default_topic_queue_nums: default_topic_queue_nums.require()?,
            queue_id: queue_id.require()?,
            sys_flag: sys_flag.require()?,
            born_timestamp: born_timestamp.require()?,
            flag: flag.require()?,
            properties: Cow::Owned(properties.into_value().unwrap_or_default().into_owned()),
            reconsume_times: reconsume_times.parse()?.unwrap_or(0),
            // Only the word true is true, in any letter case.
            batch: batch.value().is_some_and(|value| value.eq_ignore_ascii_case("true")),
            broker: Cow::Owned(broker.into_value().unwrap_or_default().into_owned()),
        })
    }
}

/// How a message was stored. In each case it is stored and must not be sent again for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendStatus {
    /// As the broker is set up to store it.
    Stored,
    /// On the broker; its disk was not flushed in time.
    FlushDiskTimeout,
    /// On the broker; there is no replica to copy it to.
    SlaveNotAvailable,
    /// On the broker; no replica has confirmed it in time.
    FlushSlaveTimeout,
}

impl SendStatus {
    /// The name as logs and the command line print it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "Stored",
            Self::FlushDiskTimeout => "FlushDiskTimeout",
            Self::SlaveNotAvailable => "SlaveNotAvailable",
            Self::FlushSlaveTimeout => "FlushSlaveTimeout",
        }
    }
}

impl fmt::Display for SendStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The header of the response to a send that was stored (`SendMessageResponseHeader`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SendResponse {
    /// Where the message is in the broker's store, as text.
    pub(crate) offset_message_id: String,
    pub(crate) queue_id: u32,
    pub(crate) queue_offset: i64,
}

impl SendResponse {
    /// Reads the header of `command`.
    ///
    /// # Errors
    ///
    /// A field is missing, or a number does not parse.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        let [offset_message_id, queue_id, queue_offset] = command.select(["msgId", "queueId", "queueOffset"]);
        Ok(Self {
            offset_message_id: offset_message_id.require()?,
            queue_id: queue_id.require()?,
            queue_offset: queue_offset.require()?,
        })
    }
}

impl Header for SendResponse {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("msgId", &self.offset_message_id);
        fields.int("queueId", self.queue_id.into());
        fields.int("queueOffset", self.queue_offset);
    }
}

/// The names of the fields in one layout.
pub(super) struct Names {
    group: &'static str,
    topic: &'static str,
    default_topic: &'static str,
    default_topic_queue_nums: &'static str,
    queue_id: &'static str,
    sys_flag: &'static str,
    born_timestamp: &'static str,
    flag: &'static str,
    properties: &'static str,
    reconsume_times: &'static str,
    batch: &'static str,
    broker: &'static str,
}

/// `SendMessageRequestHeader`.
#[cfg(any(test, feature = "embedded-broker"))]
pub(super) const V1: Names = Names {
    group: "producerGroup",
    topic: "topic",
    default_topic: "defaultTopic",
    default_topic_queue_nums: "defaultTopicQueueNums",
    queue_id: "queueId",
    sys_flag: "sysFlag",
    born_timestamp: "bornTimestamp",
    flag: "flag",
    properties: "properties",
    reconsume_times: "reconsumeTimes",
    batch: "batch",
    broker: "bname",
};

/// `SendMessageRequestHeaderV2`.
const V2: Names = Names {
    group: "a",
    topic: "b",
    default_topic: "c",
    default_topic_queue_nums: "d",
    queue_id: "e",
    sys_flag: "f",
    born_timestamp: "g",
    flag: "h",
    properties: "i",
    reconsume_times: "j",
    batch: "m",
    broker: "n",
};
