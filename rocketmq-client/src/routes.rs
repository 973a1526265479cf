//! Topic to queues to brokers: a cache that is filled by shared lookups.

mod error;
mod lookup;
mod publish;

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rocketmq_transport::{Peer, RequestDeadline};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

pub use self::error::{NameServerError, NameServerFailure, RouteError, RouteErrorKind};
pub(crate) use self::{
    error::shortened,
    lookup::NameServers,
    publish::{PublishBroker, PublishRoute},
};
use crate::{protocol::code, random, tasks::Tasks};

/// The routes of a client. Cheap to clone.
///
/// Per topic there is at most one lookup at a time. It is a task of its own with its own limit: whoever waits
/// for it may leave without ending it for the others. A route older than [`MAX_AGE`] is still used while it
/// is looked up again, and a lookup that fails leaves it as it was.
#[derive(Clone, Debug)]
pub(crate) struct Routes(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    servers: NameServers,
    tasks: Tasks,
    /// In order, since a few comparisons of short names cost less than hashing one.
    topics: Mutex<BTreeMap<Arc<str>, Topic>>,
    changed: Notify,
}

#[derive(Debug)]
struct Topic {
    route: Option<Arc<PublishRoute>>,
    looked_up: Instant,
    /// When the next lookup is due.
    due: Instant,
    /// The lookup in flight, or the one before: it is in flight as long as its sender lives.
    lookup: watch::Receiver<Option<Outcome>>,
}

type Outcome = Result<Arc<PublishRoute>, RouteError>;

impl Routes {
    /// No routes yet; lookups are among `tasks`.
    pub(crate) fn new(servers: NameServers, tasks: Tasks) -> Self {
        Self(Arc::new(Shared { servers, tasks, topics: Mutex::default(), changed: Notify::new() }))
    }

    /// The queues of `topic` that can be written, where they are known and not due for a lookup at `now`.
    pub(crate) fn cached(&self, topic: &str, now: Instant) -> Option<Arc<PublishRoute>> {
        let topics = self.topics();
        let known = topics.get(topic).filter(|known| known.due > now)?;
        known.route.clone()
    }

    /// The queues of `topic` that can be written: cached, or from the one lookup in flight. Whoever asks has checked
    /// its name, so that the cache holds legal ones only.
    ///
    /// It ends with that lookup, so the caller sees to its own deadline. Dropping the future ends no lookup.
    pub(crate) async fn publish(&self, topic: &Arc<str>) -> Outcome {
        let mut lookup = match self.cached_or_lookup(topic) {
            Ok(route) => return Ok(route),
            Err(lookup) => lookup,
        };
        let outcome = lookup.wait_for(Option::is_some).await;
        outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or_else(|| {
            // The runtime or the client ended the lookup.
            Err(RouteError::new(RouteErrorKind::Unavailable, topic.clone(), Vec::new()))
        })
    }

    /// Takes note that an attempt failed which the route of `topic` led to: it is looked up again with the
    /// next send, though not more often than once in [`MIN_AGE`].
    pub(crate) fn suspect(&self, topic: &str) {
        if let Some(topic) = self.topics().get_mut(topic) {
            topic.due = topic.due.min(topic.looked_up + MIN_AGE);
        }
    }

    /// The masters of all topics.
    pub(crate) fn masters(&self) -> HashSet<Peer> {
        let topics = self.topics();
        let routes = topics.values().filter_map(|topic| topic.route.as_ref());
        routes.flat_map(|route| route.brokers()).map(|broker| broker.master.clone()).collect()
    }

