//! What a message must be like before anything of it is sent. Nothing here shows a body, key or value.

use crate::message::{
    Message,
    properties::{NAME_END, VALUE_END},
};

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The topic is empty or blank.
    #[error("the topic is blank")]
    TopicBlank,
    /// The topic is longer than brokers take.
    #[error("the topic has {length} characters, at most {MAX_TOPIC} are allowed")]
    TopicTooLong {
        /// Its length in characters.
        length: usize,
    },
    /// The topic holds a character that no topic has.
    #[error("the topic holds {character:?}; letters, digits, %, |, _ and - are allowed")]
    TopicCharacter {
        /// The first such character.
        character: char,
    },
    /// The topic is one that brokers keep for themselves.
    #[error("the topic {topic} belongs to the brokers")]
    TopicForbidden {
        /// The topic.
        topic: &'static str,
    },
    /// The body is empty, which brokers cannot store.
    #[error("the body is empty")]
    BodyEmpty,
    /// The body is larger than the producer's `max_message_size`.
    #[error("the body has {length} bytes, at most {limit} are allowed")]
    BodyTooLarge {
        /// Its length in bytes.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The tag is empty or blank.
    #[error("the tag is blank")]
    TagBlank,
    /// The tag holds U+0001 or U+0002.
    #[error("the tag holds a separator (U+0001 or U+0002)")]
    TagSeparator,
    /// A key is empty, or holds a blank or U+0001 or U+0002.
    #[error("key {index} is empty or holds a blank or a separator (U+0001 or U+0002)")]
    Key {
        /// Its place among the keys, from 0.
        index: usize,
    },
    /// The name of a property is empty or blank.
    #[error("the name of a property is blank")]
    PropertyNameBlank,
    /// The value of a property is empty or blank; brokers lose such values.
    #[error("the value of property {name:?} is blank")]
    PropertyValueBlank {
        /// The property.
        name: String,
    },
    /// Name or value of a property holds U+0001 or U+0002.
    #[error("property {name:?} holds a separator (U+0001 or U+0002)")]
    PropertySeparator {
        /// The property.
        name: String,
    },
    /// The name is one that brokers and clients use themselves.
    #[error("the property name {name} is reserved")]
    PropertyReserved {
        /// The property.
        name: &'static str,
    },
    /// Tag, keys and properties together are longer than brokers take.
    #[error("tag, keys and properties take {length} bytes, at most {limit} are allowed")]
    PropertiesTooLong {
        /// Their length in bytes as they are written.
        length: usize,
        /// The limit.
        limit: usize,
    },
}

/// The limits of a message that are settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageLimits {
    /// The largest body in bytes.
    pub(crate) max_body: usize,
}

impl MessageLimits {
    /// Checks `message` as a whole.
    pub(crate) fn check(&self, message: &Message) -> Result<(), MessageError> {
        topic(&message.topic)?;
        self.check_content(message)
    }

    /// Checks all of `message` but its topic.
    pub(crate) fn check_content(&self, message: &Message) -> Result<(), MessageError> {
        match message.body.len() {
            0 => return Err(MessageError::BodyEmpty),
            length if length > self.max_body => {
                return Err(MessageError::BodyTooLarge { length, limit: self.max_body });
            }
            _ => {}
        }
        if let Some(tag) = &message.tag {
            check(!is_blank(tag), MessageError::TagBlank)?;
            check(!has_separator(tag), MessageError::TagSeparator)?;
        }
        for (index, key) in message.keys.iter().enumerate() {
            let good = !key.is_empty() && !has_separator(key) && !key.contains(char::is_whitespace);
            check(good, MessageError::Key { index })?;
        }
        let length = message.properties_bound();
        check(length <= MAX_PROPERTIES, MessageError::PropertiesTooLong { length, limit: MAX_PROPERTIES })
    }
}

/// Checks the name of a topic that messages are sent to.
pub(crate) fn topic(topic: &str) -> Result<(), MessageError> {
    check(!is_blank(topic), MessageError::TopicBlank)?;
    let length = topic.chars().count();
    check(length <= MAX_TOPIC, MessageError::TopicTooLong { length })?;
    if let Some(character) = topic.chars().find(|character| !is_name_character(*character)) {
        return Err(MessageError::TopicCharacter { character });
    }
    match FORBIDDEN_TOPICS.into_iter().find(|forbidden| *forbidden == topic) {
        Some(topic) => Err(MessageError::TopicForbidden { topic }),
        None => Ok(()),
    }
}

/// Checks one property of an application.
pub(crate) fn property(name: &str, value: &str) -> Result<(), MessageError> {
    check(!is_blank(name), MessageError::PropertyNameBlank)?;
    let named = || name.chars().take(MAX_SHOWN).collect();
    if has_separator(name) || has_separator(value) {
        return Err(MessageError::PropertySeparator { name: named() });
    }
    if is_blank(value) {
        return Err(MessageError::PropertyValueBlank { name: named() });
    }
    match RESERVED_PROPERTIES.into_iter().find(|reserved| *reserved == name) {
        Some(name) => Err(MessageError::PropertyReserved { name }),
        None => Ok(()),
    }
}

/// Whether topics and groups may hold `character` (`TopicValidator`).
pub(crate) const fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '%' | '|' | '_' | '-')
}

/// Whether `text` is empty or all white space.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn has_separator(text: &str) -> bool {
    text.contains([NAME_END, VALUE_END])
}

fn check(holds: bool, error: MessageError) -> Result<(), MessageError> {
    if holds { Ok(()) } else { Err(error) }
}

