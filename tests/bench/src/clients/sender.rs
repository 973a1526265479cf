//! The callers that number their sends, whatever carries these.

use std::time::Duration;

use bytes::Bytes;
use rocketmq_transport::Code;

use crate::{
    Outcome,
    args::Plan,
    load::{Caller, Multiplexed},
    wire::{DEADLINE, HELD, HELD_DEADLINE, SEND},
};

/// What carries requests to one peer and their answers back; clones share the connection.
pub(crate) trait Link: Clone + Send + 'static {
    /// Makes the `count`-th send under `code`, and waits at most `limit` for the success it is answered with.
    fn send(
        &self,
        code: Code,
        count: u64,
        body: &Bytes,
        limit: Duration,
    ) -> impl Future<Output = Outcome<()>> + Send;
}

/// One caller of a link that all callers of a connection share.
#[derive(Clone)]
pub(crate) struct Sender<L> {
    link: L,
    body: Bytes,
    count: u64,
}

impl<L> Sender<L> {
    pub(crate) fn new(link: L, plan: &Plan) -> Self {
        Self { link, body: plan.body(), count: 0 }
    }
}

impl<L: Link> Caller for Sender<L> {
    fn call(&mut self) -> impl Future<Output = Outcome<()>> + Send {
        self.count += 1;
        self.link.send(SEND, self.count, &self.body, DEADLINE)
    }
}

impl<L: Link> Multiplexed for Sender<L> {
    fn held(&mut self) -> impl Future<Output = Outcome<()>> + Send {
        self.count += 1;
        self.link.send(HELD, self.count, &self.body, HELD_DEADLINE)
    }
}
