//! A future that is dropped: the same end as a deadline in the same stage, for every stage.

use std::sync::Arc;

use rocketmq_transport::{
    Certainty, Completed, Stage, TransportConfig,
    test_support::{Dialing, Network, Readiness, ScriptedPeer, ScriptedSigner, Then, settle},
};

use crate::support::*;

/// What is around a request that is frozen in a stage until something ends it.
struct Frozen {
    client: Client,
    network: Network,
    peer: Option<ScriptedPeer>,
    /// What takes the only place, where the request waits for it.
    holder: Option<InFlight<Completed>>,
}

async fn frozen(stage: Stage) -> (Frozen, InFlight<Completed>) {
    let (client, mut network) = match stage {
        Stage::Signing => {
            scene_signed(Arc::new(ScriptedSigner::new(Readiness::Hold)), TransportConfig::default())
        }
        Stage::Admission => scene_with(config(|config| config.data_limit.requests = 1), ROOMY),
        _ => scene_with(TransportConfig::default(), ROOMY),
    };
    match stage {
        Stage::Connect => network.set_dialing(Dialing::Hold),
        Stage::BeforeWrite => network.set_allowance(0),
        Stage::Writing => network.set_allowance(10),
        Stage::Route | Stage::Admission | Stage::Signing | Stage::AwaitingResponse => {}
    }
    let holder = (stage == Stage::Admission).then(|| client.call(ask(60 * SECOND).code(1)));
    settle().await;
    let call = client.call(ask(ms(500)).waiting());
    settle().await;
    let peer = network.try_accept();
    (Frozen { client, network, peer, holder }, call)
}

impl Frozen {
    /// Nothing is in use but what the holder has, and `tombstones`; then the peer reads on, and has `frames` of the
    /// request.
    async fn has_left(mut self, tombstones: u64, frames: u64) {
        let usage = self.client.usage();
        let held = u64::from(self.holder.is_some());
        assert_eq!((usage.data.requests, usage.pending, usage.queued), (held, held, 0));
        assert_eq!(usage.tombstones, tombstones);
        self.network.set_dialing(Dialing::Connect);
        if let Some(peer) = &mut self.peer {
            peer.accept_all();
            if let Some(holder) = self.holder {
                let request = peer.expect_code(1).await;
                peer.respond(&request).await;
                holder.succeeds().await;
            }
            for _ in 0..frames {
                peer.expect_code(SEND).await;
            }
            peer.expect_nothing().await;
        }
        assert_only_tombstones(&self.client, tombstones);
        // The peer is silent, so the keeper retires the connection; what is remembered goes with the window.
        pass(61 * SECOND).await;
        assert_idle(&self.client);
    }
}

const STAGES: [(Stage, Certainty, u64, u64); 6] = [
    (Stage::Admission, Certainty::NotSent, 0, 0),
    (Stage::Connect, Certainty::NotSent, 0, 0),
    (Stage::Signing, Certainty::NotSent, 0, 0),
    (Stage::BeforeWrite, Certainty::NotSent, 0, 0),
    (Stage::Writing, Certainty::Unknown, 1, 1),
    (Stage::AwaitingResponse, Certainty::Unknown, 1, 1),
];

#[tokio::test(start_paused = true)]
async fn a_deadline_in_any_stage_names_it_and_gives_everything_back() {
    for (stage, certainty, tombstones, frames) in STAGES {
        let (frozen, call) = frozen(stage).await;
        let error = call.fails().await;
        assert_ended(&error, stage, certainty);
        assert_eq!(error.stage_clock().spent(stage), Some(ms(500)));
        frozen.has_left(tombstones, frames).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_drop_in_any_stage_leaves_what_a_deadline_there_leaves() {
    for (stage, _, tombstones, frames) in STAGES {
        let (frozen, call) = frozen(stage).await;
        call.dropped().await;
        frozen.has_left(tombstones, frames).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_lost_in_any_stage_ends_the_request_with_the_certainty_of_its_bytes() {
    let stages = [
        (Stage::BeforeWrite, Certainty::NotSent),
        (Stage::Writing, Certainty::NotSent),
        (Stage::AwaitingResponse, Certainty::Unknown),
    ];
    for (stage, certainty) in stages {
        let (Frozen { client, peer, .. }, call) = frozen(stage).await;
        peer.unwrap().cut();
        assert_ended(&call.fails().await, stage, certainty);
        assert_idle(&client);
    }
}

#[tokio::test(start_paused = true)]
async fn a_future_dropped_after_the_peer_has_read_ten_bytes_leaves_a_whole_frame_and_a_late_answer() {
    let (client, mut network) = scene(10);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(SECOND).body(vec![5; 100]));
    settle().await;
    let torn_off = peer.read_bytes(10).await;
    call.dropped().await;
    assert_eq!(client.usage().tombstones, 1);
    let next = client.call(ask(SECOND).code(2));

    let mut frame = torn_off.to_vec();
    let rest = ask(SECOND).body(vec![5; 100]).frame_len(1) as usize - 10;
    frame.extend(peer.read_bytes(rest).await);
    assert!(frame.ends_with(&[5; 100]));
    pass(ms(40)).await;
    peer.respond_to(rocketmq_transport::Opaque(1)).await;
    let request = peer.expect_code(2).await;
    peer.respond(&request).await;
    next.succeeds().await;
    assert_eq!((client.usage().late, client.usage().unsolicited, network.dials()), (1, 0, 1));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_caller_never_ends_the_dial_it_began() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let first = client.call(ask(SECOND));
    settle().await;
    let second = client.call(ask(SECOND));
    settle().await;
    first.dropped().await;
    network.set_dialing(Dialing::Connect);
    let mut peer = network.accept().await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    second.succeeds().await;
    assert_eq!(network.dials(), 1);
    peer.accept_only(0, Then::Wait);
    assert_idle(&client);
}
