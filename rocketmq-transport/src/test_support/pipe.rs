//! An in-memory pipe that accepts, to the byte, what it is told to.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::fault::Abort;

/// One end of an in-memory pipe.
///
/// Each direction holds a bounded number of bytes. Dropping an end closes both directions: the other end reads
/// what is left, then the end of the stream, and its writes fail.
#[derive(Debug)]
pub struct PipeEnd {
    incoming: Arc<Direction>,
    outgoing: Arc<Direction>,
}

/// What a direction does with a write once it has accepted as many bytes as it was told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It accepts nothing more, and the writer waits.
    Wait,
    /// The write fails.
    Fail(io::ErrorKind),
    /// The write panics.
    Panic,
}

impl PipeEnd {
    /// Both ends of a pipe that holds `bytes` in each direction.
    ///
    /// # Panics
    ///
    /// Where `bytes` is zero: such a pipe carries nothing.
    #[must_use]
    pub fn pair(bytes: usize) -> (Self, Self) {
        assert!(bytes > 0, "a pipe holds at least one byte");
        let (one, other) = (Arc::new(Direction::new(bytes)), Arc::new(Direction::new(bytes)));
        let near = Self { incoming: Arc::clone(&one), outgoing: Arc::clone(&other) };
        (near, Self { incoming: other, outgoing: one })
    }

    /// How many bytes of the other end have been accepted so far, read or not.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.incoming.lock().accepted
    }

    /// Accepts `bytes` more of the other end, as far as there is room, and then does as told.
    pub fn accept_only(&self, bytes: u64, then: Then) {
        self.incoming.update(|state| {
            (state.allowance, state.then) = (bytes, then);
            state.writer.take()
        });
    }

    /// Accepts whatever there is room for, as a new pipe does.
    pub fn accept_all(&self) {
        self.accept_only(u64::MAX, Then::Wait);
    }

    /// From now on a flush of the other end waits until [`release_flush`](Self::release_flush).
    pub fn hold_flush(&self) {
        self.incoming.lock().flush_held = true;
    }

    /// Lets the other end's flush end.
    pub fn release_flush(&self) {
        self.incoming.update(|state| {
            state.flush_held = false;
            state.flusher.take()
        });
    }

    /// Breaks both directions: reads and writes of the other end fail with `kind`, also of what was on its way.
    pub fn reset(self, kind: io::ErrorKind) {
        for direction in [&self.incoming, &self.outgoing] {
            direction.end(End::Broken(kind));
        }
    }
}

