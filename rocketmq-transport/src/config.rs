//! Settings of a transport, their defaults and their validation.

use std::time::Duration;

use crate::{
    FrameLimits, HeaderEncoding,
    budget::{Limit, Limits},
};

/// Settings of a [`Transport`](crate::Transport).
///
/// # Examples
///
/// ```
/// use rocketmq_transport::{Limit, TransportConfig};
///
/// let mut config = TransportConfig::default();
/// config.peer_limit = Limit { requests: 1_000, bytes: 64 << 20 };
/// config.validate()?;
/// # Ok::<(), rocketmq_transport::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransportConfig {
    /// What data requests and long polls to all peers may take together. Default 65,536 requests and 512 MiB.
    pub client_limit: Limit,
    /// What data requests and long polls to one peer may take together. Default 16,384 requests and 128 MiB.
    pub peer_limit: Limit,
    /// What control requests to one peer may take, beside the other limits, so that heartbeats go out under
    /// full saturation. Default 64 requests and 1 MiB.
    pub control_limit: Limit,
    /// What data requests to one peer may take. Default 16,384 requests and 128 MiB.
    pub data_limit: Limit,
    /// What long polls to one peer may take. Default 4,096 requests and 16 MiB.
    pub long_poll_limit: Limit,
    /// The largest frame written or read, its four length bytes included. Default and upper limit 16 MiB, as
    /// the brokers have it (`NettyDecoder`).
    pub max_frame_bytes: usize,
    /// The largest header written or read. Default 1 MiB, at most 16 MiB - 1 (its length has 24 bits).
    pub max_header_bytes: usize,
    /// How long a frame may stay incomplete on its way in before the connection is closed. Default 30 s.
    pub max_frame_read: Duration,
    /// How long one frame may take from its first byte to its last on its way out. Default 30 s.
    pub max_frame_write: Duration,
    /// How long the socket may accept nothing while a frame waits, flushing included. Default 10 s.
    pub max_write_stall: Duration,
    /// The limit of one dial: name resolution, connecting and any handshake. Default 3 s.
    pub connect_timeout: Duration,
    /// The pause after the first failed dial; it doubles up to [`max_backoff`](Self::max_backoff), and each
    /// pause is jittered down to half of it. Default 100 ms.
    pub min_backoff: Duration,
    /// The longest pause after a failed dial. Default 5 s.
    pub max_backoff: Duration,
    /// When a silent connection is retired. Default [`RetirePolicy::OnSilence`].
    pub retire: RetirePolicy,
    /// How long no response may have been read, while one is due, before a connection counts as silent.
    /// Default 1 s.
    pub min_silence: Duration,
    /// How long the answer to an abandoned request is still told apart. Default 60 s.
    pub late_window: Duration,
    /// How many abandoned requests one connection remembers before it is retired. Default 4,096.
    pub max_tombstones: usize,
    /// How long a retired connection may finish what is in flight. Default 120 s.
    pub max_drain: Duration,
    /// How long a connection may be unused and still be used again; brokers close at 120 s. Default 100 s.
    pub max_idle: Duration,
    /// The opaque of the first request of each connection. Default 0.
    pub first_opaque: i32,
    /// How many requests one connection carries before it is replaced; no opaque is used twice on it. Default
    /// and upper limit 2^32, which is how many opaques there are.
    pub opaques_per_connection: u64,
    /// How headers are written; each received frame says itself how to read it. Default JSON.
    pub header_encoding: HeaderEncoding,
    /// The `version` field of each request (`MQVersion`). Default 479, which is 5.3.3: enough to be told to go
    /// away, and to be given routes in standard JSON.
    pub version: i16,
    /// Whether the transport logs each failed request itself. A client above it that logs its own turns this
    /// off. Default on.
    pub failure_log: FailureLog,
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            client_limit: Limit { requests: 65_536, bytes: 512 << 20 },
            peer_limit: Limit { requests: 16_384, bytes: 128 << 20 },
            control_limit: Limit { requests: 64, bytes: 1 << 20 },
            data_limit: Limit { requests: 16_384, bytes: 128 << 20 },
            long_poll_limit: Limit { requests: 4_096, bytes: 16 << 20 },
            max_frame_bytes: MAX_FRAME_BYTES,
            max_header_bytes: 1 << 20,
            max_frame_read: Duration::from_secs(30),
            max_frame_write: Duration::from_secs(30),
            max_write_stall: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
            min_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            retire: RetirePolicy::OnSilence,
            min_silence: Duration::from_secs(1),
            late_window: Duration::from_secs(60),
            max_tombstones: 4_096,
            max_drain: Duration::from_secs(120),
            max_idle: Duration::from_secs(100),
            first_opaque: 0,
            opaques_per_connection: MAX_OPAQUES,
            header_encoding: HeaderEncoding::Json,
            version: 479,
            failure_log: FailureLog::On,
        }
    }
}

