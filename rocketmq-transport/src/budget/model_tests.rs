//! The budget against a model of it that keeps lists and adds them up.

use std::task::Poll;

use proptest::prelude::*;

use super::{
    ledger::{CLASSES, Leaf},
    tests::*,
    *,
};

#[derive(Clone, Debug)]
enum Step {
    Try(usize, Class, u64),
    Wait(usize, Class, u64, u64),
    Poll(prop::sample::Index),
    Abandon(prop::sample::Index),
    GiveBack(prop::sample::Index),
    Split(prop::sample::Index, u64),
    Retain(u64),
    Pass(u64),
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let class = || prop::sample::select(CLASSES.to_vec());
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (0..PEERS, class(), 0u64..70).prop_map(|(peer, class, bytes)| Step::Try(peer, class, bytes)),
        6 => (0..PEERS, class(), 0u64..60, 1u64..50).prop_map(|(peer, class, bytes, ms)| Step::Wait(peer, class, bytes, ms)),
        2 => index().prop_map(Step::Poll),
        2 => index().prop_map(Step::Abandon),
        6 => index().prop_map(Step::GiveBack),
        2 => (index(), 0u64..60).prop_map(|(permit, bytes)| Step::Split(permit, bytes)),
        1 => (0u64..60).prop_map(Step::Retain),
        1 => (0u64..10).prop_map(Step::Pass),
        4 => Just(Step::Settle),
    ]
}

/// A permit, and what the model believes of it.
struct Held {
    permit: Permit,
    leaf: Option<Leaf>,
    claim: Ask,
}

struct Queued<'a> {
    waiting: Waiting<'a>,
    leaf: Leaf,
    bytes: u64,
    deadline: RequestDeadline,
    polled: bool,
}

struct Model<'a> {
    tree: &'a BudgetTree,
    peers: &'a [PeerBudget],
    now: Instant,
    held: Vec<Held>,
    queued: Vec<Queued<'a>>,
}

impl<'a> Model<'a> {
    fn apply(&mut self, step: Step) {
        match step {
            Step::Try(peer, class, bytes) => self.try_take(self.leaf(peer, class), bytes),
            Step::Wait(peer, class, bytes, ms) => {
                let leaf = self.leaf(peer, class);
                let deadline = RequestDeadline::from(self.now, std::time::Duration::from_millis(ms));
                let waiting = Waiting::until(&self.peers[peer], class, bytes, deadline);
                self.queued.push(Queued { waiting, leaf, bytes, deadline, polled: false });
                self.poll(self.queued.len() - 1);
            }
            Step::Poll(at) if !self.queued.is_empty() => self.poll(at.index(self.queued.len())),
            Step::Abandon(at) if !self.queued.is_empty() => {
                drop(self.queued.remove(at.index(self.queued.len())));
            }
            Step::GiveBack(at) if !self.held.is_empty() => {
                drop(self.held.remove(at.index(self.held.len())));
            }
            Step::Split(at, bytes) if !self.held.is_empty() => {
                let at = at.index(self.held.len());
                let held = &mut self.held[at];
                let bytes = bytes.min(held.claim.bytes);
                let (permit, leaf) = (held.permit.split_bytes(bytes), held.leaf);
                held.claim.bytes -= bytes;
                self.held.push(Held { permit, leaf, claim: Ask { requests: 0, bytes } });
            }
            Step::Retain(bytes) => self.retain(bytes),
            Step::Pass(ms) => self.now += std::time::Duration::from_millis(ms),
            Step::Settle => self.settle(),
            Step::Poll(_) | Step::Abandon(_) | Step::GiveBack(_) | Step::Split(..) => {}
        }
        self.assert_gauges();
    }

    fn try_take(&mut self, leaf: Leaf, bytes: u64) {
        let ahead: Vec<_> = self.live(leaf).map(|queued| queued.bytes).collect();
        let all = Ask { requests: 1 + ahead.len() as u64, bytes: bytes + ahead.iter().sum::<u64>() };
        let expected = ahead.first().and_then(|front| self.saturated(leaf, ask(*front)));
        let expected = expected.or_else(|| self.saturated(leaf, all));
        match self.peers[leaf.peer as usize].try_acquire(leaf.class, ask(bytes), self.now) {
            Ok(permit) => {
                assert_eq!(expected, None);
                self.held.push(Held { permit, leaf: Some(leaf), claim: ask(bytes) });
            }
            Err(Refused::TooLarge(refusal)) => assert!(refusal.asked == bytes && bytes > refusal.limit),
            Err(Refused::Saturated(refusal)) => {
                assert_eq!(Some((refusal.level, refusal.dimension)), expected);
                let asked = if refusal.dimension == Dimension::Bytes { all.bytes } else { all.requests };
                assert_eq!(refusal.asked, asked);
                assert!(refusal.in_use + refusal.asked > refusal.limit, "{refusal}");
            }
        }
    }

    fn poll(&mut self, at: usize) {
        let Queued { leaf, bytes, deadline, polled, .. } = self.queued[at];
        let is_front =
            self.live(leaf).next().is_some_and(|front| std::ptr::eq(front, &raw const self.queued[at]));
        let fits = self.saturated(leaf, ask(bytes)).is_none();
        let all = self.live(leaf).fold((0, 0), |(count, sum), each| (count + 1, sum + each.bytes));
        let fits_beside_all = self.saturated(leaf, Ask { requests: all.0, bytes: all.1 }).is_none();
        let takes = (is_front && fits) || (!polled && fits_beside_all);
        self.queued[at].polled = true;
        match self.queued[at].waiting.poll(self.now) {
            Poll::Pending => assert!(!takes, "it was its turn"),
            Poll::Ready(Ok(permit)) => {
                assert!(takes, "it was not its turn");
                self.queued.remove(at);
                self.held.push(Held { permit, leaf: Some(leaf), claim: ask(bytes) });
            }
            Poll::Ready(Err(error)) => {
                let too_large = matches!(error, AcquireError::TooLarge(_));
                assert!(too_large || deadline.is_expired(self.now), "{error:?}");
                self.queued.remove(at);
            }
        }
    }

