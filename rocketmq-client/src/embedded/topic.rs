//! Topic names, and what a broker knows of a topic beside its messages.

use std::{borrow::Borrow, fmt, sync::Arc};

use super::refusal::Refusal;
use crate::{message::validate, protocol::route::TopicRoute};

/// A topic's name that has passed the rules for names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TopicName(Arc<str>);

impl TopicName {
    /// Checks `name` by the rules for names; the names that brokers keep for themselves are refused too.
    pub(super) fn new(name: &str) -> Result<Self, Refusal> {
        validate::topic(name).map_err(|error| Refusal::parameter(error.to_string()))?;
        if SYSTEM_TOPICS.contains(&name) || name.starts_with(SYSTEM_PREFIX) {
            return Err(Refusal::parameter(format!("the topic {name} belongs to the brokers")));
        }
        Ok(Self(name.into()))
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
        Self { read_queues: queues, write_queues: queues, perm: READ_WRITE, sys_flag: 0 }
    }

    /// The default topic: its right to be inherited is what lets clients create topics by sending.
    pub(super) const DEFAULT_TOPIC: Self = Self { perm: READ_WRITE | PERM_INHERIT, ..Self::with_queues(8) };

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
const READ_WRITE: i32 = TopicRoute::PERM_READ | TopicRoute::PERM_WRITE;
/// The permission bit of being inherited (`PermName.PERM_INHERIT`).
const PERM_INHERIT: i32 = 1;
/// Our own limit, so that no route lists queues without bound.
const MAX_QUEUES: i32 = 65_536;
/// The topics that exist at every broker (`TopicValidator.SYSTEM_TOPIC_SET`), those aside that nobody may send to.
const SYSTEM_TOPICS: [&str; 4] = [DEFAULT_TOPIC, "BenchmarkTest", "RMQ_SYS_TRACE_TOPIC", "CHECKPOINT_TOPIC"];
/// `TopicValidator.SYSTEM_TOPIC_PREFIX`.
const SYSTEM_PREFIX: &str = "rmq_sys_";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_and_those_of_the_brokers_own_topics_are_refused_with_the_rule_they_break() {
        for (name, reason) in [
            ("", "blank"),
            ("a.b", "holds '.'"),
            ("TBW102", "belongs to the brokers"),
            ("rmq_sys_x", "belongs to the brokers"),
            ("SELF_TEST_TOPIC", "belongs to the brokers"),
        ] {
            let refusal = TopicName::new(name).expect_err(name);
            assert!(refusal.remark.contains(reason), "{name}: {refusal:?}");
        }
        assert!(TopicName::new("%RETRY%group_a|b-1").is_ok());
    }

    #[test]
    fn queue_counts_have_a_range() {
        for count in [i32::MIN, -1, 0, MAX_QUEUES + 1, i32::MAX] {
            assert!(TopicConfig::with_queues(count).validate().is_err(), "{count}");
        }
        assert!(TopicConfig::with_queues(MAX_QUEUES).validate().is_ok());
    }
}
