//! Which fault strikes where, in words of the command line.

use std::str::FromStr;

use rocketmq_client::FaultSite;
use rocketmq_transport::fault::Fault;

/// `[at=SERVER,]FAULT`: a fault, and the servers it is for, which are all brokers if none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultSpec {
    pub(crate) site: FaultSite,
    pub(crate) fault: Fault,
}

impl FromStr for FaultSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (site, fault) = match text.strip_prefix("at=") {
            None => (FaultSite::EveryBroker, text),
            Some(rest) => {
                let (server, fault) = rest.split_once(',').unwrap_or((rest, ""));
                (site(server)?, fault)
            }
        };
        let fault = fault.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { site, fault })
    }
}

fn site(server: &str) -> Result<FaultSite, String> {
    let broker = || server.strip_prefix("broker-")?.parse().ok();
    match server {
        "namesrv" => Ok(FaultSite::NameServer),
        server => broker()
            .map(FaultSite::Broker)
            .ok_or_else(|| format!("at is {server:?}, expected namesrv, broker-0, broker-1 or so on")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_for_every_broker_unless_it_names_a_server() {
        for (text, site) in [
            ("code=310,never", FaultSite::EveryBroker),
            ("at=namesrv,code=310,never", FaultSite::NameServer),
            ("at=broker-12,code=310,never", FaultSite::Broker(12)),
        ] {
            let fault = "code=310,never".parse().unwrap();
            assert_eq!(text.parse(), Ok(FaultSpec { site, fault }), "{text}");
        }
    }

    #[test]
    fn a_server_that_cannot_be_and_a_fault_that_is_missing_are_refused() {
        for (text, reason) in [
            ("at=broker,never", "at is \"broker\", expected namesrv"),
            ("at=broker-x,never", "at is \"broker-x\", expected namesrv"),
            ("at=namesrv", "the fault is missing"),
            ("never,at=namesrv", "\"at=namesrv\" follows the fault"),
        ] {
            let error = text.parse::<FaultSpec>().unwrap_err();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }
}
