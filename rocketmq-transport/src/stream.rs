//! What a connection runs over, as one type, and its two directions.

use std::{
    fmt, io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// An open byte stream to a peer: TCP, or anything else that reads and writes.
pub struct Stream {
    pub(crate) io: Io,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) acceptance: Acceptance,
}

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

    /// The two directions, each to be owned by its own task. Dropping the write half of a TCP stream ends our
    /// direction; any other stream closes once both halves are gone.
    pub(crate) fn into_halves(self) -> (ReadHalf, WriteHalf) {
        match self.io {
            Io::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
            }
            Io::Other(stream) => {
                let (read, write) = tokio::io::split(stream);
                (ReadHalf::Other(read), WriteHalf::Other(write))
            }
        }
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Self {
        Self { remote: stream.peer_addr().ok(), io: Io::Tcp(stream), acceptance: Acceptance::Exact }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("remote", &self.remote)
            .field("acceptance", &self.acceptance)
            .finish_non_exhaustive()
    }
}

/// TCP without a virtual call, and everything else behind one.
pub(crate) enum Io {
    Tcp(TcpStream),
    Other(Box<dyn Duplex>),
}

pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// The direction from the peer.
pub(crate) enum ReadHalf {
    Tcp(OwnedReadHalf),
    Other(tokio::io::ReadHalf<Box<dyn Duplex>>),
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_read(context, buffer),
            Self::Other(half) => Pin::new(half).poll_read(context, buffer),
        }
    }
}

/// The direction to the peer.
pub(crate) enum WriteHalf {
    Tcp(OwnedWriteHalf),
    Other(tokio::io::WriteHalf<Box<dyn Duplex>>),
}

impl AsyncWrite for WriteHalf {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_write(context, bytes),
            Self::Other(half) => Pin::new(half).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_write_vectored(context, slices),
            Self::Other(half) => Pin::new(half).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(half) => half.is_write_vectored(),
            Self::Other(half) => half.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_flush(context),
            Self::Other(half) => Pin::new(half).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(half) => Pin::new(half).poll_shutdown(context),
            Self::Other(half) => Pin::new(half).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
        net::TcpListener,
    };

    use super::*;

    /// Both directions at once, vectored, to the end of each; `far` is the peer's end.
    async fn both_directions_carry(stream: Stream, mut far: impl AsyncRead + AsyncWrite + Unpin) {
        let (mut read, mut write) = stream.into_halves();
        assert!(write.is_write_vectored());
        let written = write.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b"c")]).await.unwrap();
        assert_eq!(written, 3);
        write.write_all(b"d").await.unwrap();
        write.flush().await.unwrap();
        write.shutdown().await.unwrap();
        let mut heard = Vec::new();
        far.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"abcd");

        far.write_all(b"still here").await.unwrap();
        far.shutdown().await.unwrap();
        let mut answer = String::new();
        read.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "still here");
    }

    async fn tcp_pair() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near.into(), listener.accept().await.unwrap().0)
    }

    fn pipe() -> (Stream, DuplexStream) {
        let (near, far) = tokio::io::duplex(64);
        (Stream::new(near, Acceptance::Exact), far)
    }

    #[tokio::test]
    async fn a_tcp_stream_reads_after_its_write_half_was_shut_down() {
        let (near, far) = tcp_pair().await;
        assert_eq!(near.remote, Some(far.local_addr().unwrap()));
        both_directions_carry(near, far).await;
    }

    #[tokio::test]
    async fn an_in_memory_pipe_reads_after_its_write_half_was_shut_down() {
        let (near, far) = pipe();
        both_directions_carry(near, far).await;
    }

    #[tokio::test]
    async fn the_peer_sees_the_end_when_both_halves_are_dropped() {
        let (near, mut far) = pipe();
        drop(near.into_halves());
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
        let (near, mut far) = tcp_pair().await;
        drop(near.into_halves());
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
    }
}
