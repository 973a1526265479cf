//! What the brokers hold: topics, their queues and the messages stored in them, in one bounded memory.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

use super::{
    refusal::Refusal,
    topic::{TopicConfig, TopicName},
};
use crate::protocol::code;

/// The topics and messages of all brokers of one [`EmbeddedBroker`](super::EmbeddedBroker).
#[derive(Debug)]
pub(super) struct Store {
    limits: Limits,
    state: Mutex<State>,
}

/// How much the store takes before it refuses more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Retained messages, over all topics.
    pub(super) messages: usize,
    /// Retained bytes, over all topics: bodies, properties, and a fixed part for each message.
    pub(super) bytes: u64,
    /// Topics.
    pub(super) topics: usize,
}

/// A message on its way into the store.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The index of the broker it was sent to.
    pub(super) broker: usize,
    pub(super) topic: TopicName,
    /// A negative one leaves the choice to the broker.
    pub(super) queue_id: i32,
    /// What an unknown topic is created with, or why it is not.
    pub(super) create: Result<TopicConfig, Refusal>,
    pub(super) content: Content,
}

/// What a message brings with it, whatever its place.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) producer_group: String,
    pub(super) body: Bytes,
    pub(super) properties: String,
    pub(super) flag: i32,
    pub(super) sys_flag: i32,
    pub(super) reconsume_times: i32,
    pub(super) born_timestamp_ms: i64,
    pub(super) born_host: SocketAddr,
    pub(super) store_timestamp_ms: i64,
}

/// Where a message was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) broker: usize,
    pub(super) queue_id: u32,
    pub(super) queue_offset: i64,
    /// Its offset in what would be the broker's commit log.
    pub(super) log_offset: i64,
}

/// One queue of one broker, which there may not be.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueKey<'a> {
    pub(super) broker: usize,
    pub(super) topic: &'a str,
    pub(super) queue_id: i32,
}

/// A stored message.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) place: Place,
    pub(super) content: Arc<Content>,
}

