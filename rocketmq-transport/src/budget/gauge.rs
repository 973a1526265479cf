//! One limit and what is in use of it.

use super::{Ask, Dimension, Level, Limit, Refusal};
use crate::Used;

/// One limit and what is in use of it; never more than the limit.
#[derive(Debug)]
pub(super) struct Gauge {
    limit: Limit,
    used: Used,
}

impl Gauge {
    pub(super) const fn new(limit: Limit) -> Self {
        Self { limit, used: Used { requests: 0, bytes: 0 } }
    }

    pub(super) const fn used(&self) -> Used {
        self.used
    }

    #[inline]
    pub(super) const fn take(&mut self, ask: Ask) {
        self.used.requests += ask.requests;
        self.used.bytes += ask.bytes;
    }

    #[inline]
    pub(super) const fn give_back(&mut self, ask: Ask) {
        self.used.requests -= ask.requests;
        self.used.bytes -= ask.bytes;
    }

    #[inline]
    pub(super) const fn fits(&self, ask: Ask) -> bool {
        let Self { limit, used } = self;
        ask.requests <= limit.requests - used.requests && ask.bytes <= limit.bytes - used.bytes
    }

    /// Why `ask` does not fit now; requests are looked at before bytes.
    pub(super) fn saturated(&self, level: Level, ask: Ask) -> Option<Refusal> {
        let Limit { requests, bytes } = self.limit;
        let room = Limit { requests: requests - self.used.requests, bytes: bytes - self.used.bytes };
        self.beyond(room, level, ask)
    }

    /// Why `ask` never fits.
    pub(super) fn too_large(&self, level: Level, ask: Ask) -> Option<Refusal> {
        self.beyond(self.limit, level, ask)
    }

    fn beyond(&self, room: Limit, level: Level, ask: Ask) -> Option<Refusal> {
        let Self { limit, used } = self;
        if ask.requests > room.requests {
            let (limit, in_use) = (limit.requests, used.requests);
            Some(Refusal { level, dimension: Dimension::Requests, limit, in_use, asked: ask.requests })
        } else if ask.bytes > room.bytes {
            let (limit, in_use) = (limit.bytes, used.bytes);
            Some(Refusal { level, dimension: Dimension::Bytes, limit, in_use, asked: ask.bytes })
        } else {
            None
        }
    }
}
