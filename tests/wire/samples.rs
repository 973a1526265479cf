//! The commands that `GoldenVectors.java` encodes, as we would build them.

use rocketmq_transport::{Fields, Header};

use crate::vectors::Release;

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) code: i32,
    pub(crate) flag: i32,
    pub(crate) opaque: i32,
    pub(crate) remark: Option<&'static str>,
    pub(crate) fields: List,
    pub(crate) body: &'static str,
}

/// Fields in the order in which the Java class declares them.
#[derive(Clone, Debug, Default)]
pub(crate) struct List(pub(crate) Vec<(&'static str, Value)>);

/// A value of one of the types that headers have.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Int(i64),
    Bool(bool),
}

impl Value {
    /// Its text on the wire.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Int(number) => number.to_string(),
            Self::Bool(value) => value.to_string(),
        }
    }
}

impl Header for List {
    fn write(&self, fields: &mut Fields<'_>) {
        for (name, value) in &self.0 {
            match value {
                Value::Text(text) => fields.str(name, text),
                Value::Int(number) => fields.int(name, *number),
                Value::Bool(value) => fields.bool(name, *value),
            }
        }
    }
}

impl List {
    fn text(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.push((name, Value::Text(value.into())));
        self
    }

    fn int(mut self, name: &'static str, value: i64) -> Self {
        self.0.push((name, Value::Int(value)));
        self
    }

    fn bool(mut self, name: &'static str, value: bool) -> Self {
        self.0.push((name, Value::Bool(value)));
        self
    }
}

/// The command behind the vectors of this name.
pub(crate) fn sample(name: &str, release: Release) -> Sample {
    match name {
        "route" => {
            request(105, 1, List::default().text("topic", "TopicTest").bool("acceptStandardJsonOnly", true))
        }
        "send_v1" => Sample { body: GREETING, ..request(10, 2, send_v1()) },
        "send_v2" => Sample { body: GREETING, ..request(310, 3, send_v2()) },
        "heartbeat" => Sample { body: heartbeat(release), ..request(34, 4, List::default()) },
        "unregister" => {
            request(35, 5, List::default().text("clientID", "127.0.0.1@1").text("producerGroup", "producers"))
        }
        "create_topic" => request(17, 6, create_topic(release)),
        "query" => request(12, 7, query()),
        "end_transaction" => Sample { flag: 2, ..request(37, 8, end_transaction()) },
        "send_response" => response(0, 9, None, send_response()),
        "success" => response(0, 10, None, List::default()),
        "busy" => response(2, 11, Some("[TIMEOUT_CLEAN_QUEUE]broker busy"), List::default()),
        "unicode_remark" => response(1, 12, Some("rémark 标 🚀\n\t\"quoted\" \\ /"), List::default()),
        "response_body" => Sample { body: ROUTE, ..response(0, 13, None, List::default()) },
        "empty" | "empty_fields" => request(34, 0, List::default()),
        "raw_fields" => {
            Sample { remark: Some("a request may have one too"), ..request(10, -1, raw_fields()) }
        }
        "opaque_min" => request(34, i32::MIN, List::default()),
        "opaque_max" => request(34, i32::MAX, List::default()),
        "flags" => Sample { flag: i32::MIN | 2, ..request(34, 14, List::default()) },
        "large_code" => request(200_050, 15, List::default()),
        "signed" => Sample { body: "body", ..request(310, 16, signed()) },
        _ => panic!("no sample for the vectors named {name}"),
    }
}

fn request(code: i32, opaque: i32, fields: List) -> Sample {
    Sample { code, flag: 0, opaque, remark: None, fields, body: "" }
}

fn response(code: i32, opaque: i32, remark: Option<&'static str>, fields: List) -> Sample {
    Sample { code, flag: 1, opaque, remark, fields, body: "" }
}

fn send_v1() -> List {
    List::default()
        .text("producerGroup", "producers")
        .text("topic", "TopicTest")
        .text("defaultTopic", "TBW102")
        .int("defaultTopicQueueNums", 4)
        .int("queueId", 2)
        .int("sysFlag", 0)
        .int("bornTimestamp", 1_700_000_000_000)
        .int("flag", 7)
        .text("properties", PROPERTIES)
        .int("reconsumeTimes", 0)
        .bool("unitMode", false)
        .bool("batch", false)
}

fn send_v2() -> List {
    List::default()
        .text("a", "producers")
        .text("b", "TopicTest")
        .text("c", "TBW102")
        .int("d", 4)
        .int("e", 2)
        .int("f", 0)
        .int("g", 1_700_000_000_000)
        .int("h", 7)
        .text("i", PROPERTIES)
        .int("j", 0)
        .bool("k", false)
        .bool("m", false)
}

fn signed() -> List {
    send_v2().text("AccessKey", "access").text("Signature", "LaFvs8ZmttDE4nOZYPB8+nLiOHA=")
}

fn create_topic(release: Release) -> List {
    let fields = List::default()
        .text("topic", "TopicTest")
        .text("defaultTopic", "TBW102")
        .int("readQueueNums", 8)
        .int("writeQueueNums", 4)
        .int("perm", 6)
        .text("topicFilterType", "SINGLE_TAG")
        .int("topicSysFlag", 0)
        .bool("order", false);
    match release {
        Release::V4_9_7 => fields,
        Release::V5_5_0 => fields.bool("force", false),
    }
}

fn query() -> List {
    List::default()
        .text("topic", "TopicTest")
        .text("key", "order \"7\"")
        .int("maxNum", 32)
        .int("beginTimestamp", -1)
        .int("endTimestamp", i64::MAX)
        .bool("_UNIQUE_KEY_QUERY", true)
}

fn end_transaction() -> List {
    List::default()
        .text("producerGroup", "producers")
        .int("tranStateTableOffset", 5)
        .int("commitLogOffset", 6)
        .int("commitOrRollback", 8)
        .bool("fromTransactionCheck", false)
        .text("msgId", "AC110001")
        .text("transactionId", "AC110002")
}

fn send_response() -> List {
    List::default()
        .text("msgId", "7F00000100002A9F0000000000000000")
        .int("queueId", 3)
        .int("queueOffset", i64::MAX)
        .text("transactionId", "AC110001")
        .text("MSG_REGION", "DefaultRegion")
        .bool("TRACE_ON", true)
}

fn raw_fields() -> List {
    let controls = ('\0'..'\u{20}').chain('\u{7e}'..='\u{a1}').collect::<String>();
    List::default()
        .text("kéy", "v\"\\\n/\u{2028}")
        .text("empty", "")
        .text("emoji", "🚀")
        .text("controls", controls)
}

fn heartbeat(release: Release) -> &'static str {
    match release {
        Release::V4_9_7 => {
            r#"{"clientID":"127.0.0.1@1","consumerDataSet":[],"producerDataSet":[{"groupName":"producers"}]}"#
        }
        Release::V5_5_0 => concat!(
            r#"{"clientID":"127.0.0.1@1","consumerDataSet":[],"heartbeatFingerprint":0,"#,
            r#""producerDataSet":[{"groupName":"producers"}],"withoutSub":false}"#
        ),
    }
}

const GREETING: &str = "hello 世界 🚀";
const PROPERTIES: &str = "KEYS\u{1}k1\u{2}TAGS\u{1}标签\u{2}";
const ROUTE: &str = r#"{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"}}]}"#;
