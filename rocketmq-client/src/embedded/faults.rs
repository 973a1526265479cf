//! Where the faults of an embedded broker strike.

use rocketmq_transport::fault::{Fault, FaultScript};

use super::EmbeddedBrokerError;

/// Which servers of an [`EmbeddedBroker`](crate::EmbeddedBroker) a fault is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultSite {
    /// The name server.
    NameServer,
    /// Each broker; every one counts for itself.
    EveryBroker,
    /// One broker by its place among them, from 0: that of `broker-0` is 0.
    Broker(usize),
}

/// The scripts of all servers.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) name_server: FaultScript,
    /// One for each broker.
    pub(super) brokers: Vec<FaultScript>,
}

impl Scripts {
    /// The scripts that `faults` make for so many brokers.
    pub(super) fn new(brokers: usize, faults: &[(FaultSite, Fault)]) -> Result<Self, EmbeddedBrokerError> {
        let scripts = Self {
            name_server: FaultScript::default(),
            brokers: (0..brokers).map(|_| FaultScript::default()).collect(),
        };
        for (site, _) in faults {
            scripts.at(*site)?;
        }
        let of = |wanted: &dyn Fn(FaultSite) -> bool| {
            let wanted = faults.iter().filter(|(site, _)| wanted(*site));
            wanted.map(|(_, fault)| fault.clone()).collect::<Vec<_>>()
        };
        scripts.name_server.set(of(&|site| site == FaultSite::NameServer));
        for (index, script) in scripts.brokers.iter().enumerate() {
            script.set(of(&|site| site == FaultSite::EveryBroker || site == FaultSite::Broker(index)));
        }
        Ok(scripts)
    }

    /// The scripts at `site`.
    pub(super) fn at(&self, site: FaultSite) -> Result<&[FaultScript], EmbeddedBrokerError> {
        match site {
            FaultSite::NameServer => Ok(std::slice::from_ref(&self.name_server)),
            FaultSite::EveryBroker => Ok(&self.brokers),
            FaultSite::Broker(index) => self
                .brokers
                .get(index)
                .map(std::slice::from_ref)
                .ok_or(EmbeddedBrokerError::NoSuchBroker { index, brokers: self.brokers.len() }),
        }
    }
}
