//! Which brokers and queues a topic has.

use std::{borrow::Cow, collections::BTreeMap, error::Error, sync::Arc};

#[cfg(any(test, feature = "embedded-broker"))]
use bytes::Bytes;
#[cfg(any(test, feature = "embedded-broker"))]
use rocketmq_transport::{Command, FieldError};
use rocketmq_transport::{Fields, Header, normalize_json};
use serde::{Deserialize, Deserializer, Serialize};

/// The header of a route lookup (`GetRouteInfoRequestHeader`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouteRequest<'a> {
    pub(crate) topic: Cow<'a, str>,
}

impl Header for RouteRequest<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("topic", &self.topic);
        // Older name servers write JSON with unquoted keys unless they are asked not to.
        fields.bool("acceptStandardJsonOnly", true);
    }
}

#[cfg(any(test, feature = "embedded-broker"))]
impl RouteRequest<'static> {
    /// Reads the header of `command`.
    ///
    /// # Errors
    ///
    /// The topic is missing.
    pub(crate) fn decode(command: &Command) -> Result<Self, FieldError> {
        Ok(Self { topic: Cow::Owned(command.require("topic")?) })
    }
}

/// The body of the response to a route lookup (`TopicRouteData`). What is not listed here is ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TopicRoute {
    /// `broker:count` pairs separated by `;`, for topics with a fixed order of queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) order_topic_conf: Option<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) queue_datas: Vec<QueueData>,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) broker_datas: Vec<BrokerData>,
}

/// The queues of a topic at one broker (`QueueData`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct QueueData {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) broker_name: String,
    pub(crate) read_queue_nums: i32,
    pub(crate) write_queue_nums: i32,
    /// Permission bits: 4 read, 2 write.
    pub(crate) perm: i32,
    pub(crate) topic_sys_flag: i32,
}

/// The addresses of one broker (`BrokerData`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BrokerData {
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) cluster: String,
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) broker_name: String,
    /// `host:port` by id; id 0 is the master.
    #[serde(deserialize_with = "null_as_default")]
    pub(crate) broker_addrs: BTreeMap<i64, Option<String>>,
}

impl BrokerData {
    /// The id of the master among a broker's addresses (`MixAll.MASTER_ID`).
    pub(crate) const MASTER: i64 = 0;

    /// The master's address.
    pub(crate) fn master(&self) -> Option<&str> {
        self.broker_addrs.get(&Self::MASTER)?.as_deref()
    }
}

impl TopicRoute {
    /// The permission bit of reading.
    #[cfg(any(test, feature = "embedded-broker"))]
    pub(crate) const PERM_READ: i32 = 4;
    /// The permission bit of writing.
    pub(crate) const PERM_WRITE: i32 = 2;

    /// Reads a body, in standard JSON or with the bare number keys of older name servers.
    ///
    /// # Errors
    ///
    /// The body is not JSON, or a member has the wrong type; the error says where.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Arc<dyn Error + Send + Sync>> {
        let standard = normalize_json(body).map_err(|error| Arc::new(error) as Arc<_>)?;
        serde_json::from_slice(&standard).map_err(|error| Arc::new(error) as _)
    }

    /// The body as name servers send it to those who accept standard JSON.
    #[cfg(any(test, feature = "embedded-broker"))]
    pub(crate) fn to_json(&self) -> Bytes {
        serde_json::to_vec(self).expect("a route holds strings, numbers and maps keyed by numbers").into()
    }
}

/// Java writes null for a list, map or text it does not have.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_reads_as_it_was_written() {
        let route = TopicRoute {
            order_topic_conf: Some("a:4".into()),
            queue_datas: vec![QueueData {
                broker_name: "a".into(),
                read_queue_nums: 4,
                write_queue_nums: 8,
                perm: TopicRoute::PERM_READ | TopicRoute::PERM_WRITE,
                topic_sys_flag: 0,
            }],
            broker_datas: vec![BrokerData {
                cluster: "c".into(),
                broker_name: "a".into(),
                broker_addrs: BTreeMap::from([(0, Some("h:1".into())), (1, Some("h:2".into()))]),
            }],
        };
        assert_eq!(TopicRoute::parse(&route.to_json()).unwrap(), route);
    }

    #[test]
    fn lists_that_are_null_or_missing_are_empty_and_unknown_members_are_ignored() {
        for body in [
            r#"{}"#,
            r#"{"queueDatas":null,"brokerDatas":null,"filterServerTable":null,"orderTopicConf":null}"#,
            r#"{"x":[1,{"y":null}],"queueDatas":[],"brokerDatas":[],"filterServerTable":{"a":["b"]}}"#,
        ] {
            assert_eq!(TopicRoute::parse(body.as_bytes()).unwrap(), TopicRoute::default(), "{body}");
        }
        let body = br#"{"brokerDatas":[{"brokerAddrs":null,"brokerName":null},{"brokerAddrs":{"0":null}}]}"#;
        assert!(TopicRoute::parse(body).unwrap().broker_datas.iter().all(|broker| broker.master().is_none()));
    }

    #[test]
    fn bare_number_keys_are_read_as_they_are_meant_and_texts_that_look_like_them_are_left_alone() {
        let bare = br#"{"brokerDatas":[{"brokerAddrs":{0:"h:1",-1:"h:2",9007199254740993:"h:3"},
            "brokerName":"a,1:b","cluster":"{0:\"x\",1:"}]}"#;
        let quoted = br#"{"brokerDatas":[{"brokerAddrs":{"0":"h:1","-1":"h:2","9007199254740993":"h:3"},
            "brokerName":"a,1:b","cluster":"{0:\"x\",1:"}]}"#;
        let route = TopicRoute::parse(bare).unwrap();
        assert_eq!(route, TopicRoute::parse(quoted).unwrap());
        let broker = &route.broker_datas[0];
        assert_eq!((broker.master(), &*broker.broker_name), (Some("h:1"), "a,1:b"));
        assert_eq!((&*broker.cluster, broker.broker_addrs.len()), (r#"{0:"x",1:"#, 3));
    }

    #[test]
    fn a_member_of_the_wrong_type_is_an_error_that_says_where() {
        let error = TopicRoute::parse(br#"{"queueDatas":[{"perm":"six"}]}"#).unwrap_err();
        assert!(error.to_string().contains("column"), "{error}");
    }
}
