//! Keeping brokers informed of the client's groups.

use std::{borrow::Cow, collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_transport::{CallOptions, Class, Code, Header, Peer, Request, RequestDeadline, Transport};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at},
};

use crate::{
    failure_log::FailureLines,
    protocol::{
        code,
        heartbeat::{Heartbeat, ProducerData, Unregister},
    },
    routes::Routes,
};

/// Makes the client known to the master of each broker in its routes, and takes that back in the end.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub(crate) transport: Transport,
    pub(crate) routes: Routes,
    pub(crate) log: FailureLines,
    pub(crate) client_id: String,
    pub(crate) producer_group: String,
}

impl Registration {
    /// Sends a heartbeat to each broker when it first appears in a route, and to all every [`INTERVAL`], for
    /// ever.
    pub(crate) async fn keep_up(self) {
        let mut interval = interval_at(Instant::now() + INTERVAL, INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = HashSet::new();
        loop {
            tokio::select! {
                _ = interval.tick() => told.clear(),
                () = self.routes.changed() => {}
            }
            let masters = self.routes.masters();
            self.tell(masters.difference(&told), &self.heartbeat(), RequestDeadline::after(REQUEST_LIMIT))
                .await;
            told = masters;
        }
    }

    /// Tells each broker that the group has ended, by `deadline`, and returns how many have taken note.
    pub(crate) async fn unregister(&self, deadline: RequestDeadline) -> usize {
        let header = Unregister {
            client_id: Cow::Owned(self.client_id.clone()),
            producer_group: Cow::Owned(self.producer_group.clone()),
        };
        let notice = Notice { code: code::UNREGISTER_CLIENT, header: Arc::new(header), body: Bytes::new() };
        self.tell(self.routes.masters().iter(), &notice, deadline.capped(REQUEST_LIMIT)).await
    }

    fn heartbeat(&self) -> Notice {
        let heartbeat = Heartbeat {
            client_id: self.client_id.clone(),
            producer_data_set: vec![ProducerData { group_name: self.producer_group.clone() }],
        };
        Notice { code: code::HEART_BEAT, header: Arc::new(()), body: heartbeat.to_json() }
    }

    /// Sends `notice` to all `brokers` at the same time, so that a silent one holds none of the others up,
    /// and returns how many have taken note.
    async fn tell(
        &self,
        brokers: impl Iterator<Item = &Peer>,
        notice: &Notice,
        deadline: RequestDeadline,
    ) -> usize {
        let mut calls = JoinSet::new();
        for broker in brokers {
            let (registration, broker, notice) = (self.clone(), broker.clone(), notice.clone());
            calls.spawn(async move { notice.send(&registration, &broker, deadline).await });
        }
        let mut taken = 0;
        while let Some(call) = calls.join_next().await {
            taken += usize::from(call.is_ok_and(|call| call == Taken::Yes));
        }
        taken
    }
}

/// A request that informs a broker.
#[derive(Clone)]
struct Notice {
    code: Code,
    header: Arc<dyn Header>,
    body: Bytes,
}

/// Whether a broker has taken note.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    No,
}

impl Notice {
    async fn send(&self, registration: &Registration, broker: &Peer, deadline: RequestDeadline) -> Taken {
        let request = Request { code: self.code, header: &*self.header, body: self.body.clone() };
        let mut options = CallOptions::from(deadline);
        options.class = Class::Control;
        match registration.transport.call(broker, request, options).await {
            Ok(call) if call.response.code() == Code::SUCCESS => Taken::Yes,
            Ok(call) => {
                let (status, request) = (call.response.code().0, self.code.0);
                tracing::warn!(peer = %broker, request, status, "a broker has refused a notice");
                Taken::No
            }
            Err(error) => {
                registration.log.request(&error);
                Taken::No
            }
        }
    }
}

/// How often brokers are told; they forget a client after 120 s.
const INTERVAL: Duration = Duration::from_secs(30);
/// The limit of one request, as Java's clients have it (`mqClientApiTimeout`).
const REQUEST_LIMIT: Duration = Duration::from_secs(3);
