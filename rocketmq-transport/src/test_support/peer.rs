//! The peer of a transport, as a script.

use std::{fmt, future::poll_fn, io, pin::Pin, task::Poll};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::{PipeEnd, Then, encoded, encoded_success, settle, success, within_patience};
use crate::{Code, Command, EncodeOptions, FrameLimits, Opaque, Peer, Request, Response, decode_frame};

/// The other end of a connection: it reads and answers as the script says, and counts what it has seen. Its own
/// count is the witness of what a transport has sent.
///
/// It reads nothing unless it is asked to, so a peer that stalls is one that is left alone. Dropping it cuts the
/// connection.
pub struct ScriptedPeer<S = PipeEnd> {
    name: Peer,
    stream: S,
    buffer: BytesMut,
    frames: u64,
    bytes: u64,
}

/// What was left in a stream up to its end.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rest {
    /// The whole frames.
    pub frames: Vec<Command>,
    /// The bytes of a frame that was cut short; empty where there is none.
    pub torn: Bytes,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ScriptedPeer<S> {
    /// A peer at the other end of any stream, for example an accepted socket. `name` is what the transport
    /// calls it.
    pub fn at(name: Peer, stream: S) -> Self {
        Self { name, stream, buffer: BytesMut::new(), frames: 0, bytes: 0 }
    }

    /// The peer that the transport dialled.
    pub fn name(&self) -> &Peer {
        &self.name
    }

    /// How many whole frames it has seen so far.
    pub fn frames_seen(&self) -> u64 {
        self.frames
    }

    /// How many bytes it has seen so far.
    pub fn bytes_seen(&self) -> u64 {
        self.bytes
    }

    /// The next frame, to its last byte.
    ///
    /// # Panics
    ///
    /// Where the stream ends first, what it holds is no frame, or nothing comes for ten minutes.
    ///
    /// # Cancel safety
    ///
    /// What has been read of the frame is kept for the next call.
    pub async fn expect(&mut self) -> Command {
        loop {
            if let Some(frame) = self.take_frame() {
                return frame;
            }
            let read = self.fill().await;
            assert!(read > 0, "expected a frame, found the end after {} bytes", self.bytes);
        }
    }

    /// The next frame, which has to have `code`.
    ///
    /// # Panics
    ///
    /// As [`expect`](Self::expect), and where it is another request.
    ///
    /// # Cancel safety
    ///
    /// As for [`expect`](Self::expect).
    pub async fn expect_code(&mut self, code: i32) -> Command {
        let frame = self.expect().await;
        assert_eq!(frame.code(), Code(code), "another request than expected: {frame:?}");
        frame
    }

    /// Every frame that is still to come before the stream ends, and what is left of one that was cut short.
    ///
    /// # Panics
    ///
    /// Where what the stream holds is no frame, or it fails.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: frames are lost with the future.
    pub async fn rest(&mut self) -> Rest {
        let mut frames = Vec::new();
        loop {
            frames.extend(std::iter::from_fn(|| self.take_frame()));
            if self.fill().await == 0 {
                return Rest { frames, torn: self.buffer.split().freeze() };
            }
        }
    }

    /// The next `bytes`, whatever they are. What [`expect`](Self::expect) reads later goes on behind them.
    ///
    /// # Panics
    ///
    /// Where the stream ends first.
    ///
    /// # Cancel safety
    ///
    /// What has been read is kept for the next call.
    pub async fn read_bytes(&mut self, bytes: usize) -> Bytes {
        while self.buffer.len() < bytes {
            let missing = bytes - self.buffer.len();
            let read = self.read(missing).await;
            assert!(read > 0, "expected {missing} more bytes, found the end");
        }
        self.buffer.split_to(bytes).freeze()
    }

    /// Lets every task run that can, and checks that no byte has come.
    ///
    /// # Panics
    ///
    /// Where one has, or the stream has ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it takes nothing.
    pub async fn expect_nothing(&mut self) {
        settle().await;
        assert_eq!(self.look().await, Look::Nothing, "expected nothing, seen so far: {}", self.bytes);
    }

    /// Waits for the end of the stream.
    ///
    /// # Panics
    ///
    /// Where a byte comes first, or the stream fails.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn expect_end(&mut self) {
        let read = if self.buffer.is_empty() { self.fill().await } else { self.buffer.len() };
        assert_eq!(read, 0, "expected the end of the stream, found {read} bytes");
    }

    /// Answers `request` with success and an empty body, in the request's own encoding.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of the frame may have been sent.
    pub async fn respond(&mut self, request: &Command) {
        self.respond_with(request, success()).await;
    }

    /// Answers `request` with `response`, in the request's own encoding.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of the frame may have been sent.
    pub async fn respond_with(&mut self, request: &Command, response: Response) {
        let options = EncodeOptions { encoding: request.encoding(), version: 0 };
        self.send_raw(&encoded(&response, request.opaque(), options)).await;
    }

    /// Answers whatever has `opaque` with success, asked or not.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of the frame may have been sent.
    pub async fn respond_to(&mut self, opaque: Opaque) {
        self.send_raw(&encoded_success(opaque)).await;
    }

    /// Sends a request of its own, without fields and body.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of the frame may have been sent.
    pub async fn send_request(&mut self, code: i32, opaque: Opaque) {
        let request = Request { code: Code(code), header: &(), body: Bytes::new() };
        let frame = request.encode(opaque, EncodeOptions::default(), &FrameLimits::default());
        self.send_raw(&frame.expect("a request without fields fits")).await;
    }

    /// Sends any bytes. A transport that has closed gets none of them, which is no failure of the script.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of the bytes may have been sent.
    pub async fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }

    /// Ends its own direction; the other one stays open.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn shut_write(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Its end of the stream, to be served by a handler under a [fault script](crate::fault) for example. What it has
    /// read and not handed out is lost.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Closes both directions. What it has not read is lost.
    pub fn cut(self) {
        drop(self);
    }

    fn take_frame(&mut self) -> Option<Command> {
        let frame =
            decode_frame(&mut self.buffer, &FrameLimits::default()).expect("the transport sends frames");
        self.frames += u64::from(frame.is_some());
        frame
    }

    async fn fill(&mut self) -> usize {
        self.read(READ).await
    }

    /// One read of at most `most` bytes; 0 at the end of the stream.
    async fn read(&mut self, most: usize) -> usize {
        let mut limited = (&mut self.stream).take(most as u64);
        let read = within_patience("bytes of the transport", limited.read_buf(&mut self.buffer)).await;
        let read = read.expect("the peer's end of the stream reads");
        self.bytes += read as u64;
        read
    }

    /// One look at the stream, without waiting.
    async fn look(&mut self) -> Look {
        if !self.buffer.is_empty() {
            return Look::Something;
        }
        let mut byte = [0];
        let mut seen = ReadBuf::new(&mut byte);
        let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut self.stream).poll_read(cx, &mut seen))).await;
        self.buffer.extend_from_slice(seen.filled());
        self.bytes += seen.filled().len() as u64;
        match polled {
            Poll::Pending => Look::Nothing,
            Poll::Ready(_) if seen.filled().is_empty() => Look::End,
            Poll::Ready(_) => Look::Something,
        }
    }
}

impl ScriptedPeer<PipeEnd> {
    /// How many bytes of the transport the pipe has accepted so far, read or not.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.stream.accepted()
    }

    /// Accepts `bytes` more of the transport, as far as there is room, and then does as told.
    pub fn accept_only(&self, bytes: u64, then: Then) {
        self.stream.accept_only(bytes, then);
    }

    /// Accepts whatever there is room for.
    pub fn accept_all(&self) {
        self.stream.accept_all();
    }

    /// From now on the transport's flush waits.
    pub fn hold_flush(&self) {
        self.stream.hold_flush();
    }

    /// Lets the transport's flush end.
    pub fn release_flush(&self) {
        self.stream.release_flush();
    }

    /// Breaks the connection: the transport's reads and writes fail with `kind`, also of what was on its way.
    pub fn reset(self, kind: io::ErrorKind) {
        self.stream.reset(kind);
    }
}

impl<S> fmt::Debug for ScriptedPeer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedPeer")
            .field("name", &self.name)
            .field("frames", &self.frames)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// What a peer that does not wait finds in its stream.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    Nothing,
    Something,
    End,
}

/// The most that is read at once.
const READ: usize = 64 << 10;
