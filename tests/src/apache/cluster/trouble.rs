//! What can happen to a member of a cluster while it is in use.

use super::{Cluster, check_broker, check_name_server};
use crate::apache::{error::HarnessError, node::Node};

/// A process of a cluster, by its place in the order in which they were started, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// A name server.
    NameServer(usize),
    /// A broker.
    Broker(usize),
}

impl Cluster {
    /// Kills `member` at once, as `kill -9` does.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] when the system refuses.
    ///
    /// # Panics
    ///
    /// Where the cluster has no such member.
    pub fn kill(&mut self, member: Member) -> Result<(), HarnessError> {
        self.member(member).process().kill()
    }

    /// Starts `member` again on its files and its port, and waits until it answers. A broker may take another 10
    /// seconds to register; [`create_topic`](Self::create_topic) and [`dump`](Self::dump) wait for that.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] when it does not start.
    ///
    /// # Panics
    ///
    /// Where the cluster has no such member.
    pub fn restart(&mut self, member: Member) -> Result<(), HarnessError> {
        let ready = match member {
            Member::NameServer(_) => check_name_server,
            Member::Broker(_) => check_broker,
        };
        self.member(member).restart(ready)
    }

    /// Stops `member` where it is: the system goes on to accept connections and bytes for it, and nothing comes back.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] when it has ended, or has not stopped within 10 seconds.
    ///
    /// # Panics
    ///
    /// Where the cluster has no such member.
    pub fn freeze(&mut self, member: Member) -> Result<(), HarnessError> {
        self.member(member).process().freeze()
    }

    /// Lets a frozen `member` go on, with all that it was sent meanwhile.
    ///
    /// # Errors
    ///
    /// [`HarnessError`] when it has ended.
    ///
    /// # Panics
    ///
    /// Where the cluster has no such member.
    pub fn thaw(&mut self, member: Member) -> Result<(), HarnessError> {
        self.member(member).process().thaw()
    }

    fn member(&mut self, member: Member) -> &mut Node {
        match member {
            Member::NameServer(place) => &mut self.name_servers[place],
            Member::Broker(place) => &mut self.brokers[place],
        }
    }
}
