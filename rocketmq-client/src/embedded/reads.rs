//! The broker's part: what is stored, handed out again by offset and by key.

use std::net::SocketAddr;

use bytes::Bytes;
use rocketmq_transport::{Code, Command, Header, Response};

use super::{
    refusal::Refusal,
    store::{Content, QueueKey, Record, Store},
};
use crate::{
    message::properties,
    protocol::{
        code,
        offset::{OffsetRequest, OffsetResponse},
        pull::{PullRequest, PullResponse},
        query::{KeyKind, QueryMessage},
        route::TopicRoute,
        stored::StoredRecord,
    },
};

/// What one broker needs to hand messages out.
#[derive(Debug)]
pub(super) struct Reads<'a> {
    /// The index of the broker, and the address in what it hands out.
    pub(super) broker: (usize, SocketAddr),
    pub(super) store: &'a Store,
}

impl Reads<'_> {
    /// The messages of a queue from an offset on. Answered at once, also where there are none yet.
    pub(super) fn pull(&self, request: &Command) -> Result<Response, Refusal> {
        let header = PullRequest::decode(request)?;
        let filter = Filter::new(&header)?;
        self.check(&header)?;
        let queue = QueueKey { broker: self.broker.0, topic: &header.topic, queue_id: header.queue_id };
        let (offset, end) = (header.queue_offset, self.store.queue_len(queue));
        let most = usize::try_from(header.max_messages).unwrap_or(0).clamp(1, MAX_MESSAGES);
        let read = self.store.read(queue, offset, most);
        let (found, used) = self.entries(&header.topic, &read, |content| filter.passes(content));
        let (code, status) = pulled(offset, end, &found);
        let next = match code {
            Code::SUCCESS | code::PULL_RETRY_IMMEDIATELY => offset + used,
            code::PULL_NOT_FOUND => offset,
            // To the nearest end.
            _ => offset.clamp(0, end),
        };
        let header = Box::new(PullResponse { next_offset: next, min_offset: 0, max_offset: end });
        Ok(Response { code, remark: Some(status.into()), header, body: found })
    }

    /// The offset that the next message of a queue gets; 0 for a queue that there is not.
    pub(super) fn max_offset(&self, request: &Command) -> Result<Response, Refusal> {
        let header = OffsetRequest::decode(request)?;
        Ok(offset(self.store.queue_len(self.queue(&header))))
    }

    /// The first offset of a queue: nothing is ever removed.
    pub(super) fn min_offset(&self, request: &Command) -> Result<Response, Refusal> {
        OffsetRequest::decode(request)?;
        Ok(offset(0))
    }

    /// The first offset of a queue whose message was stored at a time or later.
    pub(super) fn offset_by_time(&self, request: &Command) -> Result<Response, Refusal> {
        let header = OffsetRequest::decode(request)?;
        let timestamp_ms = request.require("timestamp")?;
        match header.boundary.as_deref() {
            None | Some("LOWER") => Ok(offset(self.store.offset_at(self.queue(&header), timestamp_ms))),
            Some(other) => Err(Refusal::parameter(format!(
                "boundaryType is {other}, the embedded broker finds LOWER ones only"
            ))),
        }
    }

    /// The messages of a topic that have a key, the latest first.
    pub(super) fn query(&self, request: &Command) -> Result<Response, Refusal> {
        let header = QueryMessage::decode(request)?;
        let most = usize::try_from(header.max).unwrap_or(0).clamp(1, MAX_MESSAGES);
        let records = self.store.find(self.broker.0, &header.topic, most, |content| {
            (header.begin..=header.end).contains(&content.store_timestamp_ms)
                && has_key(content, &header.key, header.said)
        });
        if records.is_empty() {
            let remark = "can not find message, maybe time range not correct";
            return Err(Refusal::new(code::QUERY_NOT_FOUND, remark));
        }
        let (body, _) = self.entries(&header.topic, &records, |_| true);
        Ok(Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body })
    }

    fn check(&self, header: &PullRequest<'_>) -> Result<(), Refusal> {
        let topic = &header.topic;
        let config = self.store.config(self.broker.0, topic).ok_or_else(|| {
            Refusal::new(code::TOPIC_NOT_EXIST, format!("topic[{topic}] not exist, apply first please!"))
        })?;
        if config.perm & TopicRoute::PERM_READ == 0 {
            let remark = format!("the topic[{topic}] pulling message is forbidden");
            return Err(Refusal::new(code::NO_PERMISSION, remark));
        }
        if !(0..config.read_queues).contains(&header.queue_id) {
            return Err(Refusal::parameter(format!(
                "queueId[{}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{}] consumer:[{}]",
                header.queue_id, config.read_queues, header.group
            )));
        }
        Ok(())
    }

    fn queue<'a>(&self, header: &'a OffsetRequest<'_>) -> QueueKey<'a> {
        QueueKey { broker: self.broker.0, topic: &header.topic, queue_id: header.queue_id }
    }

    /// The entries of those of `records` that pass, as far as they fit, and how many records that has used up.
    fn entries(&self, topic: &str, records: &[Record], passes: impl Fn(&Content) -> bool) -> (Bytes, i64) {
        let mut body = Vec::new();
        let mut used = 0;
        for record in records {
            if passes(&record.content) {
                if !body.is_empty() && body.len() + record.content.body.len() > MAX_ENTRIES_BYTES {
                    break;
                }
                self.entry(topic, record).encode(&mut body);
            }
            used += 1;
        }
        (body.into(), used)
    }

    fn entry(&self, topic: &str, record: &Record) -> StoredRecord {
        let (place, content) = (record.place, &record.content);
        StoredRecord {
            queue_id: place.queue_id,
            flag: content.flag,
            queue_offset: place.queue_offset,
            log_offset: place.log_offset,
            sys_flag: content.sys_flag,
            born_timestamp: content.born_timestamp_ms,
            born_host: content.born_host,
            store_timestamp: content.store_timestamp_ms,
            store_host: self.broker.1,
            reconsume_times: content.reconsume_times,
            prepared_offset: 0,
            body: content.body.clone(),
            topic: topic.to_owned(),
            properties: content.properties.clone(),
        }
    }
}

