//! A message as it is read back.

use std::{collections::BTreeMap, net::SocketAddr};

use bytes::Bytes;

use crate::MessageQueue;

/// A message that an [`EmbeddedBroker`](crate::EmbeddedBroker) has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredMessage {
    /// The queue it is in: topic, name of the broker, number.
    pub queue: MessageQueue,
    /// Its place in that queue, from 0.
    pub queue_offset: i64,
    /// The id that the broker gave it, as in the response to the send: the broker's address and the offset in
    /// its log, in hexadecimal digits.
    pub offset_message_id: String,
    /// The id that the producer gave it (`UNIQ_KEY`), the same for all copies of one send: what the receipt of a
    /// send calls its message id.
    pub unique_key: Option<String>,
    /// Its keys for look-ups (`KEYS`).
    pub keys: Vec<String>,
    /// Its tag for filters (`TAGS`).
    pub tag: Option<String>,
    /// Every property as it was sent, those of the fields above included.
    pub properties: BTreeMap<String, String>,
    /// The body as it was sent, compressed or not.
    pub body: Bytes,
    /// The application's own number.
    pub flag: i32,
    /// What the protocol says of the body: bit 0 is set where it is compressed.
    pub sys_flag: i32,
    /// The group of its producer.
    pub producer_group: String,
    /// When the producer says it made the message, in milliseconds since the Unix epoch.
    pub born_timestamp_ms: i64,
    /// The address it came from.
    pub born_host: SocketAddr,
    /// When the broker stored it, in milliseconds since the Unix epoch.
    pub store_timestamp_ms: i64,
}