impl TransportConfig {
    pub(crate) const fn frame_limits(&self) -> FrameLimits {
        FrameLimits { max_frame_bytes: self.max_frame_bytes, max_header_bytes: self.max_header_bytes }
    }

    pub(crate) const fn limits(&self) -> Limits {
        Limits {
            client: self.client_limit,
            peer: self.peer_limit,
            control: self.control_limit,
            data: self.data_limit,
            long_poll: self.long_poll_limit,
        }
    }

    /// Checks the settings against each other; [`Transport::new`](crate::Transport::new) does it too.
    ///
    /// # Errors
    ///
    /// The first setting that is out of range, by name.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let check =
            |setting, holds: bool, reason| if holds { Ok(()) } else { Err(ConfigError { setting, reason }) };
        check(
            "max_frame_bytes",
            (MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&self.max_frame_bytes),
            "must be between 64 bytes and 16 MiB",
        )?;
        check(
            "max_header_bytes",
            (MIN_FRAME_BYTES..=MAX_HEADER_BYTES).contains(&self.max_header_bytes),
            "must be between 64 bytes and 16 MiB - 1",
        )?;
        for (setting, limit) in [
            ("client_limit", self.client_limit),
            ("peer_limit", self.peer_limit),
            ("control_limit", self.control_limit),
            ("data_limit", self.data_limit),
            ("long_poll_limit", self.long_poll_limit),
        ] {
            check(
                setting,
                limit.requests > 0 && limit.bytes > 0,
                "must allow at least one request and one byte",
            )?;
        }
        for (setting, duration) in [
            ("max_frame_read", self.max_frame_read),
            ("max_frame_write", self.max_frame_write),
            ("max_write_stall", self.max_write_stall),
            ("connect_timeout", self.connect_timeout),
            ("min_silence", self.min_silence),
            ("max_idle", self.max_idle),
        ] {
            check(setting, !duration.is_zero(), "must be longer than zero")?;
        }
        check("max_backoff", self.min_backoff <= self.max_backoff, "must not be shorter than min_backoff")?;
        check("max_tombstones", self.max_tombstones > 0, "must be at least 1")?;
        check(
            "opaques_per_connection",
            (1..=MAX_OPAQUES).contains(&self.opaques_per_connection),
            "must be between 1 and 2^32",
        )?;
        check("version", self.version >= 0, "must not be negative")
    }
}

/// When a connection that answers too late is given up for new requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetirePolicy {
    /// By evidence: a response is due and none at all was read for
    /// [`min_silence`](TransportConfig::min_silence).
    OnSilence,
    /// At the first response timeout.
    OnTimeout,
}

/// Whether the transport logs each failed request itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureLog {
    /// One `warn` line for each failed request, target `rocketmq::request`.
    On,
    /// The layer above makes that line.
    Off,
}

/// A setting that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {reason}")]
pub struct ConfigError {
    setting: &'static str,
    reason: &'static str,
}

/// The brokers' own limit (`com.rocketmq.remoting.frameMaxLength`), the length word included.
const MAX_FRAME_BYTES: usize = 16 << 20;
/// The header's length has 24 bits.
const MAX_HEADER_BYTES: usize = (1 << 24) - 1;
/// An opaque has 32 bits.
const MAX_OPAQUES: u64 = 1 << 32;
/// Room for the smallest request we make.
const MIN_FRAME_BYTES: usize = 64;
