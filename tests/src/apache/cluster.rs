//! A name server and its brokers, from start to end.

mod trouble;

use std::{net::SocketAddr, time::Duration};

pub use self::trouble::Member;
use super::{
    distribution::Distribution,
    dump::{self, Dumped},
    error::HarnessError,
    node::{BrokerSpec, Node},
    rpc,
    run_folder::RunFolder,
    wait::wait_until,
};

/// What to start. The default is version 5.5.0 with one name server and one broker, `broker-a`.
#[derive(Clone, Debug)]
pub struct ClusterSpec {
    /// The version of Apache RocketMQ.
    pub version: String,
    /// How many name servers, at least one; every broker registers with each.
    pub name_servers: usize,
    /// The brokers, each with a name of its own.
    pub brokers: Vec<BrokerSpec>,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self { version: "5.5.0".to_owned(), name_servers: 1, brokers: vec![BrokerSpec::new("broker-a")] }
    }
}

/// Running name servers with their brokers, reached over loopback and with a fresh store. Version 4 listens on
/// every other address as well, which it cannot be told not to.
///
/// Dropping it kills the processes and removes their files. They are also killed when the process that holds
/// the cluster ends in any other way, so a cluster can be kept in a `static`.
#[derive(Debug)]
pub struct Cluster {
    // The order of the fields is the order of the end: the folder goes last.
    brokers: Vec<Node>,
    name_servers: Vec<Node>,
    folder: RunFolder,
    distribution: Distribution,
}

impl Cluster {
    /// Starts what `spec` says and waits until every broker is registered, which takes 5 to 20 seconds.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] says what failed, with what the process printed where one was the cause.
    pub fn start(spec: ClusterSpec) -> Result<Self, HarnessError> {
        let distribution = Distribution::fetch(&spec.version)?;
        let folder = RunFolder::new()?;
        let start =
            |number| Node::name_server(&distribution, folder.path().join(format!("namesrv-{number}")));
        let name_servers = (0..spec.name_servers).map(start).collect::<Result<Vec<_>, _>>()?;
        let wait = |name_server: Node| name_server.wait_until_ready(check_name_server);
        let name_servers = name_servers.into_iter().map(wait).collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<_> = name_servers.iter().map(Node::address).collect();
        let list = addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(";");
        let start = |(number, broker)| {
            let folder = folder.path().join(format!("broker-{number}"));
            Node::broker(&distribution, folder, broker, &list)
        };
        let brokers = spec.brokers.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()?;
        let wait = |broker: Node| broker.wait_until_ready(|address| check_registered(&addresses, address));
        let brokers = brokers.into_iter().map(wait).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { brokers, name_servers, folder, distribution })
    }

    /// The address of the first name server.
    #[must_use]
    pub fn namesrv(&self) -> SocketAddr {
        self.name_servers[0].address()
    }

    /// The addresses of all name servers, in the order in which they were started.
    #[must_use]
    pub fn name_servers(&self) -> Vec<SocketAddr> {
        self.name_servers.iter().map(Node::address).collect()
    }

    /// The addresses of all brokers, in the order of [`ClusterSpec::brokers`].
    #[must_use]
    pub fn brokers(&self) -> Vec<SocketAddr> {
        self.brokers.iter().map(Node::address).collect()
    }

    /// The numbers of all its processes.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.brokers.iter().chain(&self.name_servers).map(Node::process_id).collect()
    }

    /// Makes `topic` with `queues` queues on every broker, and waits until the name servers know them all.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] when a broker refuses, or when the route is not complete within 30 seconds.
    pub fn create_topic(&self, topic: &str, queues: u32) -> Result<(), HarnessError> {
        let queues = queues.to_string();
        let fields = [
            ("topic", topic),
            ("defaultTopic", "TBW102"),
            ("readQueueNums", &queues),
            ("writeQueueNums", &queues),
            ("perm", "6"),
            ("topicFilterType", "SINGLE_TAG"),
            ("topicSysFlag", "0"),
            ("order", "false"),
        ];
        for broker in &self.brokers {
            rpc::ask(broker.address(), UPDATE_AND_CREATE_TOPIC, &fields)?;
        }
        wait_until(|| format!("route of {topic}"), LIMIT, || Ok(self.check_route(topic)?))
    }

    /// Reads every message that `topic` holds with Apache's own consumer, in the order of brokers, queues and
    /// offsets. What was acknowledged before the call is among them.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] when a broker is not registered or has not indexed its log within 30 seconds, or when the
    /// consumer fails.
    pub fn dump(&self, topic: &str) -> Result<Vec<Dumped>, HarnessError> {
        let name_servers = self.name_servers();
        for broker in self.brokers() {
            let readable = || Ok(check_registered(&name_servers, broker).and_then(|()| check_index(broker))?);
            wait_until(|| format!("index of the broker at {broker}"), LIMIT, readable)?;
        }
        dump::dump(&self.distribution, self.folder.path(), self.namesrv(), topic)
    }

    /// Whether every name server has every broker in the route of `topic`; what it has instead.
    fn check_route(&self, topic: &str) -> Result<(), String> {
        self.name_servers.iter().try_for_each(|name_server| {
            let route = rpc::ask(name_server.address(), GET_ROUTEINFO_BY_TOPIC, &[("topic", topic)]);
            let route = text(route)?;
            let complete = self.brokers.iter().all(|broker| route.contains(&quoted(broker.address())));
            if complete { Ok(()) } else { Err(route) }
        })
    }
}

/// Whether the name server answers; why not.
fn check_name_server(name_server: SocketAddr) -> Result<(), String> {
    text(rpc::ask(name_server, GET_BROKER_CLUSTER_INFO, &[])).map(drop)
}

/// Whether the broker answers; why not.
fn check_broker(broker: SocketAddr) -> Result<(), String> {
    text(rpc::ask(broker, GET_BROKER_RUNTIME_INFO, &[])).map(drop)
}

/// Whether all that the broker has stored can be read; what it says instead.
fn check_index(broker: SocketAddr) -> Result<(), String> {
    let info = text(rpc::ask(broker, GET_BROKER_RUNTIME_INFO, &[]))?;
    if info.contains(r#""dispatchBehindBytes":"0""#) { Ok(()) } else { Err(info) }
}

/// Whether every name server knows the broker; the table of those that one knows instead. The table is almost
/// JSON, but with numbers for names.
fn check_registered(name_servers: &[SocketAddr], broker: SocketAddr) -> Result<(), String> {
    name_servers.iter().try_for_each(|&name_server| {
        let table = text(rpc::ask(name_server, GET_BROKER_CLUSTER_INFO, &[]))?;
        if table.contains(&quoted(broker)) { Ok(()) } else { Err(table) }
    })
}

fn text(answer: Result<Vec<u8>, HarnessError>) -> Result<String, String> {
    answer.map(|body| String::from_utf8_lossy(&body).into_owned()).map_err(|error| error.to_string())
}

fn quoted(address: SocketAddr) -> String {
    format!("\"{address}\"")
}

// The names are those of Apache's `RequestCode`.
const UPDATE_AND_CREATE_TOPIC: i32 = 17;
const GET_BROKER_RUNTIME_INFO: i32 = 28;
const GET_ROUTEINFO_BY_TOPIC: i32 = 105;
const GET_BROKER_CLUSTER_INFO: i32 = 106;

const LIMIT: Duration = Duration::from_secs(30);
