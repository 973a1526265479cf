//! A name server and its brokers, from start to end.

use std::{net::SocketAddr, time::Duration};

use super::{
    distribution::Distribution,
    dump::{self, Dumped},
    error::HarnessError,
    node::{BrokerSpec, Node},
    rpc,
    run_folder::RunFolder,
    wait::wait_until,
};

/// What to start. The default is version 5.5.0 with one broker, `broker-a`.
#[derive(Clone, Debug)]
pub struct ClusterSpec {
    /// The version of Apache RocketMQ.
    pub version: String,
    /// The brokers, each with a name of its own.
    pub brokers: Vec<BrokerSpec>,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self { version: "5.5.0".to_owned(), brokers: vec![BrokerSpec::new("broker-a")] }
    }
}

/// A running name server with its brokers, reached over loopback and with a fresh store. Version 4 listens on
/// every other address as well, which it cannot be told not to.
///
/// Dropping it kills the processes and removes their files. They are also killed when the process that holds
/// the cluster ends in any other way, so a cluster can be kept in a `static`.
#[derive(Debug)]
pub struct Cluster {
    // The order of the fields is the order of the end: the folder goes last.
    brokers: Vec<Node>,
    name_server: Node,
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
        let name_server = Node::name_server(&distribution, folder.path().join("namesrv"))?
            .wait_until_ready(|address| text(rpc::ask(address, GET_BROKER_CLUSTER_INFO, &[])).map(drop))?;
        let start = |(number, broker)| {
            let folder = folder.path().join(format!("broker-{number}"));
            Node::broker(&distribution, folder, broker, name_server.address())
        };
        let brokers = spec.brokers.iter().enumerate().map(start).collect::<Result<Vec<_>, _>>()?;
        let wait = |broker: Node| {
            broker.wait_until_ready(|address| check_registered(name_server.address(), address))
        };
        let brokers = brokers.into_iter().map(wait).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { brokers, name_server, folder, distribution })
    }

    /// The address of the name server.
    #[must_use]
    pub fn namesrv(&self) -> SocketAddr {
        self.name_server.address()
    }

    /// The numbers of all its processes.
    #[must_use]
    pub fn process_ids(&self) -> Vec<u32> {
        self.brokers.iter().chain([&self.name_server]).map(Node::process_id).collect()
    }

    /// Makes `topic` with `queues` queues on every broker, and waits until the name server knows them all.
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
    /// [`HarnessError`] when a broker has not indexed its log within 30 seconds, or when the consumer fails.
    pub fn dump(&self, topic: &str) -> Result<Vec<Dumped>, HarnessError> {
        for broker in self.brokers.iter().map(Node::address) {
            wait_until(|| format!("index of the broker at {broker}"), LIMIT, || Ok(check_index(broker)?))?;
        }
        dump::dump(&self.distribution, self.folder.path(), self.namesrv(), topic)
    }

    /// Whether every broker is in the route of `topic`; what it is instead.
    fn check_route(&self, topic: &str) -> Result<(), String> {
        let route = text(rpc::ask(self.namesrv(), GET_ROUTEINFO_BY_TOPIC, &[("topic", topic)]))?;
        let complete = self.brokers.iter().all(|broker| route.contains(&quoted(broker.address())));
        if complete { Ok(()) } else { Err(route) }
    }
}

/// Whether all that the broker has stored can be read; what it says instead.
fn check_index(broker: SocketAddr) -> Result<(), String> {
    let info = text(rpc::ask(broker, GET_BROKER_RUNTIME_INFO, &[]))?;
    if info.contains(r#""dispatchBehindBytes":"0""#) { Ok(()) } else { Err(info) }
}

/// Whether the name server knows the broker; the table of those it knows instead. The table is almost JSON, but
/// with numbers for names.
fn check_registered(name_server: SocketAddr, broker: SocketAddr) -> Result<(), String> {
    let table = text(rpc::ask(name_server, GET_BROKER_CLUSTER_INFO, &[]))?;
    if table.contains(&quoted(broker)) { Ok(()) } else { Err(table) }
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
