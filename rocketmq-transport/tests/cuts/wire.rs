//! A stream that does with every byte exactly what it is told to.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What the stream reports of the bytes it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reports {
    /// What it reports as accepted has left, and nothing else has.
    Exactly,
    /// All it is shown leaves at once, whatever it reports: what a layer that encrypts or buffers may do.
    Behind,
}

/// How the stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The peer closes both directions: what it had sent can be read, and then the end; writes fail.
    Closed,
    /// The peer ends its own direction and reads on. The client's reader learns of it before its writer.
    HalfClosed,
    /// The same, but the writer goes on before the reader learns of it.
    HalfClosedWriterFirst,
    /// The peer ends its own direction and reads nothing more.
    HalfClosedAndStalled,
    /// Reads fail once what the peer had sent was read, and writes fail.
    Reset,
    /// Writes fail; what the peer had sent can be read, but the runtime has not heard of it yet, and no end is in sight.
    WritesReset,
}

impl Cut {
    /// Those that a client learns of even where it has nothing left to write.
    pub(crate) const SEEN_BY_READS: [Self; 5] = [
        Self::Closed,
        Self::HalfClosed,
        Self::HalfClosedWriterFirst,
        Self::HalfClosedAndStalled,
        Self::Reset,
    ];
}

/// What a write is shown: all of its slices, as sockets take them, or the first alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slices {
    All,
    First,
}

/// The client's end of the stream.
#[derive(Debug)]
pub(crate) struct Wire(Arc<Mutex<State>>);

/// The peer's end.
#[derive(Clone, Debug)]
pub(crate) struct FarEnd(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    reports: Reports,
    slices: Slices,
    /// How many more bytes are reported as accepted.
    allowance: usize,
    /// Everything that has left towards the peer, and how much of it was reported.
    left: Vec<u8>,
    reported: usize,
    incoming: VecDeque<u8>,
    /// Whether the runtime learns only after the next read that there is something to read.
    unheard: bool,
    /// How reads go on once nothing is left to read, and writes at once.
    reads: Side,
    writes: Side,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Open,
    Closed,
    Reset,
}

/// A stream that reports at most `allowance` bytes as accepted, and then waits for what comes.
pub(crate) fn wire(reports: Reports, slices: Slices, allowance: usize) -> (Wire, FarEnd) {
    let state = Arc::new(Mutex::new(State {
        reports,
        slices,
        allowance,
        left: Vec::new(),
        reported: 0,
        incoming: VecDeque::new(),
        unheard: false,
        reads: Side::Open,
        writes: Side::Open,
        reader: None,
        writer: None,
    }));
    (Wire(Arc::clone(&state)), FarEnd(state))
}

impl FarEnd {
    /// All bytes that have reached the peer so far.
    pub(crate) fn received(&self) -> Vec<u8> {
        lock(&self.0).left.clone()
    }

    /// Sends `bytes` and cuts the stream.
    pub(crate) fn send_and_cut(&self, bytes: &[u8], cut: Cut) {
        let mut state = lock(&self.0);
        state.incoming.extend(bytes);
        match cut {
            Cut::Closed => (state.reads, state.writes) = (Side::Closed, Side::Closed),
            Cut::HalfClosed | Cut::HalfClosedWriterFirst => {
                state.reads = Side::Closed;
                state.allowance = usize::MAX;
            }
            Cut::HalfClosedAndStalled => state.reads = Side::Closed,
            Cut::Reset => (state.reads, state.writes) = (Side::Reset, Side::Reset),
            Cut::WritesReset => (state.writes, state.unheard) = (Side::Reset, true),
        }
        let (reader, writer) = (state.reader.take(), state.writer.take());
        drop(state);
        let woken = match cut {
            Cut::Closed | Cut::HalfClosed | Cut::Reset => [reader, writer],
            Cut::HalfClosedWriterFirst => [writer, reader],
            Cut::HalfClosedAndStalled => [reader, None],
            Cut::WritesReset => [writer, None],
        };
        woken.into_iter().flatten().for_each(Waker::wake);
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        if std::mem::take(&mut state.unheard) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if state.incoming.is_empty() {
            return match state.reads {
                Side::Open => {
                    state.reader = Some(cx.waker().clone());
                    Poll::Pending
                }
                Side::Closed => Poll::Ready(Ok(())),
                Side::Reset => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            };
        }
        let read = buffer.remaining().min(state.incoming.len());
        let bytes: Vec<_> = state.incoming.drain(..read).collect();
        buffer.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = lock(&self.0);
        match state.writes {
            Side::Open => {}
            Side::Closed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Side::Reset => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
        let shown: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let accepted = shown.len().min(state.allowance);
        match state.reports {
            Reports::Exactly => state.left.extend(&shown[..accepted]),
            Reports::Behind => {
                assert!(shown.len() <= 16 << 10, "a stream that does not vouch is shown 16 KiB at most");
                let ahead = state.left.len() - state.reported;
                assert_eq!(
                    state.left[state.reported..],
                    shown[..ahead],
                    "what has left is shown again first"
                );
                state.left.extend(&shown[ahead..]);
            }
        }
        if accepted == 0 {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.allowance -= accepted;
        state.reported += accepted;
        Poll::Ready(Ok(accepted))
    }

    fn is_write_vectored(&self) -> bool {
        lock(&self.0).slices == Slices::All
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
