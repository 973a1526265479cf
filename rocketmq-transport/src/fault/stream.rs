//! A stream that reads, writes and ends as a script says.

use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

use super::{ConnectionFault, Cut, Direction};

/// A stream that can end without order.
pub trait Abort: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Ends it so that the other end's reads and writes fail, also of what is on its way.
    fn abort(self);
}

/// A reset: a socket that is closed without lingering sends RST.
impl Abort for TcpStream {
    fn abort(self) {
        // Where it fails the socket has ended already.
        let _ = self.set_zero_linger();
    }
}

/// The listening side's end of a connection under the faults of a [`FaultScript`](super::FaultScript).
///
/// Once it is cut, what is written to it is thrown away, and it reads as its [`Cut`] says, then the end of the stream.
pub struct FaultyStream<S> {
    /// None once it was reset.
    io: Option<S>,
    phase: Phase,
    /// Before that nothing is read.
    opening: Option<Pin<Box<Sleep>>>,
    /// How many bytes may still be read before it stops to read.
    readable: u64,
    input: Counter,
    output: Counter,
    /// Who waits to read, told when it is cut.
    reader: Option<Waker>,
}

/// What has become of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Our direction is to end, or has; what comes in is thrown away.
    Finished,
    /// Our direction is to end, or has; what comes in is read.
    HalfClosed,
    /// It was reset.
    Gone,
}

/// The bytes of one direction that are left before it is cut.
#[derive(Clone, Copy, Debug)]
struct Counter {
    left: u64,
    how: Cut,
}

impl<S: Abort> FaultyStream<S> {
    pub(super) fn new(io: S, faults: Vec<ConnectionFault>) -> Self {
        let mut stream = Self {
            io: Some(io),
            phase: Phase::Open,
            opening: None,
            readable: u64::MAX,
            input: Counter::UNCUT,
            output: Counter::UNCUT,
            reader: None,
        };
        // From the last to the first, so that of two of a kind the first is what stays.
        for fault in faults.into_iter().rev() {
            match fault {
                ConnectionFault::Slow(delay) => stream.opening = Some(Box::pin(sleep(delay))),
                ConnectionFault::StopReading { after } => stream.readable = after,
                ConnectionFault::Cut { direction: Direction::In, after, how } => {
                    stream.input = Counter { left: after, how };
                }
                ConnectionFault::Cut { direction: Direction::Out, after, how } => {
                    stream.output = Counter { left: after, how };
                }
                ConnectionFault::Refuse => {}
            }
        }
        stream
    }

    fn cut(&mut self, how: Cut, context: &mut Context<'_>) {
        self.phase = match how {
            Cut::Fin => Phase::Finished,
            Cut::Half => Phase::HalfClosed,
            Cut::Rst => Phase::Gone,
        };
        if how == Cut::Rst {
            if let Some(io) = self.io.take() {
                io.abort();
            }
        } else {
            self.end_output(context);
        }
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Ends our direction; asked again, it goes on where it had to wait.
    fn end_output(&mut self, context: &mut Context<'_>) {
        if let Some(io) = &mut self.io {
            let _ = Pin::new(io).poll_shutdown(context);
        }
    }

    /// Reads no more than `limit` bytes; at the end of the stream it reads none.
    fn read_up_to(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        limit: u64,
    ) -> Poll<io::Result<()>> {
        let Some(io) = &mut self.io else { return Poll::Ready(Ok(())) };
        if limit >= buffer.remaining() as u64 {
            return Pin::new(io).poll_read(context, buffer);
        }
        let mut part = [0; PART_BYTES];
        let most = usize::try_from(limit).map_or(PART_BYTES, |limit| limit.min(PART_BYTES));
        let mut part = ReadBuf::new(&mut part[..most]);
        ready!(Pin::new(io).poll_read(context, &mut part))?;
        buffer.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }

    /// Throws away what comes in, up to the end of the stream.
    fn discard(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut part = [0; PART_BYTES];
        loop {
            let mut part = ReadBuf::new(&mut part);
            let Some(io) = &mut self.io else { return Poll::Ready(Ok(())) };
            ready!(Pin::new(io).poll_read(context, &mut part))?;
            if part.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_open_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.readable == 0 {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let limit =
            if self.phase == Phase::Open { self.input.left.min(self.readable) } else { self.readable };
        ready!(self.read_up_to(context, buffer, limit))?;
        let read = (buffer.filled().len() - before) as u64;
        self.readable = count_down(self.readable, read);
        if self.phase == Phase::Open && read > 0 && self.input.count(read) == Counted::Last {
            self.cut(self.input.how, context);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: Abort> AsyncRead for FaultyStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        stream.reader = Some(context.waker().clone());
        if let Some(opening) = &mut stream.opening {
            ready!(opening.as_mut().poll(context));
            stream.opening = None;
        }
        if stream.phase == Phase::Open && stream.input.left == 0 {
            stream.cut(stream.input.how, context);
        }
        match stream.phase {
            Phase::Open => stream.poll_open_read(context, buffer),
            Phase::HalfClosed => {
                stream.end_output(context);
                stream.poll_open_read(context, buffer)
            }
            Phase::Finished => {
                stream.end_output(context);
                stream.discard(context)
            }
            Phase::Gone => Poll::Ready(Ok(())),
        }
    }
}

impl<S: Abort> AsyncWrite for FaultyStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        if stream.phase == Phase::Open && stream.output.left == 0 && !bytes.is_empty() {
            stream.cut(stream.output.how, context);
        }
        let Some(io) = stream.io.as_mut().filter(|_| stream.phase == Phase::Open) else {
            return Poll::Ready(Ok(bytes.len()));
        };
        let most = usize::try_from(stream.output.left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let written = ready!(Pin::new(io).poll_write(context, &bytes[..most]))?;
        if written > 0 && stream.output.count(written as u64) == Counted::Last {
            stream.cut(stream.output.how, context);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        match &mut stream.io {
            Some(io) if stream.phase == Phase::Open => Pin::new(io).poll_flush(context),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        match &mut stream.io {
            Some(io) => Pin::new(io).poll_shutdown(context),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S> fmt::Debug for FaultyStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStream").field("phase", &self.phase).finish_non_exhaustive()
    }
}

/// Whether a count has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    More,
    Last,
}

impl Counter {
    /// The largest count means never.
    const UNCUT: Self = Self { left: u64::MAX, how: Cut::Fin };

    fn count(&mut self, bytes: u64) -> Counted {
        self.left = count_down(self.left, bytes);
        if self.left == 0 { Counted::Last } else { Counted::More }
    }
}

/// What is left of `left`, of which the largest number means no limit.
fn count_down(left: u64, bytes: u64) -> u64 {
    if left == u64::MAX { left } else { left.saturating_sub(bytes) }
}

/// What is read at once where less than there is room for may be.
const PART_BYTES: usize = 4 << 10;
