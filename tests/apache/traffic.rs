//! Steady traffic through trouble, and what the store says of each send afterwards.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering::Relaxed},
    },
};

use rocketmq_client::{Attempt, Message, Producer, Resolution, SendError, SendReceipt, SendStatus};
use rocketmq_tests::apache::{Dumped, wait_for};
use rocketmq_transport::Certainty;
use tokio::task::JoinSet;

use crate::setup::BUDGET;

/// What became of one send.
pub(crate) type Outcome = Result<SendReceipt, SendError>;

/// Numbered messages on their way, as many at a time as there are senders, until it is ended.
pub(crate) struct Traffic {
    shared: Arc<Shared>,
    senders: JoinSet<Vec<(i32, Outcome)>>,
}

#[derive(Default)]
struct Shared {
    next: AtomicI32,
    stored: AtomicUsize,
    unknown: AtomicUsize,
    ended: AtomicBool,
}

impl Traffic {
    /// Starts to send to `topic`.
    pub(crate) fn start(producer: &Producer, topic: &'static str) -> Self {
        let shared = Arc::new(Shared::default());
        let senders = (0..SENDERS).map(|_| send_all(producer.clone(), topic, shared.clone())).collect();
        Self { shared, senders }
    }

    /// Waits until `more` sends than now have succeeded. It blocks.
    pub(crate) fn wait_for_stored(&self, more: usize) {
        let aim = self.shared.stored.load(Relaxed) + more;
        let look = || match self.shared.stored.load(Relaxed) {
            stored if stored >= aim => Ok(()),
            stored => Err(format!("{stored} of {aim}")),
        };
        wait_for("sends that succeed", 2 * BUDGET, look).unwrap_or_else(|error| panic!("{error}"));
    }

    /// How many sends have ended as `Unknown` so far.
    pub(crate) fn unknown(&self) -> usize {
        self.shared.unknown.load(Relaxed)
    }

    /// Waits for the sends on their way, and returns what became of each one by its number, which its message
    /// carries as flag.
    pub(crate) async fn end(self) -> HashMap<i32, Outcome> {
        self.shared.ended.store(true, Relaxed);
        self.senders.join_all().await.into_iter().flatten().collect()
    }
}

async fn send_all(producer: Producer, topic: &'static str, shared: Arc<Shared>) -> Vec<(i32, Outcome)> {
    let mut outcomes = Vec::new();
    while !shared.ended.load(Relaxed) {
        let number = shared.next.fetch_add(1, Relaxed);
        let message = Message::new(topic, vec![b'x'; size(number)]).with_flag(number);
        let outcome = producer.send(message).await;
        match &outcome {
            Ok(_) => shared.stored.fetch_add(1, Relaxed),
            Err(error) => shared.unknown.fetch_add(doubts(error.attempts()).min(1), Relaxed),
        };
        outcomes.push((number, outcome));
    }
    outcomes
}

/// How many sends ended in which way, and what the store says of them.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Acknowledged, and in the store where the receipt says.
    pub(crate) stored: usize,
    /// `Unknown`, and in the store.
    pub(crate) unknown_stored: usize,
    /// `Unknown`, and not in the store.
    pub(crate) unknown_lost: usize,
    /// `NotSent`, and not in the store.
    pub(crate) not_sent: usize,
    /// Records in the store beyond the first of their message.
    pub(crate) repeated: usize,
}

/// Compares what each send was told with what the store holds, and panics at the first lie: every message that was
/// acknowledged is there as reported, none that was not sent is, and none is there more often than its attempts
/// can have stored it.
pub(crate) fn settle(outcomes: &HashMap<i32, Outcome>, store: &[Dumped]) -> Settled {
    let mut records: HashMap<i32, Vec<&Dumped>> = HashMap::new();
    let mut owners = HashMap::new();
    for record in store {
        records.entry(record.flag).or_default().push(record);
        let owner = *owners.entry(&record.msg_id).or_insert(record.flag);
        assert_eq!(owner, record.flag, "two messages have one unique key: {record:?}");
        assert_eq!(record.body_len, size(record.flag), "{record:?}");
    }
    let mut settled = Settled::default();
    for (number, outcome) in outcomes {
        let records = records.remove(number).unwrap_or_default();
        settled.repeated += records.len().saturating_sub(1);
        match outcome {
            Ok(receipt) => {
                assert_stored(receipt, &records);
                settled.stored += 1;
            }
            Err(error) => match (error.certainty(), records.len()) {
                (Certainty::Unknown, 0) => settled.unknown_lost += 1,
                (Certainty::Unknown, times) => {
                    assert!(records.iter().all(|record| record.msg_id == error.message_id()), "{error}");
                    assert!(times <= doubts(error.attempts()), "stored {times} times: {error}");
                    settled.unknown_stored += 1;
                }
                (Certainty::NotSent, 0) => settled.not_sent += 1,
                (certainty, times) => panic!("{certainty}, and stored {times} times: {error}"),
            },
        }
    }
    assert!(records.is_empty(), "nothing is stored that was not sent: {records:?}");
    settled
}

/// Asks the brokers for every message whose send is unknown, and panics where they say other than the store.
pub(crate) async fn resolve(producer: &Producer, outcomes: &HashMap<i32, Outcome>, store: &[Dumped]) {
    let errors = outcomes.values().filter_map(|outcome| outcome.as_ref().err());
    let unknown = errors.filter(|error| error.certainty() == Certainty::Unknown).cloned();
    let ask = |error: SendError| {
        let producer = producer.clone();
        async move { (producer.resolve_unknown(&error, BUDGET).await, error) }
    };
    for (resolution, error) in unknown.map(ask).collect::<JoinSet<_>>().join_all().await {
        let mut copies = store.iter().filter(|record| record.msg_id == error.message_id());
        match resolution {
            Ok(Resolution::Stored(copy)) => {
                let found = (copy.place().broker(), copy.place().queue_offset());
                let same = |record: &Dumped| (&*record.broker, record.queue_offset) == found;
                assert!(copies.any(same), "{copy:?} is not in the store: {error}");
            }
            Ok(Resolution::NotFound { .. }) => assert_eq!(copies.next(), None, "{error}"),
            other => panic!("{other:?} for {error}"),
        }
    }
}

fn assert_stored(receipt: &SendReceipt, records: &[&Dumped]) {
    let queue = i32::try_from(receipt.queue().id()).expect("queues are few");
    let reported = (receipt.broker(), queue, receipt.queue_offset(), receipt.message_id());
    let same = |record: &&&Dumped| {
        (&*record.broker, record.queue_id, record.queue_offset, &*record.msg_id) == reported
    };
    assert_eq!(receipt.status(), SendStatus::Stored);
    assert_eq!(records.iter().filter(same).count(), 1, "{receipt:?} is not among {records:?}");
    assert!(records.iter().all(|record| record.msg_id == receipt.message_id()), "{receipt:?}: {records:?}");
    assert!(records.len() <= 1 + doubts(receipt.attempts()), "{receipt:?}: {records:?}");
}

/// The length of the body of message `number`: short and long ones, so that a broker which ends has some written,
/// some read and some stored.
fn size(number: i32) -> usize {
    let number = usize::try_from(number).expect("they are counted from 0");
    1 + number * 7919 % 30_000
}

/// How many of the attempts may have stored the message without saying so.
fn doubts(attempts: &[Attempt]) -> usize {
    attempts.iter().filter(|attempt| attempt.certainty() == Some(Certainty::Unknown)).count()
}

const SENDERS: usize = 64;