impl AsyncRead for PipeEnd {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.incoming.lock();
        if let Some(End::Broken(kind)) = state.end {
            return Poll::Ready(Err(kind.into()));
        }
        if state.bytes.is_empty() && state.end.is_none() && buffer.remaining() > 0 {
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let read = buffer.remaining().min(state.bytes.len());
        let (front, back) = state.bytes.as_slices();
        let from_front = read.min(front.len());
        buffer.put_slice(&front[..from_front]);
        buffer.put_slice(&back[..read - from_front]);
        state.bytes.drain(..read);
        let writer = state.writer.take();
        drop(state);
        wake(writer);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PipeEnd {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.outgoing.lock();
        match state.end {
            None => {}
            Some(End::Closed) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(End::Broken(kind)) => return Poll::Ready(Err(kind.into())),
        }
        if slices.iter().all(|slice| slice.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        if state.allowance == 0 {
            match state.then {
                Then::Wait => {}
                Then::Fail(kind) => return Poll::Ready(Err(kind.into())),
                Then::Panic => {
                    drop(state);
                    panic!("the pipe was told to panic");
                }
            }
        }
        let accepted = state.accept(slices);
        if accepted == 0 {
            state.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let reader = state.reader.take();
        drop(state);
        wake(reader);
        Poll::Ready(Ok(accepted))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.outgoing.lock();
        if state.flush_held && state.end.is_none() {
            state.flusher = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outgoing.end(End::Closed);
        Poll::Ready(Ok(()))
    }
}

impl Abort for PipeEnd {
    fn abort(self) {
        self.reset(io::ErrorKind::ConnectionReset);
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.incoming.end(End::Closed);
        self.outgoing.end(End::Closed);
    }
}

/// One direction of a pipe, shared by its two ends.
#[derive(Debug)]
struct Direction(Mutex<State>);

#[derive(Debug)]
struct State {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// How many more bytes it accepts, and what it does then.
    allowance: u64,
    then: Then,
    accepted: u64,
    flush_held: bool,
    end: Option<End>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    flusher: Option<Waker>,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// What is in it can still be read.
    Closed,
    /// Nothing can.
    Broken(io::ErrorKind),
}

impl Direction {
    const fn new(capacity: usize) -> Self {
        Self(Mutex::new(State {
            bytes: VecDeque::new(),
            capacity,
            allowance: u64::MAX,
            then: Then::Wait,
            accepted: 0,
            flush_held: false,
            end: None,
            reader: None,
            writer: None,
            flusher: None,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes whom that concerns.
    fn update(&self, change: impl FnOnce(&mut State) -> Option<Waker>) {
        let woken = change(&mut self.lock());
        wake(woken);
    }

    /// The first end counts, but that a closed direction may still be broken.
    fn end(&self, end: End) {
        let mut state = self.lock();
        if !matches!(state.end, Some(End::Broken(_))) {
            state.end = Some(end);
        }
        let woken = [state.reader.take(), state.writer.take(), state.flusher.take()];
        drop(state);
        woken.into_iter().for_each(wake);
    }
}

impl State {
    /// Takes in as much of `slices` as it may.
    fn accept(&mut self, slices: &[IoSlice<'_>]) -> usize {
        let allowed = usize::try_from(self.allowance).unwrap_or(usize::MAX);
        let mut room = (self.capacity - self.bytes.len()).min(allowed);
        let mut accepted = 0;
        for slice in slices {
            let taken = slice.len().min(room);
            self.bytes.extend(&slice[..taken]);
            room -= taken;
            accepted += taken;
        }
        self.accepted += accepted as u64;
        if self.allowance != u64::MAX {
            self.allowance -= accepted as u64;
        }
        accepted
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_direction_accepts_exactly_what_it_was_told_to_and_then_fails() {
        let (mut near, mut far) = PipeEnd::pair(64);
        far.accept_only(5, Then::Fail(io::ErrorKind::ConnectionReset));
        assert_eq!(near.write(b"ab").await.unwrap(), 2);
        assert_eq!(near.write_vectored(&[IoSlice::new(b"cd"), IoSlice::new(b"ef")]).await.unwrap(), 3);
        assert_eq!(near.write(b"f").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(far.accepted(), 5);
        drop(near);
        let mut read = Vec::new();
        far.read_to_end(&mut read).await.unwrap();
        assert_eq!(read, b"abcde");
    }

    #[tokio::test]
    async fn a_writer_that_waits_goes_on_when_it_may_and_there_is_room() {
        let (mut near, mut far) = PipeEnd::pair(2);
        far.accept_only(0, Then::Wait);
        let (written, ()) = tokio::join!(near.write_all(b"abcd"), async {
            assert_eq!(far.accepted(), 0);
            far.accept_all();
            let mut read = [0; 4];
            far.read_exact(&mut read).await.unwrap();
            assert_eq!(&read, b"abcd");
        });
        written.unwrap();
    }

    #[tokio::test]
    async fn a_reset_takes_back_what_was_on_its_way() {
        let (mut near, mut far) = PipeEnd::pair(64);
        far.write_all(b"lost").await.unwrap();
        far.reset(io::ErrorKind::ConnectionReset);
        assert_eq!(near.read(&mut [0; 4]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        assert_eq!(near.write(b"x").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}
