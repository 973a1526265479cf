//! The broker's part: one message from its request into the store.

use std::{
    net::SocketAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use rocketmq_transport::{Code, Command, Fields, Header, Response};

use super::{
    refusal::Refusal,
    store::{Arrival, Content, Store},
    topic::{DEFAULT_TOPIC, TopicConfig, TopicName},
};
use crate::{
    AutoCreateTopics,
    message::properties,
    protocol::{
        code,
        send::{SendRequest, SendResponse},
        stored::offset_message_id,
    },
};

/// What one broker needs to store messages.
#[derive(Debug)]
pub(super) struct Sends<'a> {
    /// The index of the broker, and the address in the ids it gives.
    pub(super) broker: (usize, SocketAddr),
    pub(super) store: &'a Store,
    pub(super) auto_create: AutoCreateTopics,
    pub(super) max_message_bytes: usize,
}

impl Sends<'_> {
    /// Stores the message of `request`, which came from `born_host`.
    pub(super) fn store(&self, request: &Command, born_host: SocketAddr) -> Result<Response, Refusal> {
        let header = SendRequest::decode(request)?;
        self.check(&header, request.body())?;
        let unique_key = property(&header, properties::UNIQ_KEY).map(str::to_owned);
        let topic = TopicName::new(&header.topic)?;
        let place = self.store.append(Arrival {
            broker: self.broker.0,
            create: self.new_topic(&header),
            topic,
            queue_id: header.queue_id,
            content: Content {
                producer_group: header.group.into_owned(),
                // A copy of its own size: the request's bytes share a read buffer, which would be kept whole.
                body: Bytes::copy_from_slice(request.body()),
                properties: header.properties.into_owned(),
                flag: header.flag,
                sys_flag: header.sys_flag,
                reconsume_times: header.reconsume_times,
                born_timestamp_ms: header.born_timestamp,
                born_host,
                store_timestamp_ms: now_ms(),
            },
        })?;
        let id = offset_message_id(self.broker.1, place.log_offset);
        let stored = Stored {
            transaction_id: unique_key.unwrap_or_else(|| id.clone()),
            response: SendResponse {
                offset_message_id: id,
                queue_id: place.queue_id,
                queue_offset: place.queue_offset,
            },
        };
        Ok(Response { code: Code::SUCCESS, remark: None, header: Box::new(stored), body: Bytes::new() })
    }

    fn check(&self, header: &SendRequest<'_>, body: &[u8]) -> Result<(), Refusal> {
        if header.batch {
            return Err(Refusal::new(
                code::MESSAGE_ILLEGAL,
                "the embedded broker does not take batches of messages",
            ));
        }
        if property(header, TRANSACTIONAL).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Err(Refusal::new(code::NO_PERMISSION, "sending transaction message is forbidden"));
        }
        if body.is_empty() {
            // A real broker fails on it, with this code and the text of an exception.
            return Err(Refusal::new(Code::SYSTEM_ERROR, "the message has no body"));
        }
        if body.len() > self.max_message_bytes {
            let (length, limit) = (body.len(), self.max_message_bytes);
            let remark = format!(
                "the message is illegal, its body has {length} bytes, msg body length limit {limit}B"
            );
            return Err(Refusal::new(code::MESSAGE_ILLEGAL, remark));
        }
        if header.properties.len() > MAX_PROPERTIES_BYTES {
            let length = header.properties.len();
            let remark = format!(
                "the message is illegal, its properties have {length} bytes, msg properties length limit \
                 {MAX_PROPERTIES_BYTES}B"
            );
            return Err(Refusal::new(code::MESSAGE_ILLEGAL, remark));
        }
        Ok(())
    }

    /// What the broker makes of a topic it does not know.
    fn new_topic(&self, header: &SendRequest<'_>) -> Result<TopicConfig, Refusal> {
        if self.auto_create == AutoCreateTopics::On && header.default_topic == DEFAULT_TOPIC {
            let inherited = TopicConfig::DEFAULT_TOPIC.write_queues;
            return Ok(TopicConfig::with_queues(header.default_topic_queue_nums.min(inherited)));
        }
        let remark = format!("topic[{}] not exist, apply first please!", header.topic);
        Err(Refusal::new(code::TOPIC_NOT_EXIST, remark))
    }
}

/// The last value of property `name`.
fn property<'a>(header: &'a SendRequest<'_>, name: &str) -> Option<&'a str> {
    properties::decode(&header.properties).filter(|(known, _)| *known == name).last().map(|(_, value)| value)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The response to a send, with the fields beside its header.
#[derive(Debug)]
struct Stored {
    response: SendResponse,
    transaction_id: String,
}

impl Header for Stored {
    fn write(&self, fields: &mut Fields<'_>) {
        self.response.write(fields);
        fields.str("transactionId", &self.transaction_id);
        fields.str("MSG_REGION", "DefaultRegion");
        fields.bool("TRACE_ON", true);
    }
}

/// Marks the half message of a transaction (`MessageConst.PROPERTY_TRANSACTION_PREPARED`).
const TRANSACTIONAL: &str = "TRAN_MSG";
/// The length of a stored message's properties is a signed 16-bit number.
const MAX_PROPERTIES_BYTES: usize = i16::MAX as usize;
