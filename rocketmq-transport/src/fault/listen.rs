//! A listening socket that a script can take away.

use std::{
    io,
    net::SocketAddr,
    task::{Context, Poll, ready},
};

use tokio::net::TcpListener;

use super::FaultScript;
use crate::{Acceptance, Stream, server::Accepted};

/// The next connection of `listener`, under the faults of `script`. While the script refuses connections the socket is
/// closed, and its port may be taken by somebody else; afterwards it is listened on again.
pub(crate) fn next_of(
    listener: TcpListener,
    address: SocketAddr,
    script: FaultScript,
) -> impl FnMut(&mut Context<'_>) -> Poll<Accepted> + Send {
    let mut listener = Some(listener);
    move |context| {
        if script.refuses(context.waker()) {
            listener = None;
            return Poll::Pending;
        }
        let open = match listener.take() {
            Some(open) => open,
            None => listen_again(address)?,
        };
        let (stream, remote) = ready!(listener.insert(open).poll_accept(context))?;
        // A socket that fails here fails again at its first read, where its end has a name.
        let _ = stream.set_nodelay(true);
        Poll::Ready(Ok((Stream::new(script.wrap(stream), Acceptance::Exact), remote)))
    }
}

fn listen_again(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}