    /// Waits until a route may have brought a new broker.
    ///
    /// For one task at a time; a change while none waits is not lost.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    fn cached_or_lookup(
        &self,
        topic: &Arc<str>,
    ) -> Result<Arc<PublishRoute>, watch::Receiver<Option<Outcome>>> {
        let now = Instant::now();
        let mut topics = self.topics();
        let known = topics.get_mut(topic);
        match &known {
            Some(Topic { route: Some(route), due, .. }) if *due > now => return Ok(route.clone()),
            // A sender that has gone makes this an error.
            Some(Topic { route, lookup, .. }) if lookup.has_changed().is_ok() => {
                return route.clone().ok_or_else(|| lookup.clone());
            }
            Some(_) | None => {}
        }
        let (sender, lookup) = watch::channel(None);
        let route = known.and_then(|topic| topic.route.clone());
        let entry =
            Topic { route: route.clone(), looked_up: now, due: now + MAX_AGE, lookup: lookup.clone() };
        topics.insert(topic.clone(), entry);
        drop(topics);
        self.start_lookup(topic.clone(), route.clone(), sender);
        route.ok_or(lookup)
    }

    /// Starts the task that looks `topic` up, which has the route `old`.
    fn start_lookup(
        &self,
        topic: Arc<str>,
        old: Option<Arc<PublishRoute>>,
        sender: watch::Sender<Option<Outcome>>,
    ) {
        let routes = self.clone();
        self.0.tasks.spawn(async move {
            let outcome = routes.look_up(&topic, old.as_deref()).await;
            routes.store(&topic, &outcome);
            sender.send_replace(Some(outcome));
        });
    }

    async fn look_up(&self, topic: &Arc<str>, old: Option<&PublishRoute>) -> Outcome {
        let deadline = RequestDeadline::after(LOOKUP_LIMIT);
        let turn = old.map_or_else(random::number, PublishRoute::turn);
        let error = |kind, failures| RouteError::new(kind, topic.clone(), failures);
        let failures = match self.0.servers.ask(topic, deadline).await {
            Ok(route) => {
                let route = PublishRoute::of(topic, &route, turn).map(Arc::new);
                return route.ok_or_else(|| error(RouteErrorKind::NoUsableBroker, Vec::new()));
            }
            Err(failures) => failures,
        };
        // A topic that nobody knows is created by the first send to it, with the settings of another topic.
        if old.is_none()
            && failures.iter().any(says_no_route)
            && let Ok(default) = self.0.servers.ask(&DEFAULT_TOPIC.into(), deadline).await
            && let Some(route) = PublishRoute::of_default(topic, &default, turn)
        {
            return Ok(Arc::new(route));
        }
        let unknown = failures.iter().all(says_no_route);
        Err(error(
            if unknown { RouteErrorKind::TopicNotFound } else { RouteErrorKind::Unavailable },
            failures,
        ))
    }

    fn store(&self, topic: &Arc<str>, outcome: &Outcome) {
        let mut topics = self.topics();
        match outcome {
            Ok(route) => {
                if let Some(topic) = topics.get_mut(topic) {
                    topic.route = Some(route.clone());
                }
                self.0.changed.notify_one();
            }
            Err(error) => {
                tracing::debug!(%topic, %error, "route lookup failed");
                let has_route = topics.get(topic).is_some_and(|topic| topic.route.is_some());
                // Nobody may write the topic any more, or nothing is known of it.
                if error.kind() == RouteErrorKind::NoUsableBroker || !has_route {
                    topics.remove(topic);
                }
            }
        }
    }

    fn topics(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Topic>> {
        // Nothing that can panic runs under the lock while the map is half changed.
        self.0.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn says_no_route(failure: &NameServerFailure) -> bool {
    matches!(failure.error(), NameServerError::Answer { code, .. } if *code == code::TOPIC_NOT_EXIST)
}

/// The topic whose settings a topic inherits that the brokers create for its first message
/// (`TopicValidator`).
pub(crate) const DEFAULT_TOPIC: &str = "TBW102";
/// How many queues a broker gives such a topic at most.
pub(crate) const DEFAULT_TOPIC_QUEUES: u32 = 4;
/// The limit of one lookup, over all name servers.
const LOOKUP_LIMIT: Duration = Duration::from_secs(3);
/// How old a route may get before it is looked up again.
const MAX_AGE: Duration = Duration::from_secs(30);
/// How young a route is left alone although a send failed by it.
const MIN_AGE: Duration = Duration::from_secs(1);
