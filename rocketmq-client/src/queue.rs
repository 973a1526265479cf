//! One queue of a topic at one broker.

use std::{fmt, sync::Arc};

/// One queue of a topic at one broker. Cheap to clone.
///
/// # Examples
///
/// ```
/// use rocketmq_client::MessageQueue;
///
/// let queue = MessageQueue::new("orders", "broker-a", 3);
/// assert_eq!(queue.to_string(), "orders@broker-a:3");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageQueue {
    home: Arc<Home>,
    id: u32,
}

/// A topic at a broker: one count of references for both names, since each send clones a queue twice.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Home {
    topic: Arc<str>,
    broker: Arc<str>,
}

impl MessageQueue {
    /// Queue `id` of `topic` at the broker named `broker`. Whether it exists is known to the topic's route.
    pub fn new(topic: impl Into<Arc<str>>, broker: impl Into<Arc<str>>, id: u32) -> Self {
        Self { home: Arc::new(Home { topic: topic.into(), broker: broker.into() }), id }
    }

    /// The queue `id` of the same topic at the same broker.
    pub(crate) fn with_id(mut self, id: u32) -> Self {
        self.id = id;
        self
    }

    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.home.topic
    }

    /// The broker's name, which stands for its master and its replicas.
    #[must_use]
    pub fn broker(&self) -> &str {
        &self.home.broker
    }

    /// The number of the queue within the topic at this broker, from 0.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The broker's name, to be kept.
    pub(crate) fn shared_broker(&self) -> &Arc<str> {
        &self.home.broker
    }
}

impl fmt::Display for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.topic(), self.broker(), self.id)
    }
}

impl fmt::Debug for MessageQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
