//! The pending-request table: from owner to that generation's own table.

mod completed;
mod entries;
mod generation;
mod limits;
mod spread;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use dashmap::DashMap;

use self::spread::Spread;
use crate::PendingRequestOwner;

pub(crate) use self::{
    completed::Completed,
    generation::{Exit, GenerationTable, Phase, Refused, Tally, Vacancy},
    limits::Watch,
};

/// What awaits a response on all connections of a transport, keyed by (owner, opaque).
///
/// The map from owner to table is concurrent; everything else happens in the generation's own table, so that
/// connections never wait for each other.
#[derive(Debug)]
pub(crate) struct PendingRequestTable {
    generations: DashMap<PendingRequestOwner, Arc<GenerationTable>, Spread>,
    issued: AtomicU64,
    /// Tells this table's owners from another's.
    tag: u64,
}

impl PendingRequestTable {
    pub(crate) fn new() -> Self {
        // Each `RandomState` is seeded anew, so that no two tables have the same tag.
        let tag = RandomState::new().hash_one(());
        Self { generations: DashMap::default(), issued: AtomicU64::new(0), tag }
    }

    /// A table for a new generation, under an owner that was never used before.
    pub(crate) fn open(&self, first_opaque: i32, opaques: u64) -> Arc<GenerationTable> {
        // Uniqueness is all that is asked of the counter, hence `Relaxed`.
        let number = self.issued.fetch_add(1, Relaxed) + 1;
        let owner = PendingRequestOwner::new(self.tag, number);
        let table = Arc::new(GenerationTable::new(owner, first_opaque, opaques));
        self.generations.insert(owner, Arc::clone(&table));
        table
    }

    /// What `owner` has pending, by opaque; where it has nothing, what every response to it comes to.
    pub(crate) fn of(&self, owner: PendingRequestOwner) -> Result<Arc<GenerationTable>, Completion> {
        match self.generations.get(&owner) {
            Some(table) => Ok(Arc::clone(&table)),
            None if owner.is_of(self.tag) => Err(Completion::Unsolicited { ever_used: true }),
            None => Err(Completion::ForeignOwner),
        }
    }

    /// Forgets a generation that has closed and been drained.
    pub(crate) fn remove(&self, owner: PendingRequestOwner) {
        self.generations.remove(&owner);
    }
}

/// What a response came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It ended a request that waited for it, or will once the writer has told what left of it.
    Completed {
        /// Whether the generation has to be seen to.
        vacancy: Vacancy,
    },
    /// Its request had ended `by` ago; a tombstone remembered it.
    Late {
        /// The time since the request's end.
        by: Duration,
    },
    /// Nobody waits for it and no tombstone remembers it.
    Unsolicited {
        /// Whether this generation ever used the opaque.
        ever_used: bool,
    },
    /// The owner was never issued by this table; nothing was looked at.
    ForeignOwner,
}
