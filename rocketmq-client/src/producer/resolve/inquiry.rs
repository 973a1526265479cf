//! Asking one broker for one message, until it has said what it knows.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use rocketmq_transport::{
    Admission, CallOptions, Code, Request, RequestDeadline, Transport, TransportErrorKind,
};
use tokio::time::{Instant, sleep};

use super::{Broker, BrokerError};
use crate::{
    message::properties::UNIQ_KEY,
    producer::{MessagePlace, StoredCopy},
    protocol::{
        code,
        query::{KeyKind, QueryMessage},
        stored::StoredRecord,
    },
    queue::MessageQueue,
    retry::{self, Answer},
    routes::shortened,
};

/// One broker and what it is asked for.
pub(super) struct Inquiry {
    pub(super) transport: Transport,
    pub(super) broker: Broker,
    pub(super) topic: Arc<str>,
    pub(super) message_id: Arc<str>,
    pub(super) deadline: RequestDeadline,
}

/// A broker, and the copy it has or why it did not say.
pub(super) type Answered = (Broker, Result<Option<StoredCopy>, BrokerError>);

impl Inquiry {
    pub(super) async fn run(self) -> Answered {
        let outcome = self.ask().await;
        (self.broker, outcome)
    }

    /// Asks until the broker has the message, has not had it for [`INDEX_DELAY`], has refused, or there is no time
    /// to ask again.
    async fn ask(&self) -> Result<Option<StoredCopy>, BrokerError> {
        let mut said = KeyKind::Unique;
        let mut believed_at = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let outcome = self.query(said).await;
            let now = Instant::now();
            let wait = match &outcome {
                Ok(Some(_)) => return outcome,
                Ok(None) => {
                    let believed_at = *believed_at.get_or_insert(now + INDEX_DELAY);
                    match believed_at.saturating_duration_since(now) {
                        Duration::ZERO => return outcome,
                        left => pause.min(left),
                    }
                }
                Err(error) if said == KeyKind::Unique && error.is_unverified() => {
                    said = KeyKind::Unsaid;
                    continue;
                }
                Err(error) => match error.pause() {
                    Some(at_least) => pause.max(at_least),
                    None => return outcome,
                },
            };
            if !retry::is_worth_starting(self.deadline.remaining(now + wait)) {
                return outcome;
            }
            sleep(wait).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Asks once, in a share of what is left, so that a connection that has died in silence leaves time for another.
    async fn query(&self, said: KeyKind) -> Result<Option<StoredCopy>, BrokerError> {
        let now = Instant::now();
        let share = (self.deadline.remaining(now) / 2).clamp(MIN_SHARE, MAX_SHARE);
        let mut options = CallOptions::from(self.deadline.capped_at(now + share));
        options.admission = Admission::Wait;
        let header = QueryMessage {
            topic: Cow::Borrowed(&self.topic),
            key: Cow::Borrowed(&self.message_id),
            max: MAX_RECORDS,
            // All of the store: the clocks of broker and client may differ.
            begin: 0,
            end: i64::MAX,
            said,
        };
        let request = Request { code: code::QUERY_MESSAGE, header: &header, body: Bytes::new() };
        let call = self.transport.call(&self.broker.peer, request, options).await;
        let response = call.map_err(BrokerError::Transport)?.response;
        match response.code() {
            Code::SUCCESS => self.find(response.body_bytes()),
            code::QUERY_NOT_FOUND => Ok(None),
            code => {
                let remark = shortened(&response.remark().unwrap_or_default()).into();
                Err(BrokerError::Answer { code, remark })
            }
        }
    }

    /// The message among the records of an answer: the broker's index knows keys by their hash only.
    fn find(&self, body: Bytes) -> Result<Option<StoredCopy>, BrokerError> {
        let mut unreadable = None;
        for record in StoredRecord::decode_all(body) {
            match record {
                Ok(record) if record.property(UNIQ_KEY) == Some(&self.message_id) => {
                    return Ok(Some(self.copy(&record)));
                }
                Ok(_) => {}
                Err(error) => unreadable = Some(error),
            }
        }
        unreadable.map_or(Ok(None), |error| Err(BrokerError::UnreadableRecord(Arc::new(error))))
    }

    fn copy(&self, record: &StoredRecord) -> StoredCopy {
        let queue = MessageQueue::new(self.topic.clone(), self.broker.name.clone(), record.queue_id);
        let since_epoch = Duration::from_millis(u64::try_from(record.store_timestamp).unwrap_or_default());
        StoredCopy {
            place: MessagePlace {
                queue,
                queue_offset: record.queue_offset,
                offset_message_id: record.offset_message_id(),
            },
            stored_at: UNIX_EPOCH.checked_add(since_epoch).unwrap_or(UNIX_EPOCH),
        }
    }
}

impl BrokerError {
    /// Whether it is what a broker before 5.0 with access control says of the loose field of a query, which it leaves out
    /// of the content whose signature it checks.
    fn is_unverified(&self) -> bool {
        matches!(self, Self::Answer { code: Code::SYSTEM_ERROR, remark }
            if Answer::of(Code::SYSTEM_ERROR, remark) == Answer::Rejected)
    }

    /// How long to wait at least before the broker is asked again; `None` where it would not help.
    fn pause(&self) -> Option<Duration> {
        match self {
            Self::Transport(error) => match error.kind() {
                TransportErrorKind::BackingOff { remaining, .. } => Some(*remaining),
                TransportErrorKind::ConnectFailed(_)
                | TransportErrorKind::ConnectionLost(_)
                | TransportErrorKind::DeadlineExpired => Some(Duration::ZERO),
                _ => None,
            },
            Self::Answer { code, remark } => {
                (Answer::of(*code, remark) == Answer::Declined).then_some(Duration::ZERO)
            }
            Self::UnreadableRecord(_) => None,
        }
    }
}

/// How long a broker may take to build its index of a message that it has stored.
const INDEX_DELAY: Duration = Duration::from_secs(1);
/// The pause before the second question; each later one is twice as long, up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_millis(400);
/// The least that one question is given, where there is as much.
const MIN_SHARE: Duration = Duration::from_millis(500);
/// The most that one question is given.
const MAX_SHARE: Duration = Duration::from_secs(3);
/// How many records an answer may have: the message may be stored more than once, and other keys may share its hash.
const MAX_RECORDS: i32 = 32;
