//! The writer task: only owner of the write half. It offers frames for one poll of the socket at a time, and
//! applies what the socket accepted.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    io::{self, IoSlice},
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::AsyncWrite,
    time::{Instant, Sleep, sleep_until},
};

use crate::{
    Acceptance, CloseCause,
    budget::Returning,
    lane::Ready,
    link::Link,
    request::{Accepted, Frame, Offer, RequestRecord},
    stream::WriteHalf,
};

/// Writes what is queued until it is told to stop or cannot go on.
pub(crate) struct Writer {
    link: Arc<Link>,
    io: WriteHalf,
    acceptance: Acceptance,
    /// The frames at hand: those begun, then those offered in the poll at hand.
    hand: VecDeque<InHand>,
    /// Records on their way from the lane to the hand.
    records: Vec<Arc<RequestRecord>>,
    /// Small pieces, copied together so that one slice carries many frames.
    staging: Vec<u8>,
    /// The bytes of the frames that are done.
    returning: Returning,
    flush: Flush,
    /// When the socket last accepted something, or was first asked to.
    progress: Instant,
    limit: Pin<Box<Sleep>>,
}

struct InHand {
    record: Arc<RequestRecord>,
    frame: Frame,
    accepted: usize,
    /// Since when a byte of it counts as accepted; `None` while it is only offered.
    begun: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    Done,
    Due,
}

/// Why the writer stopped.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The lanes were closed.
    Told,
    /// The socket failed or a limit was exceeded.
    Failed(CloseCause),
}

impl Writer {
    pub(crate) fn new(link: Arc<Link>, io: WriteHalf, acceptance: Acceptance) -> Self {
        let now = Instant::now();
        Self {
            link,
            io,
            acceptance,
            hand: VecDeque::new(),
            records: Vec::new(),
            staging: Vec::new(),
            returning: Returning::default(),
            flush: Flush::Done,
            progress: now,
            limit: Box::pin(sleep_until(now)),
        }
    }

    /// Runs until it stops for good: what was accepted of a begun frame is final then.
    pub(crate) async fn run(mut self) -> (Stopped, WriteHalf) {
        let stopped = loop {
            if self.hand.is_empty() && self.flush == Flush::Done {
                let queued = match poll_fn(|cx| self.link.lanes.poll_ready(cx)).await {
                    Ready::Frames(queued) => queued,
                    Ready::Closed => break Stopped::Told,
                };
                if queued < self.link.table.waiting() {
                    // Callers that were just answered are about to queue their next requests: one turn for
                    // them makes one batch of many frames out of many batches of one.
                    tokio::task::yield_now().await;
                }
                self.progress = Instant::now();
            }
            if let Err(stopped) = poll_fn(|cx| self.poll_batch(cx)).await {
                break stopped;
            }
        };
        if self.acceptance == Acceptance::Exact {
            self.hand.iter().for_each(|cut| cut.record.cut_short());
        }
        (stopped, self.io)
    }

