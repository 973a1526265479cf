//! What a send that succeeded is told.

use std::time::Duration;

use rocketmq_transport::{CloseReport, StageClock};

use super::place::MessagePlace;
use crate::{
    attempt::{Attempt, AttemptList},
    message::UniqueKey,
    protocol::send::SendStatus,
    queue::MessageQueue,
};

/// A message that a broker has stored.
#[derive(Clone, Debug)]
pub struct SendReceipt {
    pub(crate) status: SendStatus,
    pub(crate) message_id: UniqueKey,
    pub(crate) place: MessagePlace,
    pub(crate) attempts: AttemptList,
    pub(crate) clock: StageClock,
    pub(crate) budget: Duration,
}

impl SendReceipt {
    /// How it is stored; in each case it is stored.
    #[must_use]
    pub const fn status(&self) -> SendStatus {
        self.status
    }

    /// The id that the client gave the message, the same in all attempts: 32 hexadecimal digits.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.message_id.as_str()
    }

    /// Where it is stored.
    #[must_use]
    pub const fn place(&self) -> &MessagePlace {
        &self.place
    }

    /// The id that the broker gave it, which says where it is in the broker's store.
    #[must_use]
    pub fn offset_message_id(&self) -> &str {
        self.place.offset_message_id()
    }

    /// The name of the broker that has it.
    #[must_use]
    pub fn broker(&self) -> &str {
        self.place.broker()
    }

    /// The queue it is in, as the broker says.
    #[must_use]
    pub const fn queue(&self) -> &MessageQueue {
        self.place.queue()
    }

    /// Its place in the queue.
    #[must_use]
    pub const fn queue_offset(&self) -> i64 {
        self.place.queue_offset()
    }

    /// The attempts in order, failed ones included; the last one stored the message. Of more than sixteen the
    /// first eight and the last eight.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        self.attempts.as_slice()
    }

    /// Where the time went, over all attempts and the pauses between them.
    #[must_use]
    pub const fn stage_clock(&self) -> &StageClock {
        &self.clock
    }

    /// The time from the start of the send to its end.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// The budget of the whole send; [`Duration::MAX`] means no limit.
    #[must_use]
    pub const fn budget(&self) -> Duration {
        self.budget
    }
}

/// A one-way message whose last byte was accepted by a socket, which says no more than that.
#[derive(Clone, Debug)]
pub struct OnewayReceipt {
    pub(crate) message_id: UniqueKey,
    pub(crate) queue: MessageQueue,
    pub(crate) attempts: AttemptList,
    pub(crate) clock: StageClock,
    pub(crate) budget: Duration,
}

impl OnewayReceipt {
    /// The id that the client gave the message: 32 hexadecimal digits.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.message_id.as_str()
    }

    /// The queue it was meant for.
    #[must_use]
    pub const fn queue(&self) -> &MessageQueue {
        &self.queue
    }

    /// The attempts in order, failed ones included; the last one was written.
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        self.attempts.as_slice()
    }

    /// Where the time went.
    #[must_use]
    pub const fn stage_clock(&self) -> &StageClock {
        &self.clock
    }

    /// The budget of the whole send; [`Duration::MAX`] means no limit.
    #[must_use]
    pub const fn budget(&self) -> Duration {
        self.budget
    }
}

/// What a producer's shutdown left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Sends that were in progress when the shutdown began and ended by themselves.
    pub finished: usize,
    /// Sends that were still in progress at the bound and were ended by the shutdown; each has its own error.
    pub unfinished: usize,
    /// Brokers that have taken note that the producer has ended.
    pub unregistered: usize,
    /// What the transport's own close left behind.
    pub transport: CloseReport,
}