/// What brokers take of a topic that is no retry topic.
const MAX_TOPIC: usize = 127;
/// What brokers take of properties (32,767), less room for what they add themselves: region, trace switch,
/// cluster, and the real topic and queue of a message they deliver later.
const MAX_PROPERTIES: usize = 32_767 - 512;
/// An error shows at most so many characters of a bad name.
const MAX_SHOWN: usize = 100;

/// Topics that nobody may send to (`TopicValidator`).
const FORBIDDEN_TOPICS: [&str; 6] = [
    "SCHEDULE_TOPIC_XXXX",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
];

/// Names that brokers and clients give a meaning (`MessageConst`).
const RESERVED_PROPERTIES: [&str; 61] = [
    "1ST_POP_TIME",
    "ARRIVE_TIME",
    "BORN_TIMESTAMP",
    "BUYER_ID",
    "CHECK_IMMUNITY_TIME_IN_SECONDS",
    "CLUSTER",
    "CONSUME_START_TIME",
    "CORRECTION_FLAG",
    "CORRELATION_ID",
    "DELAY",
    "DLQ_ORIGIN_MESSAGE_ID",
    "DLQ_ORIGIN_TOPIC",
    "DUP_INFO",
    "EXTEND_UNIQ_INFO",
    "INNER_BASE",
    "INNER_MULTI_DISPATCH",
    "INNER_MULTI_QUEUE_OFFSET",
    "INNER_NUM",
    "INSTANCE_ID",
    "KEYS",
    "MAX_OFFSET",
    "MAX_RECONSUME_TIMES",
    "MIN_OFFSET",
    "MQ2_FLAG",
    "MSG_REGION",
    "MSG_TYPE",
    "ORIGIN_MESSAGE_ID",
    "PGROUP",
    "POP_CK",
    "POP_CK_OFFSET",
    "PROPERTY_FORWARD_QUEUE_ID",
    "PUSH_REPLY_TIME",
    "REAL_QID",
    "REAL_TOPIC",
    "RECONSUME_TIME",
    "REDIRECT",
    "REPLY_TO_CLIENT",
    "RETRY_TOPIC",
    "TAGS",
    "TIMER_DELAY_LEVEL",
    "TIMER_DELAY_MS",
    "TIMER_DELAY_SEC",
    "TIMER_DELIVER_MS",
    "TIMER_DEL_UNIQKEY",
    "TIMER_DEQUEUE_MS",
    "TIMER_ENQUEUE_MS",
    "TIMER_OUT_MS",
    "TIMER_ROLL_TIMES",
    "TRACE_CONTEXT",
    "TRACE_ON",
    "TRANSACTION_CHECK_TIMES",
    "TRANSFER_FLAG",
    "TRAN_MSG",
    "TRAN_PREPARED_QUEUE_OFFSET",
    "TTL",
    "UNIQ_KEY",
    "WAIT",
    "__BORNHOST",
    "__CRC32#",
    "__SHARDINGKEY",
    "__transactionId__",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message::new("orders", "body")
    }

    #[test]
    fn each_broken_rule_has_its_own_error() {
        let limits = MessageLimits { max_body: 4 };
        let long = "x".repeat(33_000);
        for (message, expected) in [
            (Message::new("", "b"), MessageError::TopicBlank),
            (Message::new(" \t", "b"), MessageError::TopicBlank),
            (Message::new("x".repeat(128), "b"), MessageError::TopicTooLong { length: 128 }),
            (Message::new("a.b", "b"), MessageError::TopicCharacter { character: '.' }),
            (Message::new("tö", "b"), MessageError::TopicCharacter { character: 'ö' }),
            (Message::new("SELF_TEST_TOPIC", "b"), MessageError::TopicForbidden { topic: "SELF_TEST_TOPIC" }),
            (Message::new("t", ""), MessageError::BodyEmpty),
            (Message::new("t", "12345"), MessageError::BodyTooLarge { length: 5, limit: 4 }),
            (message().with_tag(" "), MessageError::TagBlank),
            (message().with_tag("a\u{2}"), MessageError::TagSeparator),
            (message().with_keys(["a", ""]), MessageError::Key { index: 1 }),
            (message().with_keys(["a b"]), MessageError::Key { index: 0 }),
            (message().with_keys(["a\u{1}b"]), MessageError::Key { index: 0 }),
            (
                message().with_tag(long.clone()),
                MessageError::PropertiesTooLong { length: 33_048, limit: 32_255 },
            ),
        ] {
            assert_eq!(limits.check(&message), Err(expected), "{message:?}");
        }
        assert_eq!(
            limits.check(&Message::new("%RETRY%a|b_c-1", "1234").with_tag("x").with_keys(["k"])),
            Ok(())
        );
    }

    #[test]
    fn properties_are_checked_where_they_are_set() {
        for (name, value, expected) in [
            ("", "v", MessageError::PropertyNameBlank),
            ("n", " ", MessageError::PropertyValueBlank { name: "n".into() }),
            ("n\u{1}", "v", MessageError::PropertySeparator { name: "n\u{1}".into() }),
            ("n", "v\u{2}", MessageError::PropertySeparator { name: "n".into() }),
            ("UNIQ_KEY", "v", MessageError::PropertyReserved { name: "UNIQ_KEY" }),
        ] {
            assert_eq!(message().with_property(name, value), Err(expected));
        }
        assert!(message().with_property("uniq_key", "v").is_ok());
    }

    #[test]
    fn no_error_shows_a_value_or_key() {
        for error in [
            message().with_property("n", "secret\u{1}").unwrap_err(),
            MessageLimits { max_body: 9 }.check(&message().with_keys(["secret key"])).unwrap_err(),
            MessageLimits { max_body: 9 }.check(&message().with_tag("secret\u{1}")).unwrap_err(),
        ] {
            assert!(!format!("{error} {error:?}").contains("secret"));
        }
    }
}
