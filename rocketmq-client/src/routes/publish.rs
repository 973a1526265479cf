//! From a route to the queues that can be written: pure.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use rocketmq_transport::Peer;

use crate::{
    protocol::route::{BrokerData, TopicRoute},
    queue::MessageQueue,
    routes::DEFAULT_TOPIC_QUEUES,
};

/// The queues of a topic that can be written, by broker. Never empty.
#[derive(Debug)]
pub(crate) struct PublishRoute {
    /// By name, in the order the queues are taken in turn.
    brokers: Box<[PublishBroker]>,
    /// The turn of the next send.
    cursor: AtomicU64,
}

/// One broker of a topic: its master, and how many queues of the topic it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublishBroker {
    /// Its first queue, whose names all of them share.
    first: MessageQueue,
    pub(crate) master: Peer,
    /// Queues 0 to `queues` - 1; never 0.
    pub(crate) queues: u32,
}

impl PublishBroker {
    /// Its name.
    pub(crate) fn name(&self) -> &Arc<str> {
        self.first.shared_broker()
    }

    /// Its queue `id`.
    pub(crate) fn queue(&self, id: u32) -> MessageQueue {
        self.first.clone().with_id(id)
    }

    /// The queue whose turn it is among those of this broker alone.
    pub(crate) fn queue_at(&self, turn: u64) -> u32 {
        u32::try_from(turn % u64::from(self.queues)).unwrap_or(0)
    }
}

impl PublishRoute {
    /// The writable queues of `topic` by its `route`; `None` where there are none. `first` is the first turn.
    pub(crate) fn of(topic: &Arc<str>, route: &TopicRoute, first: u64) -> Option<Self> {
        let counts: Vec<(&str, i32)> = match route.order_topic_conf.as_deref() {
            Some(order) if !order.trim().is_empty() => ordered(order).collect(),
            _ => {
                let writable = |perm: i32| perm & TopicRoute::PERM_WRITE != 0;
                let queues = route.queue_datas.iter().filter(|queues| writable(queues.perm));
                queues.map(|queues| (&*queues.broker_name, queues.write_queue_nums)).collect()
            }
        };
        Self::from_counts(topic, &route.broker_datas, &counts, first)
    }

    /// The queues `topic` will have once the first send to it creates it as `default` has it, with at most
    /// [`DEFAULT_TOPIC_QUEUES`] queues a broker.
    pub(crate) fn of_default(topic: &Arc<str>, default: &TopicRoute, first: u64) -> Option<Self> {
        let writable = |perm: i32| perm & TopicRoute::PERM_WRITE != 0;
        let max = DEFAULT_TOPIC_QUEUES.cast_signed();
        let queues = default.queue_datas.iter().filter(|queues| writable(queues.perm));
        let counts: Vec<_> =
            queues.map(|queues| (&*queues.broker_name, queues.read_queue_nums.min(max))).collect();
        Self::from_counts(topic, &default.broker_datas, &counts, first)
    }

    /// The brokers, by name.
    pub(crate) fn brokers(&self) -> &[PublishBroker] {
        &self.brokers
    }

    /// The broker of `queue`, where it has that queue.
    pub(crate) fn find(&self, queue: &MessageQueue) -> Option<&PublishBroker> {
        self.brokers.iter().find(|broker| **broker.name() == *queue.broker() && queue.id() < broker.queues)
    }

    /// The place of the broker whose turn it is, and the queue there: all queues of the first broker, then of
    /// the next, and so on in a circle.
    pub(crate) fn at(&self, turn: u64) -> (usize, u32) {
        let mut left = turn % self.brokers.iter().map(|broker| u64::from(broker.queues)).sum::<u64>();
        let holds_turn = |broker: &PublishBroker| match left.checked_sub(broker.queues.into()) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        };
        let place = self.brokers.iter().position(holds_turn).expect("a turn below the sum is at one broker");
        (place, u32::try_from(left).expect("a turn at a broker is below its 32-bit count"))
    }

    /// Takes the next turn.
    pub(crate) fn take_turn(&self) -> u64 {
        // Relaxed: turns order nothing, and a lost one would only bend the rotation.
        self.cursor.fetch_add(1, Ordering::Relaxed)
    }

    /// The turn that comes next, for the route that follows this one.
    pub(crate) fn turn(&self) -> u64 {
        // Relaxed: as above.
        self.cursor.load(Ordering::Relaxed)
    }

    fn from_counts(
        topic: &Arc<str>,
        brokers: &[BrokerData],
        counts: &[(&str, i32)],
        first: u64,
    ) -> Option<Self> {
        let masters: HashMap<_, _> =
            brokers.iter().filter_map(|broker| Some((&*broker.broker_name, broker.master()?))).collect();
        let usable = counts.iter().filter_map(|(name, queues)| {
            let queues = u32::try_from(*queues).ok().filter(|queues| *queues > 0)?;
            let master = masters.get(name)?.parse().ok()?;
            Some(PublishBroker { first: MessageQueue::new(topic.clone(), *name, 0), master, queues })
        });
        let mut brokers: Vec<_> = usable.collect();
        brokers.sort_by(|one, other| one.name().cmp(other.name()));
        brokers.dedup_by(|later, first| later.name() == first.name());
        (!brokers.is_empty()).then(|| Self { brokers: brokers.into(), cursor: AtomicU64::new(first) })
    }
}

