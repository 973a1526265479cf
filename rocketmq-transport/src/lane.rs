//! The frames waiting for the writer: order, withdrawal in constant time, control before data.

use std::task::{Context, Poll, Waker};

use crate::{
    Class,
    request::RequestRecord,
    sync::{Arc, Mutex},
};

/// The two lanes of one connection. Their bound is admission's: what is queued holds a permit.
#[derive(Debug)]
pub(crate) struct Lanes {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    control: Lane,
    data: Lane,
    /// Control frames begun since the last data frame.
    streak: usize,
    closed: bool,
    writer: Option<Waker>,
    /// Whether a new frame wakes the writer; while the socket is full only a stop does.
    wake_on_push: bool,
}

/// What the writer may go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    /// Frames are queued, so many.
    Frames(usize),
    /// The lanes are closed: stop.
    Closed,
}

/// The lanes are closed; nothing was queued.
#[derive(Debug)]
pub(crate) struct LanesClosed;

impl Lanes {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::new(Inner::default()) }
    }

    /// Queues `record` behind those of its lane.
    #[inline]
    pub(crate) fn push(&self, record: &Arc<RequestRecord>) -> Result<(), LanesClosed> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Err(LanesClosed);
        }
        let place = inner.lane(record.terms.class).push(Arc::clone(record));
        record.set_place(place);
        let waker = if inner.wake_on_push { inner.writer.take() } else { None };
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Gives up the place of `record`, if it still has one. Not the record's end: that was decided before.
    pub(crate) fn unlink(&self, record: &Arc<RequestRecord>) {
        let unlinked = self.inner.lock().lane(record.terms.class).remove(record);
        drop(unlinked);
    }

    /// Takes the next records out of their slots, at most `most` and not many more bytes than `bytes`; their places stay
    /// theirs until the writer [gives them up](Self::give_up) or [puts the records back](Self::put_back). Control goes
    /// first, at most [`CONTROL_IN_A_ROW`] while data waits; within a lane it goes in order.
    pub(crate) fn take(&self, most: usize, bytes: usize, batch: &mut Vec<Arc<RequestRecord>>) {
        let mut guard = self.inner.lock();
        let Inner { control, data, streak, .. } = &mut *guard;
        let (mut streak, mut room) = (*streak, bytes as u64);
        let (mut next_control, mut next_data) = (control.first, data.first);
        while batch.len() < most && room > 0 {
            let from_control = next_control.is_some() && (streak < CONTROL_IN_A_ROW || next_data.is_none());
            let (lane, next) =
                if from_control { (&mut *control, &mut next_control) } else { (&mut *data, &mut next_data) };
            let Some(place) = *next else { break };
            let slot = &mut lane.slots[place as usize];
            *next = slot.after;
            streak = if from_control { streak + 1 } else { 0 };
            if let Some(record) = slot.record.take() {
                room = room.saturating_sub(record.terms.frame_bytes());
                batch.push(record);
            }
        }
    }

    /// Gives up the places of records that were taken and of which the socket accepted a byte, in the order they were
    /// offered.
    pub(crate) fn give_up<'a>(&self, started: impl Iterator<Item = &'a Arc<RequestRecord>>) {
        let mut inner = self.inner.lock();
        for record in started {
            inner.streak = if record.terms.class == Class::Control { inner.streak + 1 } else { 0 };
            inner.lane(record.terms.class).free(record.place());
        }
    }

    /// Gives up the place of a record that was taken and is not to be written.
    pub(crate) fn give_up_unwritten(&self, record: &Arc<RequestRecord>) {
        self.inner.lock().lane(record.terms.class).free(record.place());
    }

    /// Puts records that were taken back into their slots, where others find them again.
    pub(crate) fn put_back<'a>(&self, untouched: impl Iterator<Item = &'a Arc<RequestRecord>>) {
        let mut inner = self.inner.lock();
        for record in untouched {
            inner.lane(record.terms.class).slots[record.place() as usize].record = Some(Arc::clone(record));
        }
    }

    /// Waits for frames or for the close; the writer's only wait between frames.
    pub(crate) fn poll_ready(&self, cx: &Context<'_>) -> Poll<Ready> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Poll::Ready(Ready::Closed);
        }
        match inner.control.len() + inner.data.len() {
            0 => {
                inner.wake_on_push = true;
                inner.register(cx);
                Poll::Pending
            }
            queued => Poll::Ready(Ready::Frames(queued)),
        }
    }

    /// Waits for the close only, while the socket accepts nothing.
    pub(crate) fn poll_closed(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.inner.lock();
        if inner.closed {
            return Poll::Ready(());
        }
        inner.wake_on_push = false;
        inner.register(cx);
        Poll::Pending
    }

    pub(crate) fn len(&self) -> usize {
        let inner = self.inner.lock();
        inner.control.len() + inner.data.len()
    }

    /// Refuses further frames and tells the writer to stop. What is queued stays until [`clear`](Self::clear).
    pub(crate) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.closed = true;
        let waker = inner.writer.take();
        drop(inner);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Drops what is still linked, after its requests have been ended.
    pub(crate) fn clear(&self) {
        let mut inner = self.inner.lock();
        let linked = (std::mem::take(&mut inner.control), std::mem::take(&mut inner.data));
        drop(inner);
        drop(linked);
    }
}

