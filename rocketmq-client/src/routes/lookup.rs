//! Asking the name servers for a route.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use rocketmq_transport::{CallOptions, Code, Command, Peer, Request, RequestDeadline, Transport};
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use crate::{
    protocol::{
        code,
        route::{RouteRequest, TopicRoute},
    },
    routes::error::{NameServerError, NameServerFailure, shortened},
};

/// The name servers, any of which knows every route.
///
/// They are asked in turn, beginning with the one that answered last: the next as soon as one has failed or
/// has no route, and also when one has not answered for [`PATIENCE`]. The first route counts. So one that is
/// frozen costs little, and one that does not know a topic hides none that does.
#[derive(Debug)]
pub(crate) struct NameServers {
    transport: Transport,
    peers: Box<[Peer]>,
    /// The place of the one that answered last.
    first: AtomicUsize,
}

type Answered = (usize, Result<TopicRoute, NameServerError>);

impl NameServers {
    /// `peers`, of which there is at least one, asked in this order at first.
    pub(crate) fn new(transport: Transport, peers: impl Into<Box<[Peer]>>) -> Self {
        Self { transport, peers: peers.into(), first: AtomicUsize::new(0) }
    }

    /// The route of `topic`, or what each of them said instead.
    pub(crate) async fn ask(
        &self,
        topic: &Arc<str>,
        deadline: RequestDeadline,
    ) -> Result<TopicRoute, Vec<NameServerFailure>> {
        // Relaxed: a hint only.
        let first = self.first.load(Ordering::Relaxed);
        let mut rest = (0..self.peers.len()).map(|place| (first + place) % self.peers.len());
        let mut asked = JoinSet::new();
        let mut failures = Vec::new();
        loop {
            if let Some(place) = rest.next() {
                // A share of what remains, so that one that is frozen leaves the others time to be asked.
                let now = Instant::now();
                let share = deadline.remaining(now) / u32::try_from(rest.len() + 1).unwrap_or(u32::MAX);
                self.start(&mut asked, place, topic, deadline.capped_at(now + share));
            } else if asked.is_empty() {
                return Err(failures);
            }
            let patience = sleep_until(Instant::now() + PATIENCE);
            tokio::select! {
                biased;
                Some(ended) = asked.join_next() => match answered(ended) {
                    Some((place, Ok(route))) => {
                        self.first.store(place, Ordering::Relaxed);
                        return Ok(route);
                    }
                    Some((place, Err(error))) => {
                        failures.push(NameServerFailure { peer: self.peers[place].clone(), error });
                    }
                    None => {}
                },
                () = patience, if rest.len() > 0 => {}
            }
        }
    }

    fn start(
        &self,
        asked: &mut JoinSet<Answered>,
        place: usize,
        topic: &Arc<str>,
        deadline: RequestDeadline,
    ) {
        let (transport, peer, topic) = (self.transport.clone(), self.peers[place].clone(), topic.clone());
        asked.spawn(async move {
            let header = RouteRequest { topic: Cow::Borrowed(&topic) };
            let request = Request { code: code::GET_ROUTEINFO_BY_TOPIC, header: &header, body: Bytes::new() };
            let answer = transport.call(&peer, request, CallOptions::from(deadline)).await;
            (place, answer.map_err(NameServerError::Transport).and_then(|call| read(&call.response)))
        });
    }
}

/// The route in an answer.
fn read(response: &Command) -> Result<TopicRoute, NameServerError> {
    if response.code() != Code::SUCCESS {
        let remark = shortened(&response.remark().unwrap_or_default()).into();
        return Err(NameServerError::Answer { code: response.code(), remark });
    }
    TopicRoute::parse(response.body()).map_err(NameServerError::UnreadableRoute)
}

/// The outcome of a call that ended; a panic in it goes on here, and none is aborted while it is awaited.
fn answered(ended: Result<Answered, JoinError>) -> Option<Answered> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(answered) => Some(answered),
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        Err(Err(_)) => None,
    }
}

/// How long one name server is waited for before the next is asked too.
const PATIENCE: Duration = Duration::from_millis(200);
