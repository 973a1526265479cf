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

/// What `--help` says of it, in lines that no terminal of a usual width breaks.
pub(crate) const HELP: &str = "\
Makes servers misbehave: [at=SERVER,][code=N,][skip=N,][times=N,]FAULT; may be repeated.
For example `code=310,times=2,answer=2:busy`, `at=broker-1,code=310,skip=5,never`,
`cut=out:100:rst`.

SERVER is namesrv or broker-0, broker-1 and so on; without it a fault is for each broker,
and each counts for itself. A fault strikes requests (of operation `code`, or any) or
connections: those that come after the first `skip`, so many `times`, or without `times`
every one. Of the faults about a request the first that is due strikes.

Of requests:
  delay=MS               carried out at once, answered so much later
  never                  carried out, never answered
  ignore                 neither carried out nor answered
  twice                  answered twice
  opaque=unknown         answered under a number that no request has
  opaque=foreign         answered under the number of a request of another connection
  answer=CODE[:REMARK]   not carried out, answered with this; the remark runs to the end
  garbage[=BYTES]        carried out, answered with bytes that are no frame [64]

Of connections:
  connect=slow:MS        what the client sends is not looked at for so long
  connect=refuse         nothing listens; without skip and times
  stop-reading[=BYTES]   so many bytes are read, and no more [0]
  cut=in:BYTES:HOW       ended after so many bytes of the client
  cut=out:BYTES:HOW      ended after so many bytes to the client

HOW is fin, rst, or half: the server ends its own direction and reads on.";

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
