//! What a transport has in use.

use crate::Peer;

/// What one level has in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Requests.
    pub requests: u64,
    /// Retained bytes.
    pub bytes: u64,
}

impl Used {
    /// Whether nothing is in use.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.requests == 0 && self.bytes == 0
    }
}

/// What a transport has in use: requests and bytes per level of the budget, and counts per peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Data requests and long polls of all peers together, and bytes kept outside of requests.
    pub client: Used,
    /// Each peer that the transport has a channel to.
    pub peers: Vec<PeerUsage>,
}

impl Usage {
    /// Whether everything is zero: nothing is in flight, kept, or remembered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.client.is_idle() && self.peers.iter().all(PeerUsage::is_idle)
    }
}

/// What one peer has in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerUsage {
    /// The peer, as it was configured.
    pub peer: Peer,
    /// Data requests and long polls together.
    pub used: Used,
    /// Control requests, which are charged here alone.
    pub control: Used,
    /// Data requests.
    pub data: Used,
    /// Long polls.
    pub long_poll: Used,
    /// Requests registered with a connection whose callers still wait.
    pub pending: u64,
    /// Those of them whose frame no byte of has left.
    pub queued: u64,
    /// Abandoned requests that are remembered for the sake of their late responses.
    pub tombstones: u64,
    /// Requests that the peer has sent to us so far, which are dropped.
    pub peer_requests: u64,
    /// Responses so far that came after their request had ended, and that were still told apart.
    pub late: u64,
    /// Responses so far that nobody waited for and nothing remembered.
    pub unsolicited: u64,
}

impl PeerUsage {
    /// Whether everything that is in use is zero; what has only been counted does not matter.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let Self { used, control, data, long_poll, pending, queued, tombstones, .. } = self;
        [used, control, data, long_poll].into_iter().all(Used::is_idle)
            && [pending, queued, tombstones] == [&0; 3]
    }
}

#[cfg(all(test, not(rocketmq_loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_count_anywhere_makes_a_usage_busy() {
        let used = Used { requests: 0, bytes: 1 };
        let idle = PeerUsage {
            peer: "peer:1".parse().unwrap(),
            used: Used::default(),
            control: Used::default(),
            data: Used::default(),
            long_poll: Used::default(),
            pending: 0,
            queued: 0,
            tombstones: 0,
            peer_requests: 1,
            late: 1,
            unsolicited: 1,
        };
        let usage = |client, peer: PeerUsage| Usage { client, peers: vec![idle.clone(), peer] };
        assert!(usage(Used::default(), idle.clone()).is_idle());
        assert!(!usage(used, idle.clone()).is_idle());
        for busy in [
            PeerUsage { used, ..idle.clone() },
            PeerUsage { control: used, ..idle.clone() },
            PeerUsage { data: used, ..idle.clone() },
            PeerUsage { long_poll: used, ..idle.clone() },
            PeerUsage { pending: 1, ..idle.clone() },
            PeerUsage { queued: 1, ..idle.clone() },
            PeerUsage { tombstones: 1, ..idle.clone() },
        ] {
            assert!(!usage(Used::default(), busy).is_idle());
        }
    }
}
