//! The name server's part: which broker is where, and the routes of topics, as JSON.

use std::{collections::BTreeMap, io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use rocketmq_transport::Command;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

use super::{
    refusal::Refusal,
    store::Store,
    topic::{DEFAULT_TOPIC, TopicConfig},
};
use crate::{
    AutoCreateTopics,
    protocol::{
        code,
        route::{BrokerData, QueueData, RouteRequest, TopicRoute},
    },
};

/// The brokers and their addresses, fixed once all of them listen.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) brokers: Vec<BrokerNode>,
}

/// One broker.
#[derive(Debug)]
pub(super) struct BrokerNode {
    pub(super) name: Arc<str>,
    pub(super) address: SocketAddr,
}

/// How the keys of JSON objects are written that are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberKeys {
    /// As the JSON standard has it.
    Quoted,
    /// As fastjson writes them.
    Bare,
}

impl NumberKeys {
    /// What the sender of a route lookup can read: name servers decide by its version and its own word.
    pub(super) fn for_route(request: &Command) -> Self {
        let standard =
            request.field("acceptStandardJsonOnly").is_some_and(|it| it.eq_ignore_ascii_case("true"));
        if standard || request.version() >= FIRST_STANDARD_VERSION { Self::Quoted } else { Self::Bare }
    }
}

impl Cluster {
    /// The route of the topic that `request` asks for.
    pub(super) fn route(
        &self,
        request: &Command,
        store: &Store,
        auto: AutoCreateTopics,
    ) -> Result<Bytes, Refusal> {
        let topic = RouteRequest::decode(request)?.topic;
        let configs = match (topic.as_ref(), auto) {
            (DEFAULT_TOPIC, AutoCreateTopics::On) => {
                (0..self.brokers.len()).map(|broker| (broker, TopicConfig::DEFAULT_TOPIC)).collect()
            }
            _ => store.configs(&topic),
        };
        if configs.is_empty() {
            let remark = format!("No topic route info in name server for the topic: {topic}");
            return Err(Refusal::new(code::TOPIC_NOT_EXIST, remark));
        }
        let route = self.topic_route(&configs);
        Ok(match NumberKeys::for_route(request) {
            NumberKeys::Quoted => route.to_json(),
            NumberKeys::Bare => json_with_bare_keys(&route),
        })
    }

    /// Every broker, in the form that all versions give to operators' tools: with bare number keys.
    pub(super) fn info(&self) -> Bytes {
        let names = self.brokers.iter().map(|broker| broker.name.as_ref());
        let table = self.brokers.iter().map(|broker| (broker.name.as_ref(), broker.data()));
        let info = ClusterInfo {
            broker_addr_table: table.collect(),
            cluster_addr_table: BTreeMap::from([(CLUSTER_NAME, names.collect())]),
        };
        json_with_bare_keys(&info)
    }

    fn topic_route(&self, configs: &[(usize, TopicConfig)]) -> TopicRoute {
        let queues = configs.iter().map(|(broker, config)| QueueData {
            broker_name: self.brokers[*broker].name.as_ref().into(),
            read_queue_nums: config.read_queues,
            write_queue_nums: config.write_queues,
            perm: config.perm,
            topic_sys_flag: config.sys_flag,
        });
        TopicRoute {
            order_topic_conf: None,
            queue_datas: queues.collect(),
            broker_datas: configs.iter().map(|(broker, _)| self.brokers[*broker].data()).collect(),
        }
    }
}

impl BrokerNode {
    fn data(&self) -> BrokerData {
        BrokerData {
            cluster: CLUSTER_NAME.into(),
            broker_name: self.name.as_ref().into(),
            broker_addrs: BTreeMap::from([(BrokerData::MASTER, Some(self.address.to_string()))]),
        }
    }
}

/// The body of the response to a look-up of the cluster (`ClusterInfo`).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClusterInfo<'a> {
    broker_addr_table: BTreeMap<&'a str, BrokerData>,
    cluster_addr_table: BTreeMap<&'static str, Vec<&'a str>>,
}

fn json_with_bare_keys(value: &impl Serialize) -> Bytes {
    let mut json = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut json, BareKeys { quote: Quote::None }))
        .expect("writing strings, numbers and maps keyed by them into memory cannot fail");
    json.into()
}

/// Leaves the quotes of number keys away: an opening quote waits until it is known what it encloses.
struct BareKeys {
    quote: Quote,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    /// Not within quotes.
    None,
    /// The opening one has not been written.
    Waiting,
    /// The opening one has been written.
    Open,
    /// The number within has been written without.
    Skipped,
}

impl BareKeys {
    fn open<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.quote == Quote::Waiting {
            self.quote = Quote::Open;
            writer.write_all(b"\"")?;
        }
        Ok(())
    }
}

impl Formatter for BareKeys {
    fn begin_string<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.quote = Quote::Waiting;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.open(writer)?;
        CompactFormatter.write_string_fragment(writer, fragment)
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        escape: serde_json::ser::CharEscape,
    ) -> io::Result<()> {
        self.open(writer)?;
        CompactFormatter.write_char_escape(writer, escape)
    }

    fn write_i64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        if self.quote == Quote::Waiting {
            self.quote = Quote::Skipped;
        }
        CompactFormatter.write_i64(writer, value)
    }

    fn end_string<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer)?;
        if self.quote == Quote::Open {
            writer.write_all(b"\"")?;
        }
        self.quote = Quote::None;
        Ok(())
    }
}

/// The cluster all brokers belong to.
pub(super) const CLUSTER_NAME: &str = "DefaultCluster";
/// The first version whose clients read standard JSON (`MQVersion.V4_9_4`).
const FIRST_STANDARD_VERSION: i32 = 401;

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let node =
            |name: &str, port| BrokerNode { name: name.into(), address: ([127, 0, 0, 1], port).into() };
        Cluster { brokers: vec![node("broker-0", 1), node("broker-1", 2)] }
    }

    #[test]
    fn only_the_quotes_of_number_keys_are_left_away() {
        let route = cluster().topic_route(&[(1, TopicConfig::with_queues(4))]);
        let bare = String::from_utf8(json_with_bare_keys(&route).to_vec()).unwrap();
        assert!(bare.contains(r#""brokerAddrs":{0:"127.0.0.1:2"}"#), "{bare}");
        assert_eq!(bare.replace("{0:", "{\"0\":").as_bytes(), route.to_json());
    }

    #[test]
    fn strings_that_are_empty_or_need_escapes_keep_their_quotes() {
        let map = BTreeMap::from([("", "\""), ("a", ""), ("\n", "x\\y")]);
        assert_eq!(json_with_bare_keys(&map), serde_json::to_vec(&map).unwrap());
        let numbers = BTreeMap::from([(-1_i64, 2_i64)]);
        assert_eq!(json_with_bare_keys(&numbers).as_ref(), b"{-1:2}");
    }

    #[test]
    fn the_cluster_lists_every_broker_with_its_address() {
        let info = String::from_utf8(cluster().info().to_vec()).unwrap();
        assert!(info.contains(r#""broker-0":{"cluster":"DefaultCluster","brokerName":"broker-0","brokerAddrs":{0:"127.0.0.1:1"}}"#), "{info}");
        assert!(info.contains(r#""clusterAddrTable":{"DefaultCluster":["broker-0","broker-1"]}"#), "{info}");
    }
}
