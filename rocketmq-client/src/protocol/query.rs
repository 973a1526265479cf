//! Asking a broker for messages by key.

use std::borrow::Cow;

#[cfg(any(test, feature = "embedded-broker"))]
use rocketmq_transport::{Command, FieldError};
use rocketmq_transport::{Fields, Header};

/// The header of a query (`QueryMessageRequestHeader`) for the message that has a unique key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryMessage<'a> {
    pub(crate) topic: Cow<'a, str>,
    /// The unique key; the broker's index does not tell it from other keys.
    pub(crate) key: Cow<'a, str>,
    pub(crate) max: i32,
    /// The range of the store's timestamps, in milliseconds since the Unix epoch.
    pub(crate) begin: i64,
    pub(crate) end: i64,
    /// Whether the request says that its key is a unique one.
    pub(crate) said: KeyKind,
}

/// Whether a query says that its key is a unique one (`_UNIQUE_KEY_QUERY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// It says so.
    Unique,
    /// It does not: the only form in which brokers before 5.0 accept the signature of a client that signs every field.
    Unsaid,
}

impl Header for QueryMessage<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("topic", &self.topic);
        fields.str("key", &self.key);
        fields.int("maxNum", self.max.into());
        fields.int("beginTimestamp", self.begin);
        fields.int("endTimestamp", self.end);
        if self.said == KeyKind::Unique {
            fields.bool(UNIQUE, true);
        }
    }
}

#[cfg(any(test, feature = "embedded-broker"))]
impl QueryMessage<'static> {
    /// Reads the header of `command`.
    ///
    /// # Errors
    ///
    /// A field is missing, or a number does not parse.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        let [topic, key, max, begin, end, unique] =
            command.select(["topic", "key", "maxNum", "beginTimestamp", "endTimestamp", UNIQUE]);
        let unique = unique.value().is_some_and(|value| value.eq_ignore_ascii_case("true"));
        Ok(Self {
            topic: Cow::Owned(topic.require()?),
            key: Cow::Owned(key.require()?),
            max: max.require()?,
            begin: begin.require()?,
            end: end.require()?,
            said: if unique { KeyKind::Unique } else { KeyKind::Unsaid },
        })
    }
}

/// The loose field that says it (`MixAll.UNIQUE_MSG_QUERY_FLAG`).
const UNIQUE: &str = "_UNIQUE_KEY_QUERY";
