//! A message as brokers store it and hand it out (`MessageDecoder`, `MessageExtEncoder`).

use std::{
    fmt::{self, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    string::FromUtf8Error,
};

use bytes::{Buf, Bytes, TryGetError};

use crate::message::properties;

/// One entry of the body with which a broker answers a query or a pull.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    pub(crate) queue_id: u32,
    /// The application's own flag.
    pub(crate) flag: i32,
    pub(crate) queue_offset: i64,
    /// Its place in the broker's commit log.
    pub(crate) log_offset: i64,
    /// What the broker says of body and hosts; the bits of the hosts are written as the hosts are.
    pub(crate) sys_flag: i32,
    /// Milliseconds since the Unix epoch, by the producer's clock.
    pub(crate) born_timestamp: i64,
    pub(crate) born_host: SocketAddr,
    /// Milliseconds since the Unix epoch, by the broker's clock.
    pub(crate) store_timestamp: i64,
    pub(crate) store_host: SocketAddr,
    pub(crate) reconsume_times: i32,
    pub(crate) prepared_offset: i64,
    /// Compressed where `sys_flag` says so.
    pub(crate) body: Bytes,
    pub(crate) topic: String,
    /// Encoded properties; empty for none.
    pub(crate) properties: String,
}

/// What is wrong with the bytes of an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordError {
    /// Its length cannot be right, so that nothing behind it can be read either.
    #[error("an entry of {length} bytes where {left} are left")]
    Length { length: i64, left: usize },
    #[error("unknown magic {0:#010X}")]
    Magic(u32),
    #[error("it ends within a field")]
    CutShort,
    #[error("{name} is {value}")]
    Value { name: &'static str, value: i64 },
    #[error("bytes that are not UTF-8 in {0}")]
    NotUtf8(&'static str),
}

impl StoredRecord {
    /// The entries of `body`, in order. An entry that is corrupt hides none of the others, unless its length is: that
    /// is the last one then.
    pub(crate) fn decode_all(mut body: Bytes) -> impl Iterator<Item = Result<Self, RecordError>> {
        std::iter::from_fn(move || {
            if body.is_empty() {
                return None;
            }
            let length = body.get(..4).map_or(-1, |mut length| i64::from(length.get_i32()));
            let entry = usize::try_from(length).ok().filter(|entry| (4..=body.len()).contains(entry));
            let Some(entry) = entry else {
                let left = std::mem::take(&mut body).len();
                return Some(Err(RecordError::Length { length, left }));
            };
            Some(Self::decode(body.split_to(entry)))
        })
    }

    /// The value of property `name`.
    pub(crate) fn property(&self, name: &str) -> Option<&str> {
        properties::decode(&self.properties).find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The id the broker gave it.
    pub(crate) fn offset_message_id(&self) -> String {
        offset_message_id(self.store_host, self.log_offset)
    }

    fn decode(mut entry: Bytes) -> Result<Self, RecordError> {
        entry.try_get_i32()?;
        let topic_length = match entry.try_get_u32()? {
            MAGIC_V1 => TopicLength::Byte,
            MAGIC_V2 => TopicLength::Short,
            magic => return Err(RecordError::Magic(magic)),
        };
        // The checksum, which clients leave to the broker.
        entry.try_get_i32()?;
        let queue_id = entry.try_get_i32()?;
        let flag = entry.try_get_i32()?;
        let (queue_offset, log_offset) = (entry.try_get_i64()?, entry.try_get_i64()?);
        let sys_flag = entry.try_get_i32()?;
        Ok(Self {
            queue_id: value("queueId", queue_id.into())?,
            flag,
            queue_offset,
            log_offset,
            sys_flag,
            born_timestamp: entry.try_get_i64()?,
            born_host: host(&mut entry, sys_flag & BORN_HOST_V6)?,
            store_timestamp: entry.try_get_i64()?,
            store_host: host(&mut entry, sys_flag & STORE_HOST_V6)?,
            reconsume_times: entry.try_get_i32()?,
            prepared_offset: entry.try_get_i64()?,
            body: {
                let length = entry.try_get_i32()?.into();
                counted(&mut entry, "the body's length", length)?
            },
            topic: {
                let length = topic_length.read(&mut entry)?;
                text(counted(&mut entry, "the topic's length", length)?, "the topic")?
            },
            properties: {
                let length = entry.try_get_i16()?.into();
                text(counted(&mut entry, "the properties' length", length)?, "the properties")?
            },
        })
    }
}

impl fmt::Debug for StoredRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRecord")
            .field("topic", &self.topic)
            .field("queue_id", &self.queue_id)
            .field("queue_offset", &self.queue_offset)
            .field("log_offset", &self.log_offset)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl From<TryGetError> for RecordError {
    fn from(_: TryGetError) -> Self {
        Self::CutShort
    }
}

/// The id of the message at `log_offset` of the broker at `host` (`MessageDecoder.createMessageId`).
pub(crate) fn offset_message_id(host: SocketAddr, log_offset: i64) -> String {
    let mut id = String::with_capacity(56);
    let mut push = |bytes: &[u8]| {
        for byte in bytes {
            write!(id, "{byte:02X}").expect("a string takes what it is given");
        }
    };
    match host.ip() {
        IpAddr::V4(address) => push(&address.octets()),
        IpAddr::V6(address) => push(&address.octets()),
    }
    push(&u32::from(host.port()).to_be_bytes());
    push(&log_offset.to_be_bytes());
    id
}

/// How the length of a topic is written.
#[derive(Clone, Copy)]
enum TopicLength {
    Byte,
    /// For topics of more than 127 bytes.
    Short,
}

impl TopicLength {
    fn read(self, entry: &mut Bytes) -> Result<i64, TryGetError> {
        match self {
            Self::Byte => entry.try_get_i8().map(i64::from),
            Self::Short => entry.try_get_i16().map(i64::from),
        }
    }
}

/// An address of the long form where `v6_bit` is set.
fn host(entry: &mut Bytes, v6_bit: i32) -> Result<SocketAddr, RecordError> {
    let address: IpAddr = match v6_bit {
        0 => Ipv4Addr::from_bits(entry.try_get_u32()?).into(),
        _ => Ipv6Addr::from_bits(entry.try_get_u128()?).into(),
    };
    let port = value("a host's port", entry.try_get_i32()?.into())?;
    Ok(SocketAddr::new(address, port))
}

/// The next `length` bytes.
fn counted(entry: &mut Bytes, name: &'static str, length: i64) -> Result<Bytes, RecordError> {
    let length = value(name, length)?;
    if length > entry.len() { Err(RecordError::CutShort) } else { Ok(entry.split_to(length)) }
}

fn value<T: TryFrom<i64>>(name: &'static str, value: i64) -> Result<T, RecordError> {
    T::try_from(value).map_err(|_| RecordError::Value { name, value })
}

fn text(bytes: Bytes, name: &'static str) -> Result<String, RecordError> {
    String::from_utf8(bytes.into()).map_err(|_: FromUtf8Error| RecordError::NotUtf8(name))
}

/// The form for topics of up to 127 bytes (`MessageVersion`).
const MAGIC_V1: u32 = 0xDAA3_20A7;
/// The form for longer ones.
const MAGIC_V2: u32 = 0xDAA3_20AB;
/// The bits of `sysFlag` that say how long the hosts are (`MessageSysFlag`).
const BORN_HOST_V6: i32 = 0x10;
const STORE_HOST_V6: i32 = 0x20;

#[cfg(any(test, feature = "embedded-broker"))]
mod encode;
#[cfg(test)]
mod tests;
