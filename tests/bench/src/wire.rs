//! The bytes that the clients of the benchmark exchange with the server, written and read by hand.

pub(crate) mod decimal;
pub(crate) mod message;
pub(crate) mod read;
pub(crate) mod write;

use std::time::Duration;

use rocketmq_transport::{Code, Fields, Header};

/// `SEND_MESSAGE_V2`.
pub(crate) const SEND: Code = Code(310);
/// A request that the server takes in and never answers.
pub(crate) const HELD: Code = Code(39_310);
/// The topic that producers send to, with [`TOPIC_QUEUES`] queues at one broker.
pub(crate) const TOPIC: &str = "BenchTopic";
/// How many queues the topic has, at most ten.
pub(crate) const TOPIC_QUEUES: u32 = 4;
/// The group of all producers.
pub(crate) const GROUP: &str = "bench-producers";
/// How long a request may take.
pub(crate) const DEADLINE: Duration = Duration::from_secs(3);
/// How long one may take that is never answered: longer than any run.
pub(crate) const HELD_DEADLINE: Duration = Duration::from_secs(600);
/// Opaques of the raw clients start here, so that each has ten digits and fits the same place.
pub(crate) const FIRST_OPAQUE: u32 = 1_000_000_000;

/// The header of a send, as a producer fills it in (`SendMessageRequestHeaderV2`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendHeader<'a> {
    pub(crate) group: &'a str,
    pub(crate) topic: &'a str,
    pub(crate) default_topic: &'a str,
    pub(crate) default_topic_queues: i32,
    pub(crate) queue_id: i32,
    pub(crate) sys_flag: i32,
    /// Milliseconds since the Unix epoch.
    pub(crate) born_timestamp: i64,
    pub(crate) flag: i32,
    pub(crate) properties: &'a str,
    pub(crate) reconsume_times: i32,
    pub(crate) broker: &'a str,
}

impl SendHeader<'static> {
    /// The header of the `count`-th send.
    pub(crate) fn numbered(count: u64) -> Self {
        Self {
            group: GROUP,
            topic: TOPIC,
            default_topic: "TBW102",
            default_topic_queues: 4,
            queue_id: (count % 4) as i32,
            sys_flag: 0,
            born_timestamp: 1_760_000_000_000 + count as i64,
            flag: 0,
            properties: "UNIQ_KEY\u{1}7F00000100002A9F18B4AAC2D1F10001\u{2}WAIT\u{1}true\u{2}",
            reconsume_times: 0,
            broker: "broker-a",
        }
    }
}

impl Header for SendHeader<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("a", self.group);
        fields.str("b", self.topic);
        fields.str("c", self.default_topic);
        fields.int("d", self.default_topic_queues.into());
        fields.int("e", self.queue_id.into());
        fields.int("f", self.sys_flag.into());
        fields.int("g", self.born_timestamp);
        fields.int("h", self.flag.into());
        fields.str("i", self.properties);
        fields.int("j", self.reconsume_times.into());
        fields.str("n", self.broker);
    }
}