    /// Offers what there is, anew for each poll of the socket, until some of it was accepted; flushes what was.
    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Stopped>> {
        if self.link.lanes.poll_closed(cx).is_ready() {
            return Poll::Ready(Err(Stopped::Told));
        }
        let now = Instant::now();
        self.offer(now);
        let polled = if self.hand.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            let (polled, offered) = self.poll_write(cx);
            let accepted = if let Poll::Ready(Ok(accepted)) = polled { accepted } else { 0 };
            self.apply(accepted, offered, now);
            polled.map(|polled| match polled {
                Ok(0) => Err(io::ErrorKind::WriteZero.into()),
                polled => polled.map(drop),
            })
        };
        let polled = match polled {
            Poll::Ready(Ok(())) if self.hand.is_empty() => self.poll_flush(cx),
            polled => polled,
        };
        match polled {
            Poll::Ready(Ok(())) => {
                self.progress = now;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(Stopped::Failed(CloseCause::Io(Arc::new(error))))),
            Poll::Pending => self.poll_limits(cx).map(|cause| Err(Stopped::Failed(cause))),
        }
    }

    /// Takes the next frames out of their records, for one poll of the socket; their places stay theirs.
    fn offer(&mut self, now: Instant) {
        let mut room = match self.acceptance {
            Acceptance::Exact => MAX_BATCH_BYTES,
            Acceptance::Offered => MAX_OFFER_BYTES,
        };
        for begun in &self.hand {
            room = room.saturating_sub(begun.frame.len() - begun.accepted);
        }
        if room == 0 {
            return;
        }
        self.link.lanes.take(MAX_BATCH_FRAMES, room, &mut self.records);
        if !self.records.is_empty() {
            self.link.pulse.mark_used(now);
        }
        for record in self.records.drain(..) {
            match record.offer(now) {
                Offer::Frame(frame) => {
                    self.hand.push_back(InHand { record, frame, accepted: 0, begun: None });
                }
                Offer::Gone => self.link.discard_taken(&record),
            }
        }
    }

    /// One poll of the socket with what is at hand; also how many bytes the socket was shown.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> (Poll<io::Result<usize>>, usize) {
        let most = match self.acceptance {
            Acceptance::Exact => usize::MAX,
            Acceptance::Offered => MAX_OFFER_BYTES,
        };
        let pieces = stage(self.hand.iter(), &mut self.staging, most);
        let slices = Vec::from_iter(pieces.iter().map(|piece| {
            IoSlice::new(match piece {
                Piece::Staged(range) => &self.staging[range.clone()],
                Piece::Body(body) => body,
            })
        }));
        let all_staged = [IoSlice::new(&self.staging)];
        let slices = if slices.is_empty() { &all_staged[..] } else { &slices };
        let shown = if self.io.is_write_vectored() { slices } else { &slices[..1] };
        let offered = shown.iter().map(|slice| slice.len()).sum();
        let polled = match shown {
            [slice] => Pin::new(&mut self.io).poll_write(cx, slice),
            slices => Pin::new(&mut self.io).poll_write_vectored(cx, slices),
        };
        (polled, offered)
    }

    /// Tells each record what became of its frame, and keeps the frames that are begun and not finished.
    fn apply(&mut self, accepted: usize, offered: usize, now: Instant) {
        let touched = match self.acceptance {
            Acceptance::Exact => accepted,
            Acceptance::Offered => offered,
        };
        let begun = self.count_started(touched);
        let whole = self.accept(accepted);
        let lanes = &self.link.lanes;
        let newly = self.hand.range(..begun).filter(|at_hand| at_hand.begun.is_none());
        lanes.give_up(newly.map(|at_hand| &at_hand.record));
        if begun < self.hand.len() {
            lanes.put_back(self.hand.range(begun..).map(|at_hand| &at_hand.record));
        }
        for InHand { record, frame, .. } in self.hand.drain(begun..) {
            self.link.settle(&record, record.settle(Accepted::Nothing(frame), now), now);
        }
        for at_hand in self.hand.range_mut(whole..) {
            if at_hand.begun.is_none() {
                at_hand.begun = Some(now);
                self.link.settle(&at_hand.record, at_hand.record.settle(Accepted::Some, now), now);
            }
        }
        for InHand { record, frame, begun, .. } in self.hand.drain(..whole) {
            let settled = match begun {
                Some(_) => (record.finish(now), None),
                None => record.settle(Accepted::All, now),
            };
            self.link.settle(&record, settled, now);
            let (bytes, head) = frame.let_go();
            self.returning.add(bytes);
            self.link.spares.give(head);
        }
        self.returning.give_back();
        if begun > 0 {
            self.flush = Flush::Due;
        }
    }

    /// How many of the frames at hand count as begun, once the socket was told of so many more bytes.
    fn count_started(&self, mut touched: usize) -> usize {
        let reached = |at_hand: &&InHand| {
            let reached = at_hand.begun.is_some() || touched > 0;
            touched = touched.saturating_sub(at_hand.frame.len() - at_hand.accepted);
            reached
        };
        self.hand.iter().take_while(reached).count()
    }

    /// Notes that the socket has accepted so many more bytes; how many frames are whole.
    fn accept(&mut self, mut accepted: usize) -> usize {
        for (whole, at_hand) in self.hand.iter_mut().enumerate() {
            let of_it = accepted.min(at_hand.frame.len() - at_hand.accepted);
            accepted -= of_it;
            at_hand.accepted += of_it;
            if at_hand.accepted < at_hand.frame.len() {
                return whole;
            }
        }
        self.hand.len()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.flush == Flush::Due {
            std::task::ready!(Pin::new(&mut self.io).poll_flush(cx))?;
            self.flush = Flush::Done;
        }
        Poll::Ready(Ok(()))
    }

    /// The socket accepts nothing: how long that, and the frame begun, may still take.
    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<CloseCause> {
        let config = &self.link.config;
        let (stall, write) = (config.max_write_stall, config.max_frame_write);
        let mut first = (after(self.progress, stall), CloseCause::WriteStalled { limit: stall });
        if let Some(begun) = self.hand.front().and_then(|front| front.begun) {
            let limit = (after(begun, write), CloseCause::FrameWriteTimeout { limit: write });
            if limit.0 < first.0 {
                first = limit;
            }
        }
        if self.limit.deadline() != first.0 {
            self.limit.as_mut().reset(first.0);
        }
        self.limit.as_mut().poll(cx).map(|()| first.1)
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("at_hand", &self.hand.len()).finish_non_exhaustive()
    }
}

