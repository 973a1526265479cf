//! Operations (`RequestCode`) and statuses (`ResponseCode`, `RemotingSysResponseCode`), under Java's names.

use rocketmq_transport::Code;

/// Stores one message; long field names.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const SEND_MESSAGE: Code = Code(10);
/// Stores one message; field names of one letter. This is what clients send.
pub(crate) const SEND_MESSAGE_V2: Code = Code(310);
/// Asks for messages by key.
pub(crate) const QUERY_MESSAGE: Code = Code(12);
/// Creates a topic or changes its settings.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const UPDATE_AND_CREATE_TOPIC: Code = Code(17);
/// Tells a broker which groups a client has.
pub(crate) const HEART_BEAT: Code = Code(34);
/// Tells a broker that a group of a client has ended.
pub(crate) const UNREGISTER_CLIENT: Code = Code(35);
/// Asks a name server for the brokers and queues of a topic.
pub(crate) const GET_ROUTEINFO_BY_TOPIC: Code = Code(105);
/// Asks for the messages of a queue from an offset on.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const PULL_MESSAGE: Code = Code(11);
/// Asks for the first offset of a queue whose message was stored at a time or later.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const SEARCH_OFFSET_BY_TIMESTAMP: Code = Code(29);
/// Asks for the offset that the next message of a queue gets.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const GET_MAX_OFFSET: Code = Code(30);
/// Asks for the first offset of a queue.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const GET_MIN_OFFSET: Code = Code(31);
/// Asks a name server for all brokers.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const GET_BROKER_CLUSTER_INFO: Code = Code(106);

/// Flow control: the message was not stored.
pub(crate) const SYSTEM_BUSY: Code = Code(2);
/// Stored; the disk was not flushed in time.
pub(crate) const FLUSH_DISK_TIMEOUT: Code = Code(10);
/// Stored; there is no replica to copy it to.
pub(crate) const SLAVE_NOT_AVAILABLE: Code = Code(11);
/// Stored; no replica has confirmed it in time.
pub(crate) const FLUSH_SLAVE_TIMEOUT: Code = Code(12);
/// The message or its topic breaks a rule.
pub(crate) const MESSAGE_ILLEGAL: Code = Code(13);
/// The broker takes no writes: disk full, a replica, shutting down.
pub(crate) const SERVICE_NOT_AVAILABLE: Code = Code(14);
/// A proxy misses the broker's name in the request.
pub(crate) const VERSION_NOT_SUPPORTED: Code = Code(15);
/// The broker or topic is not writable, or the sender is not authorised; the remark says which.
pub(crate) const NO_PERMISSION: Code = Code(16);
/// The topic is not known here; from a name server: there is no route.
pub(crate) const TOPIC_NOT_EXIST: Code = Code(17);
/// No message has the key asked for.
pub(crate) const QUERY_NOT_FOUND: Code = Code(22);
/// A parameter breaks a rule (since 5.3.2).
pub(crate) const INVALID_PARAMETER: Code = Code(29);
/// The operation is refused for this kind of message.
pub(crate) const ILLEGAL_OPERATION: Code = Code(604);
/// Nothing to pull at that offset yet.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const PULL_NOT_FOUND: Code = Code(19);
/// Nothing that passes the filter among what was looked at; go on at the offset that is said.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const PULL_RETRY_IMMEDIATELY: Code = Code(20);
/// The queue does not have that offset; go on at the one that is said.
#[cfg(any(test, feature = "embedded-broker"))]
pub(crate) const PULL_OFFSET_MOVED: Code = Code(21);
/// The server is draining and has not taken the request.
pub(crate) const GO_AWAY: Code = Code(1500);
