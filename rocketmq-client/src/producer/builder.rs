//! Settings of a producer, their defaults and their validation.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rocketmq_transport::{
    ConfigError, Connector, FailureLog, HeaderEncoding, Peer, PeerError, Signer, Transport, TransportConfig,
};
use tokio::sync::OnceCell;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    failure_log::FailureLines,
    heartbeat::Registration,
    identity,
    message::{MessageError, MessageLimits, UniqueKeys, validate},
    producer::{Policy, Producer, Shared},
    random,
    retry::{Backoff, Duplicates},
    routes::{NameServers, Routes},
    tasks::Tasks,
};

/// Settings of a [`Producer`], made by [`Producer::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ProducerBuilder {
    group: String,
    name_servers: Result<Vec<Peer>, PeerError>,
    topics: Vec<Arc<str>>,
    timeout: Duration,
    attempts: u32,
    duplicates: Duplicates,
    max_message_size: usize,
    transport: TransportConfig,
    encoding: Option<HeaderEncoding>,
    signer: Option<Arc<dyn Signer>>,
    connector: Option<Arc<dyn Connector>>,
}

impl ProducerBuilder {
    pub(crate) fn new(group: String) -> Self {
        Self {
            group,
            name_servers: Ok(Vec::new()),
            topics: Vec::new(),
            timeout: Duration::from_secs(3),
            attempts: 3,
            duplicates: Duplicates::Allow,
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
            transport: TransportConfig::default(),
            encoding: None,
            signer: None,
            connector: None,
        }
    }

    /// Sets the name servers from a list such as `10.0.0.1:9876;10.0.0.2:9876`; commas separate as well. They
    /// are asked in this order until one of them has answered. At least one is needed.
    pub fn namesrv(mut self, list: &str) -> Self {
        let entries = list.split([';', ',']).map(str::trim).filter(|entry| !entry.is_empty());
        self.name_servers = entries.map(str::parse).collect();
        self
    }

    /// Sets the name servers.
    pub fn name_servers(mut self, peers: impl IntoIterator<Item = Peer>) -> Self {
        self.name_servers = Ok(peers.into_iter().collect());
        self
    }

    /// Adds topics whose routes [`Producer::start`] looks up, so that the first send to them need not.
    pub fn topics<T: Into<Arc<str>>>(mut self, topics: impl IntoIterator<Item = T>) -> Self {
        self.topics.extend(topics.into_iter().map(Into::into));
        self
    }

    /// Sets the whole budget of a send: route, all attempts and the pauses between them. Default 3 s;
    /// [`Duration::MAX`] means no limit.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how many requests a send may make at most. Default 3, at least 1. A broker that cannot be reached gets no
    /// request, so it is tried again, with pauses, as long as the budget lasts: a send rides out the restart of the
    /// only broker. With 1 the first failed dial ends it.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets whether a send whose outcome is unknown may be repeated. Default [`Duplicates::Allow`].
    pub const fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.duplicates = duplicates;
        self
    }

    /// Sets how headers are written. Default as in the transport's settings, which is JSON by default.
    pub const fn header_encoding(mut self, encoding: HeaderEncoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// Sets who signs each request, for brokers with access control. Default nobody.
    pub fn signer(mut self, signer: Arc<dyn Signer>) -> Self {
        self.signer = Some(signer);
        self
    }

    /// Sets the largest body in bytes. Default 4 MiB, as the brokers have it; at most what a frame can hold.
    pub const fn max_message_size(mut self, bytes: usize) -> Self {
        self.max_message_size = bytes;
        self
    }

    /// Sets the transport's settings. Its failure log is off whatever they say, since the producer makes that
    /// line.
    pub fn transport(mut self, config: TransportConfig) -> Self {
        self.transport = config;
        self
    }

    /// Sets how connections are opened. Default [`TcpConnector`](rocketmq_transport::TcpConnector), which
    /// takes a resolver of your own as well.
    pub fn connector(mut self, connector: Arc<dyn Connector>) -> Self {
        self.connector = Some(connector);
        self
    }

    /// Checks the settings and makes the producer. Nothing is sent and no task started yet.
    ///
    /// # Errors
    ///
    /// The first setting that is wrong.
    pub fn build(self) -> Result<Producer, BuildError> {
        self.validate()?;
        let mut config = self.transport;
        config.failure_log = FailureLog::Off;
        config.header_encoding = self.encoding.unwrap_or(config.header_encoding);
        let backoff = Backoff { min_dial: config.min_backoff, max_dial: config.max_backoff };
        let mut transport = Transport::builder(config);
        if let Some(signer) = self.signer {
            transport = transport.signer(signer);
        }
        if let Some(connector) = self.connector {
            transport = transport.connector(connector);
        }
        let transport = transport.build()?;
        let policy = Policy {
            group: self.group.into(),
            topics: self.topics,
            timeout: self.timeout,
            attempts: self.attempts,
            duplicates: self.duplicates,
            limits: MessageLimits { max_body: self.max_message_size },
            backoff,
        };
        Ok(assemble(transport, self.name_servers?, policy))
    }

    fn validate(&self) -> Result<(), BuildError> {
        check_group(&self.group)?;
        match &self.name_servers {
            Ok(peers) if peers.is_empty() => return Err(BuildError::NoNameServer),
            Ok(_) => {}
            Err(error) => return Err(error.clone().into()),
        }
        for topic in &self.topics {
            validate::topic(topic).map_err(BuildError::Topic)?;
        }
        self.transport.validate()?;
        let max = self.transport.max_frame_bytes;
        for (setting, holds, reason) in [
            ("timeout", !self.timeout.is_zero(), "must be longer than zero"),
            ("attempts", self.attempts > 0, "must be at least 1"),
            ("max_message_size", self.max_message_size > 0, "must be at least 1"),
            ("max_message_size", self.max_message_size < max, "must be less than max_frame_bytes"),
        ] {
            if !holds {
                return Err(BuildError::Setting { setting, reason });
            }
        }
        Ok(())
    }
}