/// One slice of a write.
enum Piece<'a> {
    Staged(Range<usize>),
    Body(&'a [u8]),
}

/// Lays out what is left of `frames` as pieces of at most `most` bytes in all: small ones copied together into
/// `staging`, large bodies where they are. Where there are no large ones, there is no piece, and `staging` is all.
fn stage<'a>(frames: impl Iterator<Item = &'a InHand>, staging: &mut Vec<u8>, most: usize) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    let mut room = most;
    let mut staged = 0;
    staging.clear();
    for InHand { frame, accepted, .. } in frames {
        // Each frame takes at most two pieces, and one more is for what is staged last.
        if room == 0 || pieces.len() + 2 >= MAX_SLICES {
            break;
        }
        let head = frame.head.get(*accepted..).unwrap_or_default();
        let head = &head[..head.len().min(room)];
        staging.extend_from_slice(head);
        room -= head.len();
        let body = frame.body.get(accepted.saturating_sub(frame.head.len())..).unwrap_or_default();
        let body = &body[..body.len().min(room)];
        room -= body.len();
        if body.len() <= MAX_STAGED_BODY {
            staging.extend_from_slice(body);
            continue;
        }
        if staging.len() > staged {
            pieces.push(Piece::Staged(staged..staging.len()));
            staged = staging.len();
        }
        pieces.push(Piece::Body(body));
    }
    if !pieces.is_empty() && staging.len() > staged {
        pieces.push(Piece::Staged(staged..staging.len()));
    }
    pieces
}

/// `start + limit`, or an instant too far away to matter.
fn after(start: Instant, limit: Duration) -> Instant {
    start.checked_add(limit).unwrap_or_else(|| start + FAR)
}

/// A batch is bounded in frames and in bytes; its last frame may exceed the bytes.
const MAX_BATCH_FRAMES: usize = 256;
const MAX_BATCH_BYTES: usize = 1 << 20;
/// What a stream that does not vouch is shown in one call: all of it counts as accepted.
const MAX_OFFER_BYTES: usize = 16 << 10;
/// A body up to this size is copied into the staging buffer; a larger one gets a slice of its own.
const MAX_STAGED_BODY: usize = 4 << 10;
const MAX_SLICES: usize = 256;
const FAR: Duration = Duration::from_secs(86_400 * 365);