impl Inner {
    const fn lane(&mut self, class: Class) -> &mut Lane {
        match class {
            Class::Control => &mut self.control,
            Class::Data | Class::LongPoll => &mut self.data,
        }
    }

    fn register(&mut self, cx: &Context<'_>) {
        match &mut self.writer {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.writer = Some(cx.waker().clone()),
        }
    }
}

/// A doubly linked list in a slab: order, and removal from any place in constant time. Freed slots are used
/// again, so that its size follows the most frames ever queued at once.
#[derive(Debug, Default)]
struct Lane {
    slots: Vec<Slot>,
    /// Both ends of the list, and the first free slot.
    first: Option<u32>,
    last: Option<u32>,
    free: Option<u32>,
    len: usize,
}

#[derive(Debug)]
struct Slot {
    /// `None` in a free slot, and while the writer has taken it.
    record: Option<Arc<RequestRecord>>,
    before: Option<u32>,
    /// In a free slot: the next free one.
    after: Option<u32>,
}

impl Lane {
    const fn len(&self) -> usize {
        self.len
    }

    fn push(&mut self, record: Arc<RequestRecord>) -> u32 {
        let slot = Slot { record: Some(record), before: self.last, after: None };
        let place = match self.free {
            Some(place) => {
                self.free = self.slots[place as usize].after;
                self.slots[place as usize] = slot;
                place
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("admission bounds the lane below 2^32 frames")
            }
        };
        match self.last {
            Some(last) => self.slots[last as usize].after = Some(place),
            None => self.first = Some(place),
        }
        self.last = Some(place);
        self.len += 1;
        place
    }

    /// Frees the slot of `record`, if it holds it: it may have been freed and used again since the record was told its
    /// place, and while the writer has taken the record the place is the writer's.
    fn remove(&mut self, record: &Arc<RequestRecord>) -> Option<Arc<RequestRecord>> {
        let place = record.place();
        let removed =
            self.slots.get_mut(place as usize)?.record.take_if(|linked| Arc::ptr_eq(linked, record))?;
        self.free(place);
        Some(removed)
    }

    /// Takes an empty slot out of the list.
    #[inline]
    fn free(&mut self, place: u32) {
        let slot = &mut self.slots[place as usize];
        debug_assert!(slot.record.is_none(), "what is in a slot is not dropped under the lock");
        let (before, after) = (slot.before, slot.after);
        slot.after = self.free;
        self.free = Some(place);
        match before {
            Some(before) => self.slots[before as usize].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => self.slots[after as usize].before = before,
            None => self.last = before,
        }
        self.len -= 1;
    }
}

/// So many control frames are written in a row while data waits.
const CONTROL_IN_A_ROW: usize = 8;

#[cfg(all(test, rocketmq_loom))]
mod models;
#[cfg(all(test, not(rocketmq_loom)))]
mod tests;
