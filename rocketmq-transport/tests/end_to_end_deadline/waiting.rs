//! Before a frame exists: dialling, signing, and the instant by which a request has to have started.

use std::{io, sync::Arc};

use rocketmq_transport::{
    Certainty, Peer, RequestDeadline, Resolver, Resolving, Stage, TcpConnector, Transport, TransportConfig,
    TransportErrorKind,
    test_support::{Dialing, Readiness, ScriptedSigner, settle},
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn an_impatient_caller_leaves_a_shared_dial_to_the_patient_one() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let impatient = client.call(ask(ms(20)));
    let patient = client.call(ask(SECOND));
    let error = impatient.fails().await;
    assert_ended(&error, Stage::Connect, Certainty::NotSent);
    assert_eq!(error.stage_clock().spent(Stage::Connect), Some(ms(20)));
    assert_eq!((error.generation(), error.opaque()), (None, None));

    network.set_dialing(Dialing::Connect);
    let mut peer = network.accept().await;
    let request = peer.expect().await;
    peer.respond(&request).await;
    assert_eq!(patient.succeeds().await.clock.spent(Stage::Connect), Some(ms(20)));
    assert_eq!((network.dials(), peer.frames_seen()), (1, 1));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn fifty_first_calls_share_one_dial_and_each_keeps_its_own_deadline() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let calls: Vec<_> = (1..=50).map(|nth| (nth, client.call(ask(ms(50 * nth))))).collect();
    settle().await;
    pass(ms(310)).await;
    network.set_dialing(Dialing::Connect);
    let mut peer = network.accept().await;
    for _ in 7..=50 {
        let request = peer.expect().await;
        peer.respond(&request).await;
    }
    for (nth, call) in calls {
        match call.ended().await {
            Ok(_) => assert!(nth > 6),
            Err(error) => {
                assert!(nth <= 6);
                assert_ended(&error, Stage::Connect, Certainty::NotSent);
            }
        }
    }
    assert_eq!((network.dials(), peer.frames_seen()), (1, 44));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn every_caller_of_a_dial_that_fails_gets_its_cause() {
    let (client, network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let calls: Vec<_> = (0..5).map(|_| client.call(ask(SECOND))).collect();
    settle().await;
    network.set_dialing(Dialing::Refuse(io::ErrorKind::HostUnreachable));
    for call in calls {
        let error = call.fails().await;
        assert_ended(&error, Stage::Connect, Certainty::NotSent);
        let TransportErrorKind::ConnectFailed(cause) = error.kind() else { panic!("{error}") };
        assert_eq!(cause.kind(), io::ErrorKind::HostUnreachable);
    }
    assert_eq!(network.dials(), 1);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_panics_fails_its_callers_and_frees_its_place() {
    let (client, mut network) = scene(ROOMY);
    network.set_dialing(Dialing::Panic);
    let error = client.call(ask(SECOND)).fails().await;
    assert_ended(&error, Stage::Connect, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::ConnectFailed(_)));

    network.set_dialing(Dialing::Connect);
    pass(SECOND).await;
    connected(&client, &mut network).await;
    assert_eq!(network.dials(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_never_ends_is_given_up_at_its_own_limit() {
    let (client, network) = scene_with(config(|config| config.connect_timeout = ms(150)), ROOMY);
    network.set_dialing(Dialing::Hold);
    let error = client.call(ask(SECOND)).fails().await;
    assert_ended(&error, Stage::Connect, Certainty::NotSent);
    let TransportErrorKind::ConnectFailed(cause) = error.kind() else { panic!("{error}") };
    assert_eq!((cause.kind(), error.elapsed()), (io::ErrorKind::TimedOut, ms(150)));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_signer_that_outlasts_the_budget_ends_the_request_before_anything_is_sent() {
    let signer = Arc::new(ScriptedSigner::new(Readiness::Hold));
    let (client, mut network) = scene_signed(Arc::clone(&signer) as _, TransportConfig::default());
    let call = client.call(ask(ms(100)));
    let mut peer = network.accept().await;
    let error = call.fails().await;
    assert_ended(&error, Stage::Signing, Certainty::NotSent);
    assert_eq!(error.stage_clock().spent(Stage::Signing), Some(ms(100)));
    assert!(error.generation().is_some() && error.opaque().is_none());
    peer.expect_nothing().await;
    assert_idle(&client);

    let call = client.call(ask(SECOND));
    settle().await;
    signer.set(Readiness::Ready);
    let request = peer.expect().await;
    assert_eq!(request.field("Signature").as_deref(), Some("scripted"));
    peer.respond(&request).await;
    call.succeeds().await;
    assert_eq!((signer.asked(), network.dials()), (2, 1));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_signer_that_fails_fails_the_request_alone() {
    let signer = Arc::new(ScriptedSigner::new(Readiness::Fail));
    let (client, mut network) = scene_signed(Arc::clone(&signer) as _, TransportConfig::default());
    let error = client.call(ask(SECOND)).fails().await;
    assert_ended(&error, Stage::Signing, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::SigningFailed(_)));
    network.accept().await.expect_nothing().await;
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_not_started_by_its_instant_never_does() {
    let (client, mut network) = scene(ROOMY);
    network.set_allowance(0);
    let call = client.call(ask(SECOND).start_by(ms(300)));
    let mut peer = network.accept().await;
    let error = call.fails().await;
    assert_ended(&error, Stage::BeforeWrite, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::NotStarted));
    assert_eq!(error.elapsed(), ms(300));
    peer.accept_all();
    peer.expect_nothing().await;
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn the_instant_to_start_by_holds_while_dialling_and_while_waiting_for_room() {
    let settings = config(|config| config.data_limit.requests = 1);
    let (client, network) = scene_with(settings, ROOMY);
    network.set_dialing(Dialing::Hold);
    let dialling = client.call(ask(SECOND).start_by(ms(200)));
    let waiting = client.call(ask(SECOND).start_by(ms(100)).waiting());
    let error = waiting.fails().await;
    assert_ended(&error, Stage::Admission, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::NotStarted));
    let error = dialling.fails().await;
    assert_ended(&error, Stage::Connect, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::NotStarted));
    assert_eq!(error.elapsed(), ms(200));
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_has_started_in_time_goes_on_to_its_deadline() {
    let (client, mut network) = scene(ROOMY);
    network.set_allowance(1);
    let writing = client.call(ask(SECOND).start_by(ms(300)));
    let mut peer = network.accept().await;
    pass(ms(400)).await;
    assert!(writing.is_pending().await);
    peer.accept_all();
    let request = peer.expect().await;
    peer.respond(&request).await;
    writing.succeeds().await;

    let waiting = client.call(ask(SECOND).start_by(ms(300)));
    peer.expect().await;
    let error = waiting.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    assert_eq!(error.elapsed(), SECOND);
    assert_only_tombstones(&client, 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_by_instant_behind_the_deadline_says_nothing() {
    let (client, network) = scene(ROOMY);
    network.set_dialing(Dialing::Hold);
    let error = client.call(ask(ms(100)).start_by(SECOND)).fails().await;
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    let mut over = ask(SECOND).start_by(ms(0));
    over.options.deadline = RequestDeadline::after(SECOND);
    let error = client.call(over).fails().await;
    assert!(matches!(error.kind(), TransportErrorKind::NotStarted));
    assert_ended(&error, Stage::Admission, Certainty::NotSent);
    assert_idle(&client);
}

/// Knows one host, and never answers for another.
#[derive(Debug)]
struct OneName;

impl Resolver for OneName {
    fn resolve<'a>(&'a self, peer: &'a Peer) -> Resolving<'a> {
        Box::pin(async move {
            match peer.host() {
                "stuck.test" => std::future::pending().await,
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_never_resolved_costs_its_own_call_its_budget_and_no_other_call_anything() {
    let connector = TcpConnector::with_resolver(Arc::new(OneName));
    let builder = Transport::builder(TransportConfig::default()).connector(Arc::new(connector));
    let client = Client::real(builder.build().unwrap());
    let stuck = client.call(ask(ms(200)).to("stuck.test:10911".parse().unwrap()));
    settle().await;
    pass(ms(50)).await;
    let other = client.call(ask(ms(200)).to("unknown.test:10911".parse().unwrap())).fails().await;
    assert_ended(&other, Stage::Connect, Certainty::NotSent);
    assert!(matches!(other.kind(), TransportErrorKind::ConnectFailed(_)), "{other}");
    assert_eq!(other.elapsed(), ms(0));

    let error = stuck.fails().await;
    assert_ended(&error, Stage::Connect, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired), "{error}");
    assert_eq!(error.elapsed(), ms(200));
    assert_idle(&client);
}
