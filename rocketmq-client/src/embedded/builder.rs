//! Settings of an embedded broker, and its start.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, OnceLock},
};

use rocketmq_transport::{
    AclError, Handler, Peer, Server, ServerConfig,
    fault::{Fault, FaultScript},
};

use super::{
    BrokerServer, EmbeddedBroker, TopicError,
    access::Access,
    clients::Clients,
    faults::{FaultSite, Scripts},
    handler::{Broker, NameServer, Shared},
    names::{BrokerNode, Cluster},
    store::{Limits, Store},
};

/// Settings of an [`EmbeddedBroker`].
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rocketmq_client::{AutoCreateTopics, EmbeddedBroker};
///
/// let broker = EmbeddedBroker::builder()
///     .brokers(2)
///     .topic("orders", 8)
///     .auto_create_topics(AutoCreateTopics::Off)
///     .start()
///     .await?;
/// assert_eq!(broker.brokers().count(), 2);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing listens until `start` is awaited"]
pub struct EmbeddedBrokerBuilder {
    port: u16,
    brokers: usize,
    topics: Vec<(String, u32)>,
    auto_create: AutoCreateTopics,
    max_message_bytes: usize,
    limits: Limits,
    access: Option<Result<Access, AclError>>,
    faults: Vec<(FaultSite, Fault)>,
}

/// Whether a send to an unknown topic creates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AutoCreateTopics {
    /// It does, as brokers do unless they are told otherwise.
    On,
    /// The send is refused with code 17, and the name server has no route for the topic.
    Off,
}

