//! Requests to the name server and to the brokers, by code.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use rocketmq_transport::{Code, Command, Handler, Response};

use super::{
    access::Access,
    clients::Clients,
    names::Cluster,
    reads::Reads,
    refusal::Refusal,
    send::Sends,
    store::Store,
    topic::{TopicConfig, TopicName},
};
use crate::{
    AutoCreateTopics,
    protocol::{
        code,
        heartbeat::{Heartbeat, Unregister},
        topic::CreateTopic,
    },
};

/// What the name server and the brokers share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Set once all brokers listen; only then does anybody know their addresses.
    pub(super) cluster: OnceLock<Cluster>,
    pub(super) store: Store,
    pub(super) clients: Clients,
    pub(super) auto_create: AutoCreateTopics,
    pub(super) max_message_bytes: usize,
    /// Whose requests the brokers answer; everybody's where there is none.
    pub(super) access: Option<Access>,
}

impl Shared {
    fn cluster(&self) -> Result<&Cluster, Refusal> {
        let starting = || Refusal::new(code::SYSTEM_BUSY, "the embedded broker is still starting");
        self.cluster.get().ok_or_else(starting)
    }
}

/// Answers as a name server.
#[derive(Debug)]
pub(super) struct NameServer(pub(super) Arc<Shared>);

impl NameServer {
    fn answer(&self, request: &Command) -> Result<Response, Refusal> {
        let shared = &self.0;
        match request.code() {
            code::GET_ROUTEINFO_BY_TOPIC => {
                Ok(done(shared.cluster()?.route(request, &shared.store, shared.auto_create)?))
            }
            code::GET_BROKER_CLUSTER_INFO => Ok(done(shared.cluster()?.info())),
            other => Err(Refusal::unsupported(other)),
        }
    }
}

impl Handler for NameServer {
    async fn handle(&self, request: Command, _: SocketAddr) -> Option<Response> {
        Some(self.answer(&request).unwrap_or_else(Response::from))
    }
}

/// Answers as one broker.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) shared: Arc<Shared>,
    /// Its place among the brokers.
    pub(super) index: usize,
}

impl Broker {
    fn answer(&self, request: &Command, remote: SocketAddr) -> Result<Response, Refusal> {
        if let Some(access) = &self.shared.access {
            access.check(request)?;
        }
        match request.code() {
            code::SEND_MESSAGE | code::SEND_MESSAGE_V2 => self.sends()?.store(request, remote),
            code::HEART_BEAT => self.heartbeat(request, remote),
            code::UNREGISTER_CLIENT => {
                let unregister = Unregister::decode(request)?;
                self.shared.clients.unregister((self.index, remote), &unregister);
                Ok(done(Bytes::new()))
            }
            code::PULL_MESSAGE => self.reads()?.pull(request),
            code::QUERY_MESSAGE => self.reads()?.query(request),
            code::GET_MAX_OFFSET => self.reads()?.max_offset(request),
            code::GET_MIN_OFFSET => self.reads()?.min_offset(request),
            code::SEARCH_OFFSET_BY_TIMESTAMP => self.reads()?.offset_by_time(request),
            code::UPDATE_AND_CREATE_TOPIC => self.create_topic(request),
            other => Err(Refusal::unsupported(other)),
        }
    }

    fn sends(&self) -> Result<Sends<'_>, Refusal> {
        Ok(Sends {
            broker: self.place()?,
            store: &self.shared.store,
            auto_create: self.shared.auto_create,
            max_message_bytes: self.shared.max_message_bytes,
        })
    }

    fn reads(&self) -> Result<Reads<'_>, Refusal> {
        Ok(Reads { broker: self.place()?, store: &self.shared.store })
    }

    /// Its index and its address.
    fn place(&self) -> Result<(usize, SocketAddr), Refusal> {
        Ok((self.index, self.shared.cluster()?.brokers[self.index].address))
    }

    fn heartbeat(&self, request: &Command, remote: SocketAddr) -> Result<Response, Refusal> {
        let bad = |error| Refusal::new(Code::SYSTEM_ERROR, format!("the heartbeat cannot be read: {error}"));
        let heartbeat = Heartbeat::parse(request.body()).map_err(bad)?;
        self.shared.clients.heartbeat((self.index, remote), heartbeat)?;
        Ok(done(Bytes::new()))
    }

    fn create_topic(&self, request: &Command) -> Result<Response, Refusal> {
        let header = CreateTopic::decode(request)?;
        let config = TopicConfig {
            read_queues: header.read_queue_nums,
            write_queues: header.write_queue_nums,
            perm: header.perm,
            sys_flag: header.sys_flag,
        };
        self.shared.store.create_topic(self.index, TopicName::new(&header.topic)?, config)?;
        Ok(done(Bytes::new()))
    }
}

impl Handler for Broker {
    async fn handle(&self, request: Command, remote: SocketAddr) -> Option<Response> {
        Some(self.answer(&request, remote).unwrap_or_else(Response::from))
    }

    fn disconnected(&self, remote: SocketAddr) {
        self.shared.clients.forget((self.index, remote));
    }
}

fn done(body: Bytes) -> Response {
    Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body }
}
