//! Who this client is: its address and its id.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use crate::random;

/// The address of this machine that others see, as far as it can be told without sending anything.
pub(crate) fn local_address() -> IpAddr {
    let routed = || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // Connecting a datagram socket only chooses a route; the address is one of those kept for
        // documentation.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        socket.local_addr()
    };
    routed().map_or(Ipv4Addr::LOCALHOST.into(), |address| address.ip())
}

/// An id that no other client has: `address@process#number`.
pub(crate) fn client_id(address: IpAddr) -> String {
    format!("{address}@{}#{:x}", std::process::id(), random::number())
}
