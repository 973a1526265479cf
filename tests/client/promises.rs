//! What holds whatever the brokers do.

use std::time::Duration;

use proptest::prelude::*;
use rocketmq_client::{Attempt, Duplicates};
use rocketmq_transport::Certainty;
use tokio::time::sleep;

use crate::network::{MS, Network, Reply, SEND, Scripted, answer, message};

/// A route with one queue each at the brokers a (`a:1`), b (`b:1`) and c (`c:1`).
const THREE_BROKERS: &str = r#"{"brokerDatas":[
    {"brokerName":"a","brokerAddrs":{"0":"a:1"}},
    {"brokerName":"b","brokerAddrs":{"0":"b:1"}},
    {"brokerName":"c","brokerAddrs":{"0":"c:1"}}],
    "queueDatas":[
    {"brokerName":"a","perm":6,"writeQueueNums":1},
    {"brokerName":"b","perm":6,"writeQueueNums":1},
    {"brokerName":"c","perm":6,"writeQueueNums":1}]}"#;

/// What a broker is like.
#[derive(Clone, Debug)]
enum Broker {
    Refuses,
    Blackhole,
    /// Does these in turn, and the last one for ever.
    Does(Vec<Reply>),
}

fn reply() -> impl Strategy<Value = Reply> {
    let wait = prop_oneof![Just(0u64), 1..2_000u64].prop_map(Duration::from_millis);
    let answers = prop_oneof![
        Just((2, "busy")),
        Just((13, "illegal")),
        Just((16, "sending message is forbidden")),
        Just((1, "went wrong")),
        Just((777, "who knows")),
    ];
    prop_oneof![
        wait.clone().prop_map(|wait| Reply::Stored(wait, 0)),
        (wait, answers).prop_map(|(wait, (code, remark))| Reply::Answer(wait, code, remark)),
        Just(Reply::Silence),
        Just(Reply::Cut),
        Just(Reply::Bare),
        Just(answer(14, "shutting down")),
    ]
}

fn broker() -> impl Strategy<Value = Broker> {
    prop_oneof![
        1 => Just(Broker::Refuses),
        1 => Just(Broker::Blackhole),
        4 => prop::collection::vec(reply(), 1..4).prop_map(Broker::Does),
    ]
}

fn build(network: &Network, address: &str, broker: &Broker) -> Option<Scripted> {
    match broker {
        Broker::Refuses => None,
        Broker::Blackhole => {
            network.blackhole(address);
            None
        }
        Broker::Does(replies) => {
            let replies = replies.clone();
            Some(network.peer(address, move |_, number| replies[number.min(replies.len() - 1)]))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_send_keeps_its_budget_its_attempts_and_its_word(
        brokers in [broker(), broker(), broker()],
        budget in 1..4_000u64,
        attempts in 1..6u32,
        forbid in any::<bool>(),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let network = Network::default();
            network.name_server(THREE_BROKERS);
            let peers: Vec<_> = ["a:1", "b:1", "c:1"]
                .iter()
                .zip(&brokers)
                .filter_map(|(address, broker)| build(&network, address, broker))
                .collect();
            let duplicates = if forbid { Duplicates::Forbid } else { Duplicates::Allow };
            let budget = Duration::from_millis(budget);
            let builder = network.producer().timeout(budget).attempts(attempts).duplicates(duplicates);
            let producer = builder.build().unwrap();
            let outcome = producer.send(message()).await;
            let sent = || peers.iter().map(|peer| peer.count(SEND)).sum::<usize>();
            let on_the_wire = sent();

            let (listed, clock, elapsed) = match &outcome {
                Ok(receipt) => (receipt.attempts(), receipt.stage_clock(), receipt.elapsed()),
                Err(error) => (error.attempts(), error.stage_clock(), error.elapsed()),
            };
            prop_assert!(elapsed <= budget + MS, "{elapsed:?} of {budget:?}");
            prop_assert!(on_the_wire <= attempts as usize, "{on_the_wire} of {attempts}");
            let stages: Duration = clock.stages().map(|(_, spent)| spent).sum();
            prop_assert_eq!(stages + clock.paused().unwrap_or_default(), elapsed);
            let doubtful = listed.iter().filter(|attempt| attempt.certainty() == Some(Certainty::Unknown));
            if forbid {
                prop_assert!(doubtful.count() <= 1 && (outcome.is_err() || listed.iter().all(known)));
            }
            if let Err(error) = &outcome {
                let worst = match on_the_wire {
                    0 => [Certainty::NotSent].as_slice(),
                    _ => &[Certainty::NotSent, Certainty::Refused, Certainty::Unknown],
                };
                prop_assert!(worst.contains(&error.certainty()), "{error}");
                let certainty = error.certainty();
                prop_assert_eq!(certainty == Certainty::NotSent, on_the_wire == 0, "{}", error);
            }
            // Nothing of it goes on, and nothing of it stays.
            sleep(10_000 * MS).await;
            prop_assert_eq!(sent(), on_the_wire);
            prop_assert_eq!(producer.usage().client, Default::default());
            Ok(())
        })?;
    }
}

/// Whether an attempt leaves no doubt.
fn known(attempt: &Attempt) -> bool {
    attempt.certainty() != Some(Certainty::Unknown)
}
