//! Where a message is stored.

use std::time::SystemTime;

use crate::{protocol::send::SendResponse, queue::MessageQueue};

/// Where a broker has stored a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePlace {
    pub(crate) queue: MessageQueue,
    pub(crate) queue_offset: i64,
    pub(crate) offset_message_id: String,
}

impl MessagePlace {
    /// Where `stored` says that the message is which was meant for `queue`.
    pub(crate) fn new(queue: MessageQueue, stored: SendResponse) -> Self {
        Self {
            queue: queue.with_id(stored.queue_id),
            queue_offset: stored.queue_offset,
            offset_message_id: stored.offset_message_id,
        }
    }

    /// The name of the broker that has it.
    #[must_use]
    pub fn broker(&self) -> &str {
        self.queue.broker()
    }

    /// The queue it is in, as the broker says.
    #[must_use]
    pub const fn queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// Its place in the queue.
    #[must_use]
    pub const fn queue_offset(&self) -> i64 {
        self.queue_offset
    }

    /// The id that the broker gave it, which says where it is in the broker's store.
    #[must_use]
    pub fn offset_message_id(&self) -> &str {
        &self.offset_message_id
    }
}

/// A copy of a message that a broker was found to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCopy {
    pub(crate) place: MessagePlace,
    pub(crate) stored_at: SystemTime,
}

impl StoredCopy {
    /// Where it is.
    #[must_use]
    pub const fn place(&self) -> &MessagePlace {
        &self.place
    }

    /// When the broker stored it, by the broker's clock, to the millisecond.
    #[must_use]
    pub const fn stored_at(&self) -> SystemTime {
        self.stored_at
    }
}