/// The entries of `broker:count;broker:count` that can be read.
fn ordered(order: &str) -> impl Iterator<Item = (&str, i32)> {
    order.split(';').filter_map(|entry| {
        let (broker, count) = entry.trim().rsplit_once(':')?;
        Some((broker, count.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brokers a to d: a and d with a master, b with a replica only, c with an address nobody can read.
    fn route(queues: &str) -> TopicRoute {
        let text = format!(
            r#"{{"brokerDatas":[
                {{"brokerName":"d","brokerAddrs":{{"0":"d:1","1":"d:2"}}}},
                {{"brokerName":"a","brokerAddrs":{{"0":"a:1"}}}},
                {{"brokerName":"b","brokerAddrs":{{"1":"b:2"}}}},
                {{"brokerName":"c","brokerAddrs":{{"0":"c"}}}}],{queues}}}"#
        );
        TopicRoute::parse(text.as_bytes()).unwrap()
    }

    fn shape(route: Option<PublishRoute>) -> Vec<(String, String, u32)> {
        let brokers = route.map_or(Vec::new(), |route| route.brokers.into_vec());
        brokers
            .into_iter()
            .map(|broker| (broker.name().to_string(), broker.master.to_string(), broker.queues))
            .collect()
    }

    #[test]
    fn writable_queues_of_brokers_with_a_master_are_taken_in_the_order_of_names() {
        let route = route(
            r#""queueDatas":[
                {"brokerName":"d","perm":6,"readQueueNums":1,"writeQueueNums":2},
                {"brokerName":"a","perm":2,"readQueueNums":0,"writeQueueNums":3},
                {"brokerName":"b","perm":6,"readQueueNums":4,"writeQueueNums":4},
                {"brokerName":"c","perm":6,"readQueueNums":4,"writeQueueNums":4},
                {"brokerName":"x","perm":6,"readQueueNums":4,"writeQueueNums":4}]"#,
        );
        let expected = [("a".into(), "a:1".into(), 3), ("d".into(), "d:1".into(), 2)];
        assert_eq!(shape(PublishRoute::of(&"t".into(), &route, 0)), expected);
    }

    #[test]
    fn a_route_without_a_writable_queue_is_none() {
        for queues in [
            r#""queueDatas":[]"#,
            r#""queueDatas":null"#,
            r#""queueDatas":[{"brokerName":"a","perm":4,"writeQueueNums":4}]"#,
            r#""queueDatas":[{"brokerName":"a","perm":6,"writeQueueNums":0}]"#,
            r#""queueDatas":[{"brokerName":"a","perm":6,"writeQueueNums":-5}]"#,
            r#""queueDatas":[{"brokerName":"b","perm":6,"writeQueueNums":4}]"#,
            r#""orderTopicConf":"b:4;x:9;a;a:x;:""#,
        ] {
            assert_eq!(shape(PublishRoute::of(&"t".into(), &route(queues), 0)), [], "{queues}");
        }
    }

    #[test]
    fn a_fixed_order_of_queues_comes_before_what_the_brokers_have() {
        let queues = r#""orderTopicConf":"d:1; a:5;b:2;a:7",
            "queueDatas":[{"brokerName":"a","perm":6,"writeQueueNums":9}]"#;
        let expected = [("a".into(), "a:1".into(), 5), ("d".into(), "d:1".into(), 1)];
        assert_eq!(shape(PublishRoute::of(&"t".into(), &route(queues), 0)), expected);
    }

    #[test]
    fn a_default_route_has_no_more_queues_than_a_new_topic_gets() {
        let route = route(
            r#""queueDatas":[{"brokerName":"a","perm":7,"readQueueNums":8,"writeQueueNums":8},
                {"brokerName":"d","perm":7,"readQueueNums":2,"writeQueueNums":8}]"#,
        );
        let expected = [("a".into(), "a:1".into(), 4), ("d".into(), "d:1".into(), 2)];
        assert_eq!(shape(PublishRoute::of_default(&"t".into(), &route, 0)), expected);
    }

    #[test]
    fn a_count_from_a_hostile_route_allocates_nothing() {
        let queues = format!(r#""queueDatas":[{{"brokerName":"a","perm":6,"writeQueueNums":{}}}]"#, i32::MAX);
        assert_eq!(
            shape(PublishRoute::of(&"t".into(), &route(&queues), 0)),
            [("a".into(), "a:1".into(), i32::MAX as u32)]
        );
    }
}
