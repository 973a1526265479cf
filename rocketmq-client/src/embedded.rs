//! A name server and brokers in this process, in memory, on loopback ports.

mod access;
mod builder;
mod clients;
mod faults;
mod handler;
mod message;
mod names;
mod reads;
mod refusal;
mod send;
mod store;
#[cfg(test)]
mod tests;
mod topic;

use std::{collections::BTreeMap, fmt, sync::Arc};

use rocketmq_transport::{Peer, Server, fault::Fault};

pub use self::{
    builder::{AutoCreateTopics, EmbeddedBrokerBuilder, EmbeddedBrokerError},
    clients::KnownClient,
    faults::FaultSite,
    message::StoredMessage,
};
use self::{
    faults::Scripts,
    handler::Shared,
    refusal::Refusal,
    store::Record,
    topic::{TopicConfig, TopicName},
};
use crate::{MessageQueue, message::properties, protocol::stored::offset_message_id};

/// A name server and one or more brokers, in memory, for demos and for tests of applications.
///
/// Clients of any language reach it through [`namesrv`](Self::namesrv). It speaks the same protocol as the real
/// ones over real sockets, bound to 127.0.0.1:
///
/// | request | answered |
/// |---|---|
/// | route (105), cluster (106) | by the name server |
/// | send (10, 310), heartbeat (34), unregister (35), create topic (17) | by each broker |
/// | pull (11), offsets (29, 30, 31), query by key (12) | by each broker, of what it has itself |
/// | any other | code 3, not supported |
///
/// A pull is answered at once, also where there is no message yet, and knows no consumer groups;
/// [`stored`](Self::stored) reads everything back without a request. It refuses batches and transactional messages,
/// stores delayed messages at once, and checks signatures only where it has
/// [credentials](EmbeddedBrokerBuilder::credentials). Everything it holds is bounded; see
/// [`EmbeddedBrokerBuilder::max_retained_bytes`].
///
/// Each of its servers can be made to [misbehave](Self::set_faults).
///
/// It runs in tasks of the Tokio runtime it was started in, and ends when it is closed or dropped.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rocketmq_client::{EmbeddedBroker, Message, Producer};
///
/// let broker = EmbeddedBroker::start().await?;
/// let producer = Producer::builder("shop").namesrv(broker.namesrv().as_str()).build()?;
/// producer.send(Message::new("orders", "two apples").with_tag("fruit")).await?;
///
/// let stored = broker.stored("orders");
/// assert_eq!(stored[0].body, "two apples");
/// assert_eq!(stored[0].tag.as_deref(), Some("fruit"));
/// broker.close().await;
/// # Ok(()) }
/// ```
#[must_use = "dropping it ends the broker"]
pub struct EmbeddedBroker {
    namesrv: Peer,
    name_server: Server,
    brokers: Vec<BrokerServer>,
    shared: Arc<Shared>,
    scripts: Scripts,
}

/// One broker that listens.
struct BrokerServer {
    name: Arc<str>,
    peer: Peer,
    server: Server,
}

