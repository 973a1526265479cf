//! What a connection runs over, as one type.

use std::{fmt, net::SocketAddr};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// An open byte stream to a peer: TCP, or anything else that reads and writes.
pub struct Stream {
    pub(crate) io: Io,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) acceptance: Acceptance,
}

pub(crate) enum Io {
    Tcp(TcpStream),
    Other(Box<dyn Duplex>),
}

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// What a stream's report of accepted bytes is worth when the connection ends in the middle of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// What a write did not report as accepted has not left and never will: plain TCP, in-memory pipes.
    Exact,
    /// A write may have taken more than it reported, as a layer that encrypts or buffers does: everything
    /// offered counts as accepted, and one write is offered at most 16 KiB.
    Offered,
}

impl Stream {
    /// A stream over any transport, for example an in-memory pipe.
    pub fn new(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, acceptance: Acceptance) -> Self {
        Self { io: Io::Other(Box::new(io)), remote: None, acceptance }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self { remote: stream.peer_addr().ok(), io: Io::Tcp(stream), acceptance: Acceptance::Exact }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("remote", &self.remote).field("acceptance", &self.acceptance).finish_non_exhaustive()
    }
}
