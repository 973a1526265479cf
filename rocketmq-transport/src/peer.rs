//! A remote address we talk to.

use std::{
    fmt,
    hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher},
    str::FromStr,
    sync::Arc,
};

/// A remote address as it was configured: `host:port`, the host a name, an IPv4 address or an IPv6 address
/// in brackets. Cheap to clone.
///
/// # Examples
///
/// ```
/// use rocketmq_transport::Peer;
///
/// let peer: Peer = "broker-a.example:10911".parse()?;
/// assert_eq!((peer.host(), peer.port()), ("broker-a.example", 10911));
/// assert!("broker-a.example".parse::<Peer>().is_err());
/// # Ok::<(), rocketmq_transport::PeerError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    text: Arc<str>,
    port: u16,
    /// The hash of the text: each call looks its peer up, so it is taken once.
    hash: u64,
}

impl Peer {
    fn new(text: Arc<str>, port: u16) -> Self {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        Self { text, port, hash: hasher.finish() }
    }

    /// The host without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.text.rsplit_once(':').map_or("", |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, never 0.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address as it was configured.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Hash for Peer {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Takes the hash that a peer has as the hash of the map.
pub(crate) type PeerHash = BuildHasherDefault<PeerHasher>;

#[derive(Default)]
pub(crate) struct PeerHasher(u64);

impl Hasher for PeerHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("a peer hashes as one number");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl FromStr for Peer {
    type Err = PeerError;

    fn from_str(text: &str) -> Result<Self, PeerError> {
        let fail = |reason| PeerError { text: text.chars().take(MAX_SHOWN).collect(), reason };
        let (host, port) = text.rsplit_once(':').ok_or_else(|| fail("the port is missing"))?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        match bare {
            Some(address) if address.parse::<std::net::Ipv6Addr>().is_err() => {
                return Err(fail("the brackets do not hold an IPv6 address"));
            }
            None if host.is_empty() => return Err(fail("the host is missing")),
            None if host.contains(':') => return Err(fail("an IPv6 address needs brackets")),
            None if host.contains(|c: char| c.is_whitespace() || c.is_control() || "/[]@,;".contains(c)) => {
                return Err(fail("the host has a character no host name has"));
            }
            _ => {}
        }
        if !port.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(fail("the port is not a number"));
        }
        match port.parse() {
            Ok(port) if port > 0 => Ok(Self::new(text.into(), port)),
            _ => Err(fail("the port is not between 1 and 65535")),
        }
    }
}

impl From<std::net::SocketAddr> for Peer {
    fn from(address: std::net::SocketAddr) -> Self {
        Self::new(address.to_string().into(), address.port())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A text that is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not host:port: {reason}")]
pub struct PeerError {
    text: String,
    reason: &'static str,
}

/// An error shows at most so many characters of a bad address.
const MAX_SHOWN: usize = 100;

#[cfg(all(test, not(rocketmq_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_an_address_is_checked_and_the_error_says_which() {
        for (text, reason) in [
            ("host", "port is missing"),
            (":1", "host is missing"),
            ("h:0", "between 1 and 65535"),
            ("h:65536", "between 1 and 65535"),
            ("h:", "between 1 and 65535"),
            ("h:+1", "not a number"),
            ("a b:1", "no host name has"),
            ("http://h:1", "needs brackets"),
            ("::1:80", "needs brackets"),
            ("[::g]:80", "do not hold an IPv6"),
        ] {
            let error = text.parse::<Peer>().expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let peer: Peer = "[::1]:80".parse().expect("a bracketed IPv6 address");
        assert_eq!((peer.host(), peer.port(), peer.as_str()), ("::1", 80, "[::1]:80"));
    }
}