    fn retain(&mut self, bytes: u64) {
        let claim = Ask { requests: 0, bytes };
        let fits = self.tree.used().bytes + bytes <= LIMITS.client.bytes;
        match self.tree.retain(bytes) {
            Ok(permit) if fits => self.held.push(Held { permit, leaf: None, claim }),
            result => assert!(!fits && result.is_err(), "{result:?}"),
        }
    }

    /// Polls as tasks would, who are woken or whose timers fire; afterwards nobody sleeps who could take.
    fn settle(&mut self) {
        let due = |each: &Queued<'_>, now| each.waiting.was_woken() || each.deadline.is_expired(now);
        while let Some(at) = self.queued.iter().position(|each| due(each, self.now)) {
            self.poll(at);
        }
        for peer in 0..PEERS {
            for leaf in CLASSES.map(|class| self.leaf(peer, class)) {
                if let Some(front) = self.live(leaf).next() {
                    assert!(self.saturated(leaf, ask(front.bytes)).is_some(), "{leaf:?} sleeps beside room");
                }
            }
        }
    }

    fn assert_gauges(&self) {
        let client = self.used(|leaf| leaf.is_none_or(|leaf| leaf.class != Class::Control));
        assert_eq!(self.tree.used(), client);
        assert!(client.requests <= LIMITS.client.requests && client.bytes <= LIMITS.client.bytes);
        for (at, peer) in self.peers.iter().enumerate() {
            let usage = usage(peer);
            for (level, class, used) in [
                (LIMITS.peer, None, usage.used),
                (LIMITS.control, Some(Class::Control), usage.control),
                (LIMITS.data, Some(Class::Data), usage.data),
                (LIMITS.long_poll, Some(Class::LongPoll), usage.long_poll),
            ] {
                let counts =
                    |leaf: Leaf| class.map_or(leaf.class != Class::Control, |class| class == leaf.class);
                assert_eq!(
                    used,
                    self.used(|leaf| leaf.is_some_and(|leaf| leaf.peer as usize == at && counts(leaf)))
                );
                assert!(used.requests <= level.requests && used.bytes <= level.bytes);
            }
        }
    }

    /// The first level and dimension in which `ask` does not fit.
    fn saturated(&self, leaf: Leaf, ask: Ask) -> Option<(Level, Dimension)> {
        let at_class =
            self.used(|held| held.is_some_and(|held| held.peer == leaf.peer && held.class == leaf.class));
        let shared = |held: Leaf| held.class != Class::Control;
        let at_peer = self.used(|held| held.is_some_and(|held| held.peer == leaf.peer && shared(held)));
        let at_client = self.used(|held| held.is_none_or(shared));
        let class_limit = [LIMITS.control, LIMITS.data, LIMITS.long_poll][leaf.class as usize];
        let levels = [
            (Level::Class(leaf.class), class_limit, at_class),
            (Level::Peer, LIMITS.peer, at_peer),
            (Level::Client, LIMITS.client, at_client),
        ];
        let counted = if leaf.class == Class::Control { &levels[..1] } else { &levels[..] };
        counted.iter().find_map(|(level, limit, used)| {
            if used.requests + ask.requests > limit.requests {
                Some((*level, Dimension::Requests))
            } else {
                (used.bytes + ask.bytes > limit.bytes).then_some((*level, Dimension::Bytes))
            }
        })
    }

    fn used(&self, counts: impl Fn(Option<Leaf>) -> bool) -> Used {
        self.held.iter().filter(|held| counts(held.leaf)).fold(Used::default(), |used, held| Used {
            requests: used.requests + held.claim.requests,
            bytes: used.bytes + held.claim.bytes,
        })
    }

    /// Who waits in `leaf`, in order, from the first on that has time left.
    fn live(&self, leaf: Leaf) -> impl Iterator<Item = &Queued<'a>> {
        let queue = self
            .queued
            .iter()
            .filter(move |each| (each.leaf.peer, each.leaf.class) == (leaf.peer, leaf.class));
        queue.skip_while(|each| each.deadline.is_expired(self.now))
    }

    fn leaf(&self, peer: usize, class: Class) -> Leaf {
        Leaf { peer: peer as u32, class }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_budget_agrees_with_its_model_and_ends_whole(steps in prop::collection::vec(step(), 1..200)) {
        let tree = BudgetTree::new(LIMITS);
        let peers: Vec<_> = (0..PEERS).map(|_| tree.peer()).collect();
        let mut model = Model { tree: &tree, peers: &peers, now: Instant::now(), held: vec![], queued: vec![] };
        for step in steps {
            model.apply(step);
        }
        model.settle();
        while model.held.pop().is_some() {
            model.settle();
        }
        prop_assert!(model.queued.is_empty(), "nobody waits for an idle budget");
        drop(model);
        peers.iter().for_each(|peer| assert_idle(&tree, peer));
        drop(peers);
        prop_assert_eq!(tree.shared.ledger.lock().peer_count(), 0);
    }
}

const PEERS: usize = 3;
const LIMITS: Limits = Limits {
    client: Limit { requests: 5, bytes: 100 },
    peer: Limit { requests: 3, bytes: 60 },
    control: Limit { requests: 1, bytes: 30 },
    data: Limit { requests: 2, bytes: 50 },
    long_poll: Limit { requests: 2, bytes: 50 },
};