/// What is wrong with the settings of a producer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The group is empty or blank.
    #[error("the producer group is blank")]
    GroupBlank,
    /// The group is longer than brokers take.
    #[error("the producer group has {length} characters, at most {MAX_GROUP} are allowed")]
    GroupTooLong {
        /// Its length in characters.
        length: usize,
    },
    /// The group holds a character that no group has.
    #[error("the producer group holds {character:?}; letters, digits, %, |, _ and - are allowed")]
    GroupCharacter {
        /// The first such character.
        character: char,
    },
    /// The group is the one that stands for none.
    #[error("the producer group {DEFAULT_GROUP} is reserved")]
    GroupReserved,
    /// No name server was given.
    #[error("no name server is given")]
    NoNameServer,
    /// A name server is not an address.
    #[error("a name server cannot be used: {0}")]
    NameServer(#[from] PeerError),
    /// A topic to be looked up at the start breaks a rule.
    #[error("a topic cannot be used: {0}")]
    Topic(MessageError),
    /// A setting is out of range.
    #[error("{setting} {reason}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// A setting of the transport is out of range.
    #[error(transparent)]
    Transport(#[from] ConfigError),
}

fn check_group(group: &str) -> Result<(), BuildError> {
    let length = group.chars().count();
    if validate::is_blank(group) {
        return Err(BuildError::GroupBlank);
    }
    if length > MAX_GROUP {
        return Err(BuildError::GroupTooLong { length });
    }
    if let Some(character) = group.chars().find(|character| !validate::is_name_character(*character)) {
        return Err(BuildError::GroupCharacter { character });
    }
    if group == DEFAULT_GROUP { Err(BuildError::GroupReserved) } else { Ok(()) }
}

fn assemble(transport: Transport, name_servers: Vec<Peer>, policy: Policy) -> Producer {
    let tasks = Tasks::default();
    let routes = Routes::new(NameServers::new(transport.clone(), name_servers), tasks.clone());
    let log = FailureLines::new(transport.clone(), tasks.clone());
    let address = identity::local_address();
    let registration = Registration {
        transport: transport.clone(),
        routes: routes.clone(),
        log: log.clone(),
        client_id: identity::client_id(address),
        producer_group: policy.group.to_string(),
    };
    let discriminator = u32::try_from(random::number() >> 32).unwrap_or_default();
    // A clock before 1970 gives ids of 1970, which are as unique.
    let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Producer(Arc::new(Shared {
        transport,
        routes,
        registration,
        log,
        keys: UniqueKeys::new(address, discriminator, origin),
        policy,
        started: OnceLock::new(),
        sends: TaskTracker::new(),
        abandon: CancellationToken::new(),
        shutdown: OnceCell::new(),
        _stop_on_drop: tasks.stop_on_drop(),
        tasks,
    }))
}

/// The largest body that brokers take unless they are set up otherwise (`maxMessageSize`).
const DEFAULT_MAX_MESSAGE_SIZE: usize = 4 << 20;
/// The longest group name (`Validators`).
const MAX_GROUP: usize = 120;
/// The name that stands for no group (`MixAll`).
const DEFAULT_GROUP: &str = "DEFAULT_PRODUCER";

#[cfg(test)]
mod tests {
    use super::*;

    fn builder(group: &str) -> ProducerBuilder {
        Producer::builder(group).namesrv("127.0.0.1:9876")
    }

    #[test]
    fn each_wrong_setting_has_its_own_error() {
        let mut config = TransportConfig::default();
        config.max_tombstones = 0;
        for (builder, expected) in [
            (builder(" "), "the producer group is blank"),
            (builder(&"g".repeat(121)), "the producer group has 121 characters, at most 120 are allowed"),
            (builder("a.b"), "the producer group holds '.'; letters, digits, %, |, _ and - are allowed"),
            (builder("DEFAULT_PRODUCER"), "the producer group DEFAULT_PRODUCER is reserved"),
            (builder("g").namesrv(" ; ,"), "no name server is given"),
            (builder("g").name_servers([]), "no name server is given"),
            (
                builder("g").namesrv("a:1;b"),
                "a name server cannot be used: \"b\" is not host:port: the port is missing",
            ),
            (builder("g").topics(["ok", ""]), "a topic cannot be used: the topic is blank"),
            (builder("g").timeout(Duration::ZERO), "timeout must be longer than zero"),
            (builder("g").attempts(0), "attempts must be at least 1"),
            (builder("g").max_message_size(0), "max_message_size must be at least 1"),
            (builder("g").max_message_size(16 << 20), "max_message_size must be less than max_frame_bytes"),
            (builder("g").transport(config), "max_tombstones must be at least 1"),
        ] {
            assert_eq!(builder.build().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn name_servers_are_separated_by_semicolons_or_commas() {
        let builder = builder("g").namesrv("a:1; b:2,c:3;");
        let expected: Vec<Peer> = ["a:1", "b:2", "c:3"].map(|peer| peer.parse().unwrap()).into();
        assert_eq!(builder.name_servers, Ok(expected));
    }
}