/// An embedded broker that could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedBrokerError {
    /// A setting is out of range.
    #[error("{setting} {reason}")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// The credentials are none that anybody could sign with.
    #[error("the credentials cannot be used")]
    Credentials(#[from] AclError),
    /// A fault is for a broker that there is not.
    #[error("there is no broker-{index}: the brokers are numbered from 0, and there are {brokers}")]
    NoSuchBroker {
        /// The place asked for.
        index: usize,
        /// How many brokers there are.
        brokers: usize,
    },
    /// A topic to be created at the start was refused.
    #[error("topic {topic:?} cannot be created")]
    Topic {
        /// Its name as it was given.
        topic: String,
        /// The rule it breaks.
        source: TopicError,
    },
    /// A port cannot be listened on, for example because it is in use.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

impl EmbeddedBrokerBuilder {
    pub(super) fn new() -> Self {
        Self {
            port: 0,
            brokers: 1,
            topics: Vec::new(),
            auto_create: AutoCreateTopics::On,
            max_message_bytes: 4 << 20,
            limits: Limits { messages: 1_000_000, bytes: 1 << 30, topics: 10_000 },
            access: None,
            faults: Vec::new(),
        }
    }

    /// The port of the name server on 127.0.0.1. Default 0, which takes a free one; the brokers always take
    /// free ones.
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How many brokers there are, all of them masters, named `broker-0`, `broker-1` and so on. Default 1, at
    /// most 64.
    pub const fn brokers(mut self, brokers: usize) -> Self {
        self.brokers = brokers;
        self
    }

    /// Creates `topic` at the start, with `queues` queues at each broker. May be called for several topics.
    pub fn topic(mut self, topic: impl Into<String>, queues: u32) -> Self {
        self.topics.push((topic.into(), queues));
        self
    }

    /// Whether a send to an unknown topic creates it. Default [`AutoCreateTopics::On`].
    pub const fn auto_create_topics(mut self, auto_create: AutoCreateTopics) -> Self {
        self.auto_create = auto_create;
        self
    }

    /// The longest body that is stored; a longer one is refused with code 13. Default and brokers' default
    /// 4 MiB, at most 15 MiB.
    pub const fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// How many messages are retained, over all brokers and topics. Default 1,000,000. Nothing is ever
    /// dropped: when the broker is full it refuses, with code 14, as a real one does whose disk is full.
    pub const fn max_retained_messages(mut self, messages: usize) -> Self {
        self.limits.messages = messages;
        self
    }

    /// How many bytes are retained, over all brokers and topics: bodies, properties, groups, and 256 bytes for
    /// each message. Default 1 GiB. When the broker is full it refuses, with code 14.
    pub const fn max_retained_bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Makes the brokers refuse, with code 16, every request that is not signed with these keys, as brokers with
    /// access control do; the name server asks for no signature. Default everybody may do everything.
    pub fn credentials(mut self, access_key: impl Into<String>, secret_key: impl AsRef<str>) -> Self {
        self.access = Some(Access::new(access_key.into(), secret_key.as_ref()));
        self
    }

    /// Makes the servers at `site` misbehave, from their start on. May be called several times: the
    /// [script](rocketmq_transport::fault::FaultScript) of each server has the faults in the order they were given.
    pub fn fault(mut self, site: FaultSite, fault: Fault) -> Self {
        self.faults.push((site, fault));
        self
    }

    /// Starts the brokers, then the name server. When this returns, all of them answer.
    ///
    /// # Errors
    ///
    /// A setting is out of range, a topic's name or queue count breaks a rule, a fault is for a broker that there is
    /// not, or a port cannot be listened on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends what has been started.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime.
    pub async fn start(self) -> Result<EmbeddedBroker, EmbeddedBrokerError> {
        self.validate()?;
        let scripts = Scripts::new(self.brokers, &self.faults)?;
        let shared = Arc::new(Shared {
            cluster: OnceLock::new(),
            store: Store::new(self.limits),
            clients: Clients::default(),
            auto_create: self.auto_create,
            max_message_bytes: self.max_message_bytes,
            access: self.access.transpose()?,
        });
        let mut brokers = Vec::with_capacity(self.brokers);
        for index in 0..self.brokers {
            let handler = Broker { shared: Arc::clone(&shared), index };
            let server = listen(0, handler, &scripts.brokers[index]).await?;
            let peer = Peer::from(server.local_addr());
            brokers.push(BrokerServer { name: format!("broker-{index}").into(), peer, server });
        }
        let node = |broker: &BrokerServer| BrokerNode {
            name: Arc::clone(&broker.name),
            address: broker.server.local_addr(),
        };
        let cluster = Cluster { brokers: brokers.iter().map(node).collect() };
        shared.cluster.set(cluster).expect("nobody else sets the cluster");
        let handler = NameServer(Arc::clone(&shared));
        let name_server = listen(self.port, handler, &scripts.name_server).await?;
        let namesrv = Peer::from(name_server.local_addr());
        let broker = EmbeddedBroker { namesrv, name_server, brokers, shared, scripts };
        for (topic, queues) in self.topics {
            broker
                .create_topic(&topic, queues)
                .map_err(|source| EmbeddedBrokerError::Topic { topic, source })?;
        }
        Ok(broker)
    }

    fn validate(&self) -> Result<(), EmbeddedBrokerError> {
        let check = |setting, holds: bool, reason| {
            if holds { Ok(()) } else { Err(EmbeddedBrokerError::Setting { setting, reason }) }
        };
        check("brokers", (1..=MAX_BROKERS).contains(&self.brokers), "must be between 1 and 64")?;
        check(
            "max_message_bytes",
            (1..=MAX_MESSAGE_BYTES).contains(&self.max_message_bytes),
            "must be between 1 byte and 15 MiB",
        )
    }
}

async fn listen(
    port: u16,
    handler: impl Handler,
    script: &FaultScript,
) -> Result<Server, EmbeddedBrokerError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Server::bind_with_faults(address, Arc::new(handler), ServerConfig::default(), script.clone())
        .await
        .map_err(|source| EmbeddedBrokerError::Listen { address, source })
}

/// As many as anybody will want on one machine.
const MAX_BROKERS: usize = 64;
/// Leaves room for a header of 1 MiB in the largest frame.
const MAX_MESSAGE_BYTES: usize = 15 << 20;
