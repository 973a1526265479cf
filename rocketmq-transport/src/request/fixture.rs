//! Records on a budget of their own, for the tests of record, lane and table.

use bytes::Bytes;

use super::*;
use crate::{
    Class, Code, EncodeOptions, FrameLimits, Limit, RequestDeadline, Response,
    budget::{Ask, BudgetTree, Limits, PeerBudget},
    decode_frame,
    sync::Arc,
};

/// A budget, and an instant that the test counts from.
#[derive(Debug)]
pub(crate) struct Fixture {
    tree: BudgetTree,
    peer: PeerBudget,
    pub(crate) start: Instant,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let limit = Limit { requests: 1_000, bytes: 1_000_000 };
        let tree = BudgetTree::new(Limits {
            client: limit,
            peer: limit,
            control: limit,
            data: limit,
            long_poll: limit,
        });
        let peer = tree.peer();
        Self { tree, peer, start: Instant::now() }
    }

    /// `ms` milliseconds after the start.
    pub(crate) fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    /// A call of data with a deadline `ms` after the start.
    pub(crate) fn terms(&self, ms: u64) -> Terms {
        Terms {
            code: Code(310),
            bytes: FRAME + REST,
            class: Class::Data,
            kind: Kind::Call,
            deadline: RequestDeadline::from(self.start, Duration::from_millis(ms)),
            start_by: None,
            suspend: Duration::ZERO,
        }
    }

    /// A queued record that holds a permit for itself and one for its frame.
    pub(crate) fn record(&self, opaque: i32, terms: Terms) -> Arc<RequestRecord> {
        let ask = Ask { requests: 1, bytes: REST + FRAME };
        let mut permit = self.peer.try_acquire(terms.class, ask, self.start).expect("an empty budget");
        let bytes = permit.split_bytes(FRAME);
        let frame = Frame { head: vec![0; 8], body: Bytes::from_static(&[0; FRAME as usize - 8]), bytes };
        let clock = StageClock::start(Stage::BeforeWrite, self.start);
        Arc::new(RequestRecord::new(Opaque(opaque), terms, (frame, permit), clock, Waker::noop()))
    }

    /// What the requests and their frames hold: requests, and bytes.
    pub(crate) fn held(&self) -> (u64, u64) {
        let usage = self.peer.usage("peer:1".parse().expect("an address"));
        let all = [usage.control, usage.data, usage.long_poll];
        (all.iter().map(|used| used.requests).sum(), all.iter().map(|used| used.bytes).sum())
    }

    pub(crate) fn assert_idle(&self) {
        assert_eq!(self.held(), (0, 0));
        assert!(self.tree.used().is_idle());
    }
}

/// A response with this opaque, as the reader would hand it over.
pub(crate) fn response(opaque: i32) -> Command {
    let response = Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body: Bytes::new() };
    let limits = FrameLimits::default();
    let frame = response.encode(Opaque(opaque), EncodeOptions::default(), &limits).expect("a small response");
    decode_frame(&mut frame[..].into(), &limits).expect("a sound frame").expect("a whole frame")
}

/// Hands `record` the response with opaque 1.
pub(crate) fn respond(record: &RequestRecord, now: Instant) -> Delivery {
    record.respond(response(1), now).map_or(Delivery::Unsolicited, |(delivery, _)| delivery)
}

/// The frame of `record`, which must be queued.
pub(crate) fn offered(record: &RequestRecord, now: Instant) -> Frame {
    match record.offer(now) {
        Offer::Frame(frame) => frame,
        Offer::Gone => panic!("the record is queued"),
    }
}

/// The outcome of `record`, where it has one that was not collected.
pub(crate) fn outcome(record: &RequestRecord) -> Option<(Outcome, StageClock)> {
    match record.poll_outcome(&Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

/// The bytes of each frame, and of the rest of each request.
pub(crate) const FRAME: u64 = 30;
pub(crate) const REST: u64 = 70;
