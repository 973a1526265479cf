//! What the raw clients stand on: one socket, a table from opaque to oneshot, a writer that collects a batch, and a
//! reader that completes all it has read at once.
//!
//! Callers write their frames into a buffer they share, which the writer exchanges for an empty one: no channel is
//! faster.

use std::{
    io::IoSlice,
    mem,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::{Bytes, BytesMut};
use slab::Slab;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, oneshot},
    task,
};

use crate::{
    Outcome,
    counting::Counting,
    wire::{FIRST_OPAQUE, read},
};

/// The callers' side of the socket, for answers of type `A`.
pub(crate) struct Pipe<A> {
    state: Mutex<State<A>>,
    /// Wakes the writer when it has nothing to write.
    filled: Notify,
}

struct State<A> {
    waiters: Slab<oneshot::Sender<A>>,
    output: Output,
    /// Whether the writer waits for [`Pipe::filled`].
    idle: bool,
}

/// Frames to be written, in order. Bodies that are worth it are not copied.
#[derive(Default)]
pub(crate) struct Output {
    bytes: Vec<u8>,
    /// Each body, and where in `bytes` it belongs.
    bodies: Vec<(usize, Bytes)>,
}

impl<A: Send + 'static> Pipe<A> {
    /// Connects, and starts the reader, which makes answers and their opaques out of frames with `read`.
    pub(crate) async fn connect(
        server: SocketAddr,
        read: impl FnMut(Bytes) -> Outcome<(u32, A)> + Send + 'static,
    ) -> Outcome<Arc<Self>> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let (reading, writing) = stream.into_split();
        let state = State { waiters: Slab::new(), output: Output::default(), idle: false };
        let pipe = Arc::new(Self { state: Mutex::new(state), filled: Notify::new() });
        task::spawn(Arc::clone(&pipe).read_all(reading, read));
        task::spawn(Arc::clone(&pipe).write_all(Counting(writing)));
        Ok(pipe)
    }

    /// Queues a frame: `head` appends what comes before the body under the opaque it is told.
    pub(crate) fn ask(
        &self,
        head: impl FnOnce(&mut Vec<u8>, u32),
        body: &Bytes,
    ) -> (u32, oneshot::Receiver<A>) {
        let (waiter, answer) = oneshot::channel();
        let mut state = self.state();
        let opaque = FIRST_OPAQUE + state.waiters.insert(waiter) as u32;
        head(&mut state.output.bytes, opaque);
        state.output.push_body(body);
        let idle = mem::take(&mut state.idle);
        drop(state);
        if idle {
            self.filled.notify_one();
        }
        (opaque, answer)
    }

    /// Forgets a request that nobody waits for any more.
    pub(crate) fn forget(&self, opaque: u32) {
        self.state().waiters.try_remove((opaque - FIRST_OPAQUE) as usize);
    }

    fn state(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_all(self: Arc<Self>, mut socket: Counting<OwnedWriteHalf>) -> Outcome<()> {
        let mut batch = Output::default();
        loop {
            // Every caller that is ready to run adds its frame first.
            task::yield_now().await;
            {
                let mut state = self.state();
                mem::swap(&mut state.output, &mut batch);
                state.idle = batch.bytes.is_empty();
            }
            if batch.bytes.is_empty() {
                self.filled.notified().await;
                continue;
            }
            batch.write_to(&mut socket).await?;
        }
    }

    async fn read_all(
        self: Arc<Self>,
        mut socket: OwnedReadHalf,
        mut read: impl FnMut(Bytes) -> Outcome<(u32, A)>,
    ) -> Outcome<()> {
        let mut input = BytesMut::with_capacity(CHUNK);
        let mut answers = Vec::new();
        let mut completed = Vec::new();
        loop {
            input.reserve(CHUNK);
            if socket.read_buf(&mut input).await? == 0 {
                // Whoever still waits is told by the drop of its sender.
                self.state().waiters.clear();
                return Ok(());
            }
            while let Some(len) = read::frame_len(&input) {
                answers.push(read(input.split_to(len).freeze())?);
            }
            {
                let mut state = self.state();
                completed.extend(answers.drain(..).filter_map(|(opaque, answer)| {
                    let key = opaque.wrapping_sub(FIRST_OPAQUE) as usize;
                    Some((state.waiters.try_remove(key)?, answer))
                }));
            }
            for (waiter, answer) in completed.drain(..) {
                // A caller that has gone takes no answer.
                let _ = waiter.send(answer);
            }
        }
    }
}

impl Output {
    fn push_body(&mut self, body: &Bytes) {
        if body.len() < UNCOPIED {
            self.bytes.extend_from_slice(body);
        } else {
            self.bodies.push((self.bytes.len(), body.clone()));
        }
    }

    /// Writes everything, and is empty afterwards.
    async fn write_to(&mut self, socket: &mut Counting<OwnedWriteHalf>) -> Outcome<()> {
        if self.bodies.is_empty() {
            socket.write_all(&self.bytes).await?;
        } else {
            self.write_slices(socket).await?;
        }
        self.bytes.clear();
        self.bodies.clear();
        Ok(())
    }

    async fn write_slices(&self, socket: &mut Counting<OwnedWriteHalf>) -> Outcome<()> {
        let mut slices = Vec::with_capacity(2 * self.bodies.len() + 1);
        let mut start = 0;
        for (at, body) in &self.bodies {
            slices.extend([IoSlice::new(&self.bytes[start..*at]), IoSlice::new(body)]);
            start = *at;
        }
        slices.push(IoSlice::new(&self.bytes[start..]));
        let mut rest = &mut slices[..];
        // Drops what is empty in front, so that nothing is left when all is written.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let written = socket.write_vectored(&rest[..rest.len().min(MAX_SLICES)]).await?;
            IoSlice::advance_slices(&mut rest, written);
        }
        Ok(())
    }
}

/// Bytes read at once.
const CHUNK: usize = 64 << 10;
/// Bodies of this length and more are written from where they are.
const UNCOPIED: usize = 4 << 10;
/// Slices that the system takes at once.
const MAX_SLICES: usize = 1_024;