#[derive(Debug, Default)]
struct State {
    topics: BTreeMap<TopicName, Topic>,
    /// The end of each broker's commit log.
    log_ends: HashMap<usize, i64>,
    messages: usize,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Topic {
    /// By broker; a topic exists only at the brokers that were asked to create it.
    configs: BTreeMap<usize, TopicConfig>,
    /// The places in `records` of the messages of each queue, by broker and queue; a queue's offsets count them.
    queues: HashMap<(usize, u32), Vec<usize>>,
    /// Turns with each send that leaves the choice of the queue to the broker.
    turn: u32,
    /// In the order they arrived.
    records: Vec<Record>,
}

impl Store {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, state: Mutex::default() }
    }

    /// Creates `topic` at `broker`, or changes it there; its messages stay.
    pub(super) fn create_topic(
        &self,
        broker: usize,
        topic: TopicName,
        config: TopicConfig,
    ) -> Result<(), Refusal> {
        let config = config.validate()?;
        self.lock().topic(topic, self.limits)?.configs.insert(broker, config);
        Ok(())
    }

    /// The brokers that have `topic`, in their order.
    pub(super) fn configs(&self, topic: &str) -> Vec<(usize, TopicConfig)> {
        let state = self.lock();
        let configs = state.topics.get(topic).map(|topic| &topic.configs);
        configs.into_iter().flatten().map(|(broker, config)| (*broker, *config)).collect()
    }

    /// Stores one message, creating its topic where the broker does not have it yet.
    pub(super) fn append(&self, arrival: Arrival) -> Result<Place, Refusal> {
        let Arrival { broker, topic, queue_id, create, content } = arrival;
        let retained = content.retained_bytes();
        let logged = content.log_bytes(&topic);
        let mut state = self.lock();
        state.check_room(retained, self.limits)?;
        let log_offset = *state.log_ends.entry(broker).or_default();
        let known = match state.topics.get(topic.as_str()).and_then(|topic| topic.configs.get(&broker)) {
            Some(config) => *config,
            None => create?.validate()?,
        };
        let topic = state.topic(topic, self.limits)?;
        topic.configs.insert(broker, known);
        let queue_id = topic.choose_queue(queue_id, known)?;
        let queue = topic.queues.entry((broker, queue_id)).or_default();
        let place = Place { broker, queue_id, queue_offset: queue.len() as i64, log_offset };
        queue.push(topic.records.len());
        topic.records.push(Record { place, content: Arc::new(content) });
        state.log_ends.insert(broker, log_offset + logged);
        state.messages += 1;
        state.bytes += retained;
        Ok(place)
    }

    /// The settings of `topic` at `broker`.
    pub(super) fn config(&self, broker: usize, topic: &str) -> Option<TopicConfig> {
        self.lock().topics.get(topic)?.configs.get(&broker).copied()
    }

    /// How many messages a queue has, which is the offset of the next; 0 for a queue that there is not.
    pub(super) fn queue_len(&self, queue: QueueKey<'_>) -> i64 {
        self.lock().queue(queue).len() as i64
    }

    /// At most `most` messages of a queue from offset `from` on.
    pub(super) fn read(&self, queue: QueueKey<'_>, from: i64, most: usize) -> Vec<Record> {
        let state = self.lock();
        let queue = state.queue(queue);
        queue.skip(usize::try_from(from).unwrap_or(usize::MAX)).take(most).cloned().collect()
    }

    /// The offset of the first message of a queue that was stored at `timestamp_ms` or later; that of the next
    /// message where there is none.
    pub(super) fn offset_at(&self, queue: QueueKey<'_>, timestamp_ms: i64) -> i64 {
        let state = self.lock();
        let mut records = state.queue(queue);
        let end = records.len();
        // The clock may have been set back in between, so they need not be in order.
        records.position(|record| record.content.store_timestamp_ms >= timestamp_ms).unwrap_or(end) as i64
    }

    /// The latest `most` messages of `topic` at `broker` that `wanted` is true of, the latest first.
    pub(super) fn find(
        &self,
        broker: usize,
        topic: &str,
        most: usize,
        wanted: impl Fn(&Content) -> bool,
    ) -> Vec<Record> {
        let state = self.lock();
        let records = state.topics.get(topic).into_iter().flat_map(|topic| topic.records.iter().rev());
        let wanted = records.filter(|record| record.place.broker == broker && wanted(&record.content));
        wanted.take(most).cloned().collect()
    }

    /// The messages of `topic`, in the order they arrived.
    pub(super) fn records(&self, topic: &str) -> Vec<Record> {
        self.lock().topics.get(topic).map_or_else(Vec::new, |topic| topic.records.clone())
    }

    /// How many messages `topic` has.
    pub(super) fn count(&self, topic: &str) -> usize {
        self.lock().topics.get(topic).map_or(0, |topic| topic.records.len())
    }

    /// A poisoned state is still whole: nothing panics between the first change of an operation and its last.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The topic of that name, made now if there is room for one more.
    fn topic(&mut self, name: TopicName, limits: Limits) -> Result<&mut Topic, Refusal> {
        if self.topics.len() >= limits.topics && !self.topics.contains_key(&name) {
            return Err(full(format!("it has {} topics, the limit is {}", self.topics.len(), limits.topics)));
        }
        Ok(self.topics.entry(name).or_default())
    }

    /// The messages of a queue, in their order.
    fn queue(&self, queue: QueueKey<'_>) -> impl ExactSizeIterator<Item = &Record> {
        let topic = self.topics.get(queue.topic);
        let records = topic.map_or(&[][..], |topic| &topic.records);
        let key = u32::try_from(queue.queue_id).ok().map(|queue_id| (queue.broker, queue_id));
        let places =
            topic.zip(key).and_then(|(topic, key)| topic.queues.get(&key)).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| &records[*place])
    }

    fn check_room(&self, bytes: u64, limits: Limits) -> Result<(), Refusal> {
        if self.messages >= limits.messages {
            return Err(full(format!(
                "it holds {} messages, the limit is {}",
                self.messages, limits.messages
            )));
        }
        if self.bytes + bytes > limits.bytes {
            let (held, limit) = (self.bytes, limits.bytes);
            return Err(full(format!(
                "it holds {held} bytes, {bytes} more are asked for, the limit is {limit}"
            )));
        }
        Ok(())
    }
}

impl Topic {
    fn choose_queue(&mut self, asked: i32, config: TopicConfig) -> Result<u32, Refusal> {
        let queues = config.read_queues.max(config.write_queues);
        if asked >= queues {
            return Err(Refusal::parameter(format!(
                "request queueId[{asked}] is illegal, the topic has {queues} queues"
            )));
        }
        Ok(u32::try_from(asked).unwrap_or_else(|_| {
            self.turn = (self.turn + 1) % config.write_queues.unsigned_abs();
            self.turn
        }))
    }
}

impl Content {
    /// What the message is counted with.
    fn retained_bytes(&self) -> u64 {
        (self.body.len() + self.properties.len() + self.producer_group.len()) as u64 + RECORD_OVERHEAD
    }