/// What becomes of a pull at `offset` of a queue that ends at `end`, with the store's own name for it.
fn pulled(offset: i64, end: i64, found: &[u8]) -> (Code, &'static str) {
    match (offset, end) {
        (0, 0) => (code::PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE"),
        (_, 0) => (code::PULL_OFFSET_MOVED, "NO_MESSAGE_IN_QUEUE"),
        (offset, _) if offset < 0 => (code::PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL"),
        (offset, end) if offset == end => (code::PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE"),
        (offset, end) if offset > end => (code::PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY"),
        _ if found.is_empty() => (code::PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE"),
        _ => (Code::SUCCESS, "FOUND"),
    }
}

/// Which messages a pull asks for.
enum Filter {
    All,
    /// Those that have one of the tags.
    Tags(Vec<String>),
}

impl Filter {
    /// Without a filter of its own a pull would have that of the group's heartbeat, which nobody keeps here.
    fn new(header: &PullRequest<'_>) -> Result<Self, Refusal> {
        let subscription = header.subscription.trim();
        if header.sys_flag & PullRequest::WITH_SUBSCRIPTION == 0 || matches!(subscription, "" | "*") {
            return Ok(Self::All);
        }
        match &*header.expression_type {
            "" | "TAG" => Ok(Self::Tags(subscription.split("||").map(|tag| tag.trim().to_owned()).collect())),
            other => {
                let remark = format!("The broker does not support consumer to filter message by {other}");
                Err(Refusal::new(Code::SYSTEM_ERROR, remark))
            }
        }
    }

    fn passes(&self, content: &Content) -> bool {
        match self {
            Self::All => true,
            Self::Tags(tags) => {
                property(content, properties::TAGS).is_some_and(|tag| tags.iter().any(|known| known == tag))
            }
        }
    }
}

/// Whether a message has `key`: as its unique key, or as any key where the query does not say which.
fn has_key(content: &Content, key: &str, said: KeyKind) -> bool {
    // Most messages do not have it anywhere, which is found out without taking their properties apart.
    content.properties.contains(key)
        && (property(content, properties::UNIQ_KEY) == Some(key)
            || said == KeyKind::Unsaid
                && property(content, properties::KEYS)
                    .is_some_and(|keys| keys.split_whitespace().any(|known| known == key)))
}

/// The last value of property `name`.
fn property<'a>(content: &'a Content, name: &str) -> Option<&'a str> {
    properties::decode(&content.properties).filter(|(known, _)| *known == name).last().map(|(_, value)| value)
}

fn offset(offset: i64) -> Response {
    let header: Box<dyn Header> = Box::new(OffsetResponse { offset });
    Response { code: Code::SUCCESS, remark: None, header, body: Bytes::new() }
}

/// As many messages as brokers hand out from memory at once, or look up by a unique key.
const MAX_MESSAGES: usize = 32;
/// As many bytes as brokers hand out from memory at once; one message may be longer.
const MAX_ENTRIES_BYTES: usize = 256 << 10;
