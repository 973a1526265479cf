//! Picking a queue: brokers and queues in turn, another broker first after a failure. Pure.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    queue::MessageQueue,
    retry::{Again, Backoff},
    routes::{PublishBroker, PublishRoute},
};

/// The brokers that one send has already asked.
#[derive(Debug, Default)]
pub(crate) struct Tried(Vec<TriedBroker>);

#[derive(Debug)]
struct TriedBroker {
    name: Arc<str>,
    /// When it may be asked again; `None` is never.
    ready_at: Option<Instant>,
    failed_dials: u32,
    busy_answers: u32,
}

/// The queue an attempt is for.
#[derive(Debug)]
pub(crate) struct Pick<'r> {
    pub(crate) broker: &'r PublishBroker,
    pub(crate) queue_id: u32,
    /// When the broker may be asked, where it has been asked before.
    pub(crate) ready_at: Option<Instant>,
}

impl Pick<'_> {
    /// The queue.
    pub(crate) fn queue(&self) -> MessageQueue {
        self.broker.queue(self.queue_id)
    }
}

impl Tried {
    /// Takes note that an attempt at `broker` failed at `now`, and when it may be asked again.
    pub(crate) fn note(&mut self, broker: &Arc<str>, again: Again, now: Instant, backoff: &Backoff) {
        let known = self.0.iter().position(|tried| tried.name == *broker).unwrap_or_else(|| {
            self.0.push(TriedBroker {
                name: broker.clone(),
                ready_at: None,
                failed_dials: 0,
                busy_answers: 0,
            });
            self.0.len() - 1
        });
        let tried = &mut self.0[known];
        tried.ready_at = match again {
            Again::Now => Some(now),
            Again::AfterBackoff(remaining) => Some(now + remaining.max(MIN_PAUSE)),
            Again::AfterDial => {
                tried.failed_dials += 1;
                Some(now + backoff.after_dial(tried.failed_dials))
            }
            Again::AfterJitter => {
                tried.busy_answers += 1;
                Some(now + backoff.after_busy(tried.busy_answers))
            }
            Again::Never => None,
        };
    }

    /// The next attempt at the one queue `wanted`; `None` where its broker may not be asked any more.
    pub(crate) fn pick_wanted<'r>(&self, route: &'r PublishRoute, wanted: &MessageQueue) -> Option<Pick<'r>> {
        let broker = route.find(wanted)?;
        self.may_ask(broker).then(|| self.picked(broker, wanted.id()))
    }

    /// The next attempt of a send that has taken `turn`: at the broker whose turn it is, or after it in the
    /// circle, that was not asked yet, or else at the one that may be asked again first. `None` where no
    /// broker may be asked any more.
    ///
    /// All attempts of a send share its turn: if each took one, a broker that is down could be the first one
    /// asked by every send.
    pub(crate) fn pick<'r>(&self, route: &'r PublishRoute, turn: u64) -> Option<Pick<'r>> {
        let (start, queue_id) = route.at(turn);
        let (before, from) = route.brokers().split_at(start);
        let is_fresh = |broker: &&PublishBroker| self.find(broker).is_none();
        if let Some(broker) = from.first().filter(is_fresh) {
            return Some(self.picked(broker, queue_id));
        }
        let rotation = || from.iter().chain(before);
        if let Some(broker) = rotation().find(is_fresh) {
            return Some(self.picked(broker, broker.queue_at(turn)));
        }
        let usable = rotation().filter(|broker| self.may_ask(broker));
        let first = usable.min_by_key(|broker| self.find(broker).and_then(|tried| tried.ready_at))?;
        Some(self.picked(first, first.queue_at(turn)))
    }

    /// Whether a broker of `route` other than `current`, which is one of them, could be asked.
    pub(crate) fn leaves_another(&self, route: &PublishRoute, current: &PublishBroker) -> bool {
        route.brokers().iter().any(|broker| !std::ptr::eq(broker, current) && self.may_ask(broker))
    }

    fn picked<'r>(&self, broker: &'r PublishBroker, queue_id: u32) -> Pick<'r> {
        Pick { broker, queue_id, ready_at: self.find(broker).and_then(|tried| tried.ready_at) }
    }

    fn may_ask(&self, broker: &PublishBroker) -> bool {
        self.find(broker).is_none_or(|tried| tried.ready_at.is_some())
    }

    fn find(&self, broker: &PublishBroker) -> Option<&TriedBroker> {
        self.0.iter().find(|tried| tried.name == *broker.name())
    }
}