    /// What the message would take in a commit log (`MessageExtEncoder`, with IPv4 hosts).
    fn log_bytes(&self, topic: &TopicName) -> i64 {
        let variable = self.body.len() + topic.as_str().len() + self.properties.len();
        i64::try_from(variable).map_or(i64::MAX, |variable| variable.saturating_add(LOG_OVERHEAD))
    }
}

fn full(reason: String) -> Refusal {
    Refusal::new(
        code::SERVICE_NOT_AVAILABLE,
        format!("service not available now: the broker is full, {reason}"),
    )
}

/// A record, its shared content and their places in the tables, rounded up.
const RECORD_OVERHEAD: u64 = 256;
/// A stored message without body, topic and properties.
const LOG_OVERHEAD: i64 = 91;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { messages: 4, bytes: 10_000, topics: 2 };

    fn arrival(topic: &str, queue_id: i32) -> Arrival {
        Arrival {
            broker: 0,
            topic: TopicName::new(topic).unwrap(),
            queue_id,
            create: Ok(TopicConfig::with_queues(2)),
            content: Content {
                producer_group: "group".into(),
                body: Bytes::from_static(b"body"),
                properties: String::new(),
                flag: 0,
                sys_flag: 0,
                reconsume_times: 0,
                born_timestamp_ms: 1,
                born_host: ([127, 0, 0, 1], 1).into(),
                store_timestamp_ms: 2,
            },
        }
    }

    #[test]
    fn each_queue_of_each_broker_counts_its_own_offsets() {
        let store = Store::new(LIMITS);
        let stored = |broker, queue| {
            let place = store.append(Arrival { broker, ..arrival("t", queue) }).unwrap();
            (place.queue_offset, place.log_offset)
        };
        assert_eq!(
            [stored(0, 0), stored(0, 1), stored(1, 0), stored(0, 0)],
            [(0, 0), (0, 96), (0, 0), (1, 192)]
        );
        assert_eq!(store.count("t"), 4);
        assert_eq!(store.configs("t").len(), 2);
    }

    #[test]
    fn a_negative_queue_id_visits_every_write_queue_and_one_too_large_is_refused() {
        let store = Store::new(LIMITS);
        let mut chosen: Vec<_> = (0..2).map(|_| store.append(arrival("t", -1)).unwrap().queue_id).collect();
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 1]);
        let refusal = store.append(arrival("t", 2)).unwrap_err();
        assert_eq!(refusal.code, code::INVALID_PARAMETER);
        assert!(refusal.remark.contains("queueId[2]"), "{refusal:?}");
    }

    #[test]
    fn an_unknown_topic_that_may_not_be_created_is_refused_and_stays_unknown() {
        let store = Store::new(LIMITS);
        let reason = Refusal::new(code::TOPIC_NOT_EXIST, "no");
        let refused = store.append(Arrival { create: Err(reason.clone()), ..arrival("t", 0) });
        assert_eq!(refused, Err(reason));
        assert!(store.configs("t").is_empty());
    }

    #[test]
    fn a_full_store_refuses_by_messages_by_bytes_and_by_topics_and_says_which() {
        for (limits, reason) in [
            (Limits { messages: 2, ..LIMITS }, "the limit is 2"),
            (Limits { bytes: 600, ..LIMITS }, "the limit is 600"),
        ] {
            let store = Store::new(limits);
            store.append(arrival("t", 0)).unwrap();
            store.append(arrival("t", 0)).unwrap();
            let refusal = store.append(arrival("t", 0)).unwrap_err();
            assert_eq!(refusal.code, code::SERVICE_NOT_AVAILABLE);
            assert!(refusal.remark.contains(reason), "{refusal:?}");
            assert_eq!(store.count("t"), 2);
        }
        let store = Store::new(LIMITS);
        store.append(arrival("a", 0)).unwrap();
        store.append(arrival("b", 0)).unwrap();
        assert!(store.append(arrival("c", 0)).unwrap_err().remark.contains("2 topics"));
        store.append(arrival("b", 0)).unwrap();
    }

    #[test]
    fn shrinking_a_topic_keeps_its_messages() {
        let store = Store::new(LIMITS);
        store.append(arrival("t", 1)).unwrap();
        store.create_topic(0, TopicName::new("t").unwrap(), TopicConfig::with_queues(1)).unwrap();
        assert_eq!(store.records("t")[0].place.queue_id, 1);
        assert!(store.append(arrival("t", 1)).is_err());
    }
}
