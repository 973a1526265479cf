//! The reader task: decodes frames and completes the requests they answer. It awaits the socket, a stop signal
//! and the keeper's question; it never runs user code and never waits for a consumer.

use std::{fmt, io, sync::Arc};

use bytes::BytesMut;
use tokio::{
    io::AsyncReadExt,
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    CloseCause, Command, FrameError, FrameLimits, codec::decode_frame_sharing, link::Link,
    pending::Completed, stream::ReadHalf,
};

/// Reads until it is told to stop, and then what the socket already holds, or until it cannot go on.
pub(crate) struct Reader {
    link: Arc<Link>,
    io: ReadHalf,
    limits: FrameLimits,
    buffer: BytesMut,
    /// Memory for the next small frames.
    shared: BytesMut,
    /// How much the next read has room for.
    room: usize,
    responses: Vec<Command>,
    completed: Completed,
    /// When the frame in the buffer was begun.
    begun: Option<Instant>,
}

impl Reader {
    pub(crate) fn new(link: Arc<Link>, io: ReadHalf) -> Self {
        let limits = link.config.frame_limits();
        Self {
            link,
            io,
            limits,
            buffer: BytesMut::new(),
            shared: BytesMut::new(),
            room: MIN_READ,
            responses: Vec::new(),
            completed: Completed::default(),
            begun: None,
        }
    }

    /// Runs until the stream ends, which is an error to what is pending, or until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> ReadEnd {
        match stop.run_until_cancelled(self.read()).await {
            Some(cause) => ReadEnd::Failed(cause),
            None => ReadEnd::Told(Box::new(self)),
        }
    }

    /// Reads on to the end of the stream or `until`: the peer may still answer after we have shut our side down.
    pub(crate) async fn read_to_end(mut self, until: Instant) {
        // Whatever ends the stream, what it held has been delivered.
        let _ = timeout_at(until, self.read()).await;
    }

    /// Reads what the socket holds now, without waiting for more.
    pub(crate) async fn read_what_is_there(mut self) {
        for _ in 0..MAX_LAST_READS {
            // A turn for the runtime to learn what has arrived; the read is polled first.
            let empty = async {
                tokio::task::yield_now().await;
            };
            tokio::select! {
                biased;
                read = self.fill() => if read.is_err() { return },
                () = empty => return,
            }
        }
    }

    async fn read(&mut self) -> CloseCause {
        loop {
            let partial = self.begun.and_then(|begun| begun.checked_add(self.link.config.max_frame_read));
            let read = match partial {
                None => self.fill_or_look().await,
                Some(at) => tokio::select! {
                    biased;
                    read = self.fill_or_look() => read,
                    () = sleep_until(at) => {
                        return CloseCause::FrameReadTimeout { limit: self.link.config.max_frame_read };
                    }
                },
            };
            if let Err(cause) = read {
                return cause;
            }
        }
    }

    /// One read, or the keeper's question answered: has the socket been found empty?
    async fn fill_or_look(&mut self) -> Result<(), CloseCause> {
        let link = Arc::clone(&self.link);
        tokio::select! {
            biased;
            read = self.fill() => return read,
            () = link.pulse.asked_to_look() => {}
        }
        // A turn for the runtime to learn what has arrived, then one look at the socket.
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            read = self.fill() => {
                link.pulse.ask_to_look(Instant::now());
                read
            }
            () = std::future::ready(()) => {
                link.found_empty(Instant::now());
                Ok(())
            }
        }
    }

    /// One read, and every whole frame of it delivered. Cancel safe: what was read is in the buffer.
    async fn fill(&mut self) -> Result<(), CloseCause> {
        self.buffer.reserve(self.room);
        match self.io.read_buf(&mut self.buffer).await {
            Ok(0) => return Err(CloseCause::EndOfStream),
            Ok(read) => self.room = next_room(self.room, read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(CloseCause::Io(Arc::new(error))),
        }
        let now = Instant::now();
        self.link.pulse.mark_heard(now);
        let decoded = self.decode(now);
        self.deliver(now);
        self.begun = if self.buffer.is_empty() { None } else { self.begun.or(Some(now)) };
        decoded.map_err(CloseCause::Malformed)
    }

    /// Takes every whole frame out of the buffer.
    fn decode(&mut self, now: Instant) -> Result<(), FrameError> {
        while let Some(command) = decode_frame_sharing(&mut self.buffer, &self.limits, &mut self.shared)? {
            self.begun = None;
            if command.is_response() {
                self.responses.push(command);
            } else {
                self.link.table.count_peer_request();
            }
            if self.responses.len() == MAX_AT_ONCE {
                self.deliver(now);
            }
        }
        Ok(())
    }

    fn deliver(&mut self, now: Instant) {
        if !self.responses.is_empty() {
            self.link.deliver(&mut self.responses, &mut self.completed, now);
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

/// How the reader stopped.
#[derive(Debug)]
pub(crate) enum ReadEnd {
    /// It was told to, and can read on.
    Told(Box<Reader>),
    /// The stream ended.
    Failed(CloseCause),
}

/// A read that leaves no room is followed by one with twice as much, and one that leaves most of it by one with half.
fn next_room(room: usize, read: usize) -> usize {
    if read >= room {
        (2 * room).min(MAX_READ)
    } else if read < room / 4 {
        (room / 2).max(MIN_READ)
    } else {
        room
    }
}

/// The least and the most room for one read.
const MIN_READ: usize = 8 << 10;
const MAX_READ: usize = 64 << 10;
/// So many responses are delivered under one lock.
const MAX_AT_ONCE: usize = 8;
/// How many reads are made of a socket that never runs empty, once the connection has ended.
const MAX_LAST_READS: usize = 64;
