//! Topic names, and what a broker knows of a topic beside its messages.

use std::{borrow::Borrow, fmt, sync::Arc};

use super::refusal::Refusal;

/// A topic's name that has passed the rules for names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopicName(Arc<str>);

impl TopicName {
    /// Checks `name` by the brokers' rules (`TopicValidator`).
    pub(super) fn new(name: &str) -> Result<Self, Refusal> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"%|_-".contains(&byte);
        if name.is_empty() {
            return Err(Refusal::parameter("the specified topic is blank"));
        }
        if name.len() > MAX_TOPIC_BYTES {
            return Err(Refusal::parameter(format!(
                "the specified topic is longer than {MAX_TOPIC_BYTES} bytes"
            )));
        }
        if !name.bytes().all(allowed) {
            let rule = "a topic has only letters, digits and the characters % | _ -";
            return Err(Refusal::parameter(format!(
                "the specified topic contains illegal characters: {rule}"
            )));
        }
        Ok(Self(name.into()))
    }

    /// As [`new`](Self::new), and no name that the brokers keep for themselves.
    pub(super) fn creatable(name: &str) -> Result<Self, Refusal> {
        if SYSTEM_TOPICS.contains(&name) || name.starts_with(SYSTEM_PREFIX) {
            return Err(Refusal::parameter(format!("the topic {name} is a system topic")));
        }
        Self::new(name)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A topic as one broker has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TopicConfig {
    pub(super) read_queues: i32,
    pub(super) write_queues: i32,
    pub(super) perm: i32,
    pub(super) sys_flag: i32,
}

impl TopicConfig {
    /// An ordinary topic with `queues` queues, readable and writable.
    pub(super) const fn with_queues(queues: i32) -> Self {
        Self { read_queues: queues, write_queues: queues, perm: 6, sys_flag: 0 }
    }

    /// The default topic: its right to be inherited is what lets clients create topics by sending.
    pub(super) const DEFAULT_TOPIC: Self = Self { perm: 7, ..Self::with_queues(8) };

    /// Checks the counts before anything is sized by them.
    pub(super) fn validate(self) -> Result<Self, Refusal> {
        for (name, count) in [("readQueueNums", self.read_queues), ("writeQueueNums", self.write_queues)] {
            if !(1..=MAX_QUEUES).contains(&count) {
                return Err(Refusal::parameter(format!("{name} is {count}, not between 1 and {MAX_QUEUES}")));
            }
        }
        Ok(self)
    }
}

/// The topic whose settings an unknown topic inherits (`TopicValidator.AUTO_CREATE_TOPIC_KEY_TOPIC`).
pub(super) const DEFAULT_TOPIC: &str = "TBW102";
/// The longest name of an ordinary topic (`Validators.TOPIC_MAX_LENGTH`).
const MAX_TOPIC_BYTES: usize = 127;
/// Our own limit, so that no route lists queues without bound.
pub(super) const MAX_QUEUES: i32 = 65_536;
/// `TopicValidator.SYSTEM_TOPIC_SET`, as far as its names are fixed.
const SYSTEM_TOPICS: [&str; 10] = [
    DEFAULT_TOPIC,
    "SCHEDULE_TOPIC_XXXX",
    "BenchmarkTest",
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "SELF_TEST_TOPIC",
    "OFFSET_MOVED_EVENT",
    "CHECKPOINT_TOPIC",
];
/// `TopicValidator.SYSTEM_TOPIC_PREFIX`.
const SYSTEM_PREFIX: &str = "rmq_sys_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_name_is_refused_with_the_rule_it_breaks() {
        let long = "t".repeat(MAX_TOPIC_BYTES + 1);
        for (name, reason) in [
            ("", "blank"),
            (long.as_str(), "longer than 127"),
            ("a.b", "illegal characters"),
            ("tópico", "illegal characters"),
            ("a b", "illegal characters"),
        ] {
            let refusal = TopicName::new(name).expect_err(name);
            assert!(refusal.remark.contains(reason), "{name}: {refusal:?}");
        }
        assert!(TopicName::new(&long[1..]).is_ok());
        assert!(TopicName::new("%RETRY%group_a|b-1").is_ok());
    }

    #[test]
    fn the_names_of_the_brokers_own_topics_cannot_be_created() {
        for name in ["TBW102", "rmq_sys_x", "SELF_TEST_TOPIC"] {
            assert!(TopicName::creatable(name).expect_err(name).remark.contains("system topic"));
        }
        assert!(TopicName::creatable("orders").is_ok());
    }

    #[test]
    fn queue_counts_have_a_range() {
        for count in [i32::MIN, -1, 0, MAX_QUEUES + 1, i32::MAX] {
            assert!(TopicConfig::with_queues(count).validate().is_err(), "{count}");
        }
        assert!(TopicConfig::with_queues(MAX_QUEUES).validate().is_ok());
    }
}