impl EmbeddedBroker {
    /// Starts one broker with the default settings, on free ports.
    ///
    /// # Errors
    ///
    /// A port cannot be listened on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends what has been started.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub async fn start() -> Result<Self, EmbeddedBrokerError> {
        Self::builder().start().await
    }

    /// Settings to start from.
    pub fn builder() -> EmbeddedBrokerBuilder {
        EmbeddedBrokerBuilder::new()
    }

    /// The address of the name server: what a client is configured with.
    #[must_use]
    pub const fn namesrv(&self) -> &Peer {
        &self.namesrv
    }

    /// The name and address of each broker.
    pub fn brokers(&self) -> impl Iterator<Item = (&str, &Peer)> {
        self.brokers.iter().map(|broker| (broker.name.as_ref(), &broker.peer))
    }

    /// Creates `topic` with `queues` queues at each broker, or changes the number of its queues; messages it
    /// has stay. The name server knows it at once.
    ///
    /// # Errors
    ///
    /// The name or the count breaks a rule, or there are 10,000 topics.
    pub fn create_topic(&self, topic: &str, queues: u32) -> Result<(), TopicError> {
        let name = TopicName::new(topic)?;
        for broker in 0..self.brokers.len() {
            self.shared.store.create_topic(
                broker,
                name.clone(),
                TopicConfig::with_queues(i32::try_from(queues).unwrap_or(i32::MAX)),
            )?;
        }
        Ok(())
    }

    /// The messages of `topic` over all its queues and brokers, in the order they arrived; none for an unknown
    /// topic. Bodies are shared, not copied.
    #[must_use]
    pub fn stored(&self, topic: &str) -> Vec<StoredMessage> {
        let shared = Arc::from(topic);
        self.shared.store.records(topic).iter().map(|record| self.message(&shared, record)).collect()
    }

    /// How many messages `topic` has over all its queues and brokers.
    #[must_use]
    pub fn stored_count(&self, topic: &str) -> usize {
        self.shared.store.count(topic)
    }

    /// Makes the servers at `site` misbehave in these ways from now on, in place of those they had; none makes them
    /// behave. Faults about connections are for new ones.
    ///
    /// # Errors
    ///
    /// [`EmbeddedBrokerError::NoSuchBroker`] where there is no such broker; nothing has changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use rocketmq_client::{EmbeddedBroker, FaultSite, Message, Producer};
    ///
    /// let broker = EmbeddedBroker::builder().brokers(2).topic("orders", 1).start().await?;
    /// broker.set_faults(FaultSite::Broker(0), ["code=310,answer=2:busy".parse()?])?;
    /// let producer = Producer::builder("shop").namesrv(broker.namesrv().as_str()).build()?;
    /// for _ in 0..2 {
    ///     let receipt = producer.send(Message::new("orders", "two apples")).await?;
    ///     assert_eq!(receipt.broker(), "broker-1");
    /// }
    /// assert_eq!(broker.faults_struck(FaultSite::Broker(0))?, 1);
    /// broker.set_faults(FaultSite::Broker(0), [])?;
    /// # Ok(()) }
    /// ```
    pub fn set_faults(
        &self,
        site: FaultSite,
        faults: impl IntoIterator<Item = Fault>,
    ) -> Result<(), EmbeddedBrokerError> {
        let scripts = self.scripts.at(site)?;
        let faults: Vec<_> = faults.into_iter().collect();
        scripts.iter().for_each(|script| script.set(faults.iter().cloned()));
        Ok(())
    }

    /// How many times a fault has struck at `site` since the start.
    ///
    /// # Errors
    ///
    /// [`EmbeddedBrokerError::NoSuchBroker`] where there is no such broker.
    pub fn faults_struck(&self, site: FaultSite) -> Result<u64, EmbeddedBrokerError> {
        Ok(self.scripts.at(site)?.iter().map(|script| script.struck()).sum())
    }

    /// The clients that the brokers know by their heartbeats, by broker, address and id. A client is forgotten
    /// when it unregisters its last group, and when its connection ends.
    #[must_use]
    pub fn clients(&self) -> Vec<KnownClient> {
        self.shared.clients.list(|broker, remote, client_id, groups| KnownClient {
            client_id: client_id.to_owned(),
            broker: Arc::clone(&self.brokers[broker].name),
            remote,
            producer_groups: groups.iter().cloned().collect(),
        })
    }

    /// Stops listening, closes every connection and waits until that is done. What was stored is gone.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the broker all the same, without the wait.
    pub async fn close(self) {
        self.name_server.close().await;
        for broker in self.brokers {
            broker.server.close().await;
        }
    }

    fn message(&self, topic: &Arc<str>, record: &Record) -> StoredMessage {
        let (place, content) = (record.place, &record.content);
        let broker = &self.brokers[place.broker];
        let properties = properties::decode(&content.properties);
        let properties: BTreeMap<_, _> =
            properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let keys = properties.get(properties::KEYS).into_iter().flat_map(|keys| keys.split_whitespace());
        StoredMessage {
            queue: MessageQueue::new(Arc::clone(topic), Arc::clone(&broker.name), place.queue_id),
            queue_offset: place.queue_offset,
            offset_message_id: offset_message_id(broker.server.local_addr(), place.log_offset),
            unique_key: properties.get(properties::UNIQ_KEY).cloned(),
            keys: keys.map(str::to_owned).collect(),
            tag: properties.get(properties::TAGS).cloned(),
            properties,
            body: content.body.clone(),
            flag: content.flag,
            sys_flag: content.sys_flag,
            producer_group: content.producer_group.clone(),
            born_timestamp_ms: content.born_timestamp_ms,
            born_host: content.born_host,
            store_timestamp_ms: content.store_timestamp_ms,
        }
    }
}

impl fmt::Debug for EmbeddedBroker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedBroker").field("namesrv", &self.namesrv).finish_non_exhaustive()
    }
}

/// A topic that cannot be created; the text names the rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TopicError(String);

impl From<Refusal> for TopicError {
    fn from(refusal: Refusal) -> Self {
        Self(refusal.remark.into_owned())
    }
}