/// A back-off that is just ending is waited for all the same, so that asking again takes turns with the
/// clock.
const MIN_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::route::TopicRoute;

    /// Queues 0 to 2 at broker a, 0 and 1 at b, 0 at c; the first turn is 0.
    fn route() -> PublishRoute {
        let text = br#"{"brokerDatas":[
                {"brokerName":"a","brokerAddrs":{"0":"a:1"}},
                {"brokerName":"b","brokerAddrs":{"0":"b:1"}},
                {"brokerName":"c","brokerAddrs":{"0":"c:1"}}],
            "queueDatas":[
                {"brokerName":"a","perm":6,"writeQueueNums":3},
                {"brokerName":"b","perm":6,"writeQueueNums":2},
                {"brokerName":"c","perm":6,"writeQueueNums":1}]}"#;
        PublishRoute::of(&"t".into(), &TopicRoute::parse(text).unwrap(), 0).unwrap()
    }

    fn backoff() -> Backoff {
        Backoff { min_dial: Duration::from_millis(100), max_dial: Duration::from_secs(5) }
    }

    fn name(pick: Option<Pick<'_>>) -> String {
        pick.map_or("none".into(), |pick| format!("{}{}", pick.broker.name(), pick.queue_id))
    }

    #[test]
    fn first_attempts_take_every_queue_in_turn() {
        let (route, tried) = (route(), Tried::default());
        let picks: Vec<_> = (0..7).map(|_| name(tried.pick(&route, route.take_turn()))).collect();
        assert_eq!(picks, ["a0", "a1", "a2", "b0", "b1", "c0", "a0"]);
    }

    #[test]
    fn another_broker_comes_first_and_then_the_one_that_is_ready_first() {
        let (route, mut tried, now) = (route(), Tried::default(), Instant::now());
        let pick =
            |tried: &Tried| tried.pick(&route, 1).map(|pick| (pick.broker.name().to_string(), pick.ready_at));
        let ready = |name: &str, pause| Some((name.to_owned(), Some(now + Duration::from_millis(pause))));
        assert_eq!(name(tried.pick(&route, 1)), "a1");
        tried.note(&"a".into(), Again::AfterDial, now, &backoff());
        assert_eq!(name(tried.pick(&route, 1)), "b1");
        tried.note(&"b".into(), Again::AfterBackoff(Duration::from_millis(7)), now, &backoff());
        assert_eq!(name(tried.pick(&route, 1)), "c0");
        tried.note(&"c".into(), Again::Never, now, &backoff());
        assert_eq!(pick(&tried), ready("b", 7));
        tried.note(&"b".into(), Again::Never, now, &backoff());
        assert_eq!(pick(&tried), ready("a", 100));
        tried.note(&"a".into(), Again::Never, now, &backoff());
        assert_eq!(pick(&tried), None);
    }

    #[test]
    fn failed_dials_of_one_send_pause_longer_each_time() {
        let (route, mut tried, now) = (route(), Tried::default(), Instant::now());
        let wanted = MessageQueue::new("t", "a", 0);
        for pause in [100, 200, 400] {
            tried.note(&"a".into(), Again::AfterDial, now, &backoff());
            let ready_at = tried.pick_wanted(&route, &wanted).unwrap().ready_at;
            assert_eq!(ready_at, Some(now + Duration::from_millis(pause)));
        }
    }

    #[test]
    fn a_wanted_queue_is_taken_as_long_as_it_exists_and_its_broker_may_be_asked() {
        let (route, mut tried, now) = (route(), Tried::default(), Instant::now());
        for (broker, id, expected) in [("b", 1, "b1"), ("b", 2, "none"), ("x", 0, "none")] {
            assert_eq!(name(tried.pick_wanted(&route, &MessageQueue::new("t", broker, id))), expected);
        }
        tried.note(&"b".into(), Again::Never, now, &backoff());
        assert_eq!(name(tried.pick_wanted(&route, &MessageQueue::new("t", "b", 1))), "none");
    }

    #[test]
    fn a_broker_that_may_not_be_asked_again_is_no_other_broker() {
        let (route, mut tried, now) = (route(), Tried::default(), Instant::now());
        let a = &route.brokers()[0];
        tried.note(&"b".into(), Again::Never, now, &backoff());
        assert!(tried.leaves_another(&route, a));
        tried.note(&"c".into(), Again::Never, now, &backoff());
        assert!(!tried.leaves_another(&route, a));
    }
}
