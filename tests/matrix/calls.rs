//! Rows in which a call of the transport is frozen in its stage and hit by its fault.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_transport::{
    Admission, CallOptions, Certainty, Code, Completed, Peer, Request, RequestDeadline, Stage, Transport,
    TransportConfig, TransportError,
    test_support::{
        Dialing, LogLine, LogSink, Network, Readiness, Rest, ScriptedPeer, ScriptedSigner, Then, settle,
    },
};
use tokio::{
    task::JoinHandle,
    time::{Instant, advance},
};

use crate::{
    check::check_call_line,
    row::{By, Expect, Failure, Fault, Remembered, Row},
    table::rows,
};

/// What became of the call of a row.
struct Outcome {
    /// `None` where its future was dropped.
    ended: Option<Result<Completed, TransportError>>,
    /// Its lines in the log.
    lines: Vec<LogLine>,
}

/// What is around a call that is frozen in the stage of a row.
struct Scene {
    transport: Transport,
    network: Network,
    signer: Arc<ScriptedSigner>,
    /// The other end of its connection, where it has one.
    peer: Option<ScriptedPeer>,
    /// The call that has the only place, where it waits for that.
    holder: Option<Call>,
}

type Call = JoinHandle<Result<Completed, TransportError>>;

#[tokio::test(start_paused = true)]
async fn every_row_of_a_call_ends_as_the_table_says() {
    for row in rows().iter().filter(|row| row.by == By::Call) {
        let outcome = run(row).await;
        match (&row.expect, outcome.ended) {
            (Expect::Fails(failure), Some(Err(error))) => {
                check_error(row, failure, &error);
                let [line] = &outcome.lines[..] else { panic!("{}: {:?}", row.name(), outcome.lines) };
                check_call_line(row, failure, &error, line);
            }
            (Expect::Abandoned { .. }, None) => assert_eq!(outcome.lines.len(), 0, "{}", row.name()),
            (Expect::GoesOn(_), Some(Ok(_))) => assert_eq!(outcome.lines.len(), 0, "{}", row.name()),
            (expect, ended) => panic!("{}: {expect:?}, not {ended:?}", row.name()),
        }
    }
}

/// Carries a row out: to its end, and until nothing is left of it.
async fn run(row: &Row) -> Outcome {
    let log = LogSink::install();
    let (mut scene, call) = Scene::frozen(row).await;
    scene.strike(row).await;
    let ended = match row.expect {
        Expect::Abandoned { .. } => {
            call.abort();
            assert!(call.await.unwrap_err().is_cancelled(), "{}", row.name());
            None
        }
        _ => Some(call.await.unwrap()),
    };
    scene.leaves_nothing(row).await;
    let about_it = |line: &LogLine| {
        line.target == "rocketmq::request" && line.fields.get("request").is_some_and(|code| code == "310")
    };
    Outcome { ended, lines: log.lines().into_iter().filter(about_it).collect() }
}

impl Scene {
    async fn frozen(row: &Row) -> (Self, Call) {
        let network = Network::new(1 << 20);
        let signer = Arc::new(ScriptedSigner::new(Readiness::Ready));
        let transport = Transport::builder(config(row)).connector(network.connector());
        let transport = transport.signer(Arc::clone(&signer) as _).build().unwrap();
        let mut scene = Self { transport, network, signer, peer: None, holder: None };
        if row.stage != Stage::Connect {
            scene.peer = Some(scene.connected().await);
        }
        scene.freeze(row).await;
        let call = scene.begin(row);
        settle().await;
        if row.stage == Stage::AwaitingResponse {
            scene.peer().expect_code(SEND).await;
        }
        (scene, call)
    }

    /// The peer of a connection that has answered one request.
    async fn connected(&mut self) -> ScriptedPeer {
        let first = self.other_call();
        let mut peer = self.network.accept().await;
        let request = peer.expect_code(OTHER).await;
        advance(Duration::from_millis(1)).await;
        peer.respond(&request).await;
        first.await.unwrap().unwrap();
        peer
    }

    /// Makes the next call stop in the stage of `row`.
    async fn freeze(&mut self, row: &Row) {
        match (row.stage, row.fault) {
            (_, Fault::Unfit) => {}
            (Stage::Admission, _) => {
                self.holder = Some(self.other_call());
                settle().await;
            }
            (Stage::Connect, Fault::Lost) => {
                let lost = self.other_call();
                self.network.accept().await.cut();
                assert!(lost.await.unwrap().is_err());
            }
            (Stage::Connect, _) => self.network.set_dialing(Dialing::Hold),
            (Stage::Signing, _) => self.signer.set(Readiness::Hold),
            (Stage::BeforeWrite, _) => self.peer().accept_only(0, Then::Wait),
            (Stage::Writing, _) => self.peer().accept_only(10, Then::Wait),
            (Stage::Route | Stage::AwaitingResponse, _) => {}
        }
    }

    /// Begins the call of `row`.
    fn begin(&self, row: &Row) -> Call {
        let mut options = CallOptions::from(RequestDeadline::after(row.budget()));
        if row.fault == Fault::StartBy {
            options.start_by = Some(Instant::now() + Duration::from_millis(500));
        }
        if row.fault != Fault::Saturation {
            options.admission = Admission::Wait;
        }
        let body = vec![0; if row.fault == Fault::Unfit { 10_000 } else { 0 }];
        self.spawn(SEND, body.into(), options)
    }

    fn other_call(&self) -> Call {
        self.spawn(OTHER, Bytes::new(), RequestDeadline::never().into())
    }

    fn spawn(&self, code: i32, body: Bytes, options: CallOptions) -> Call {
        let transport = self.transport.clone();
        tokio::spawn(async move {
            let request = Request { code: Code(code), header: &(), body };
            transport.call(&broker(), request, options).await
        })
    }

    /// Lets the fault of `row` happen, 200 ms after the call was frozen where it is an event.
    async fn strike(&mut self, row: &Row) {
        if matches!(row.fault, Fault::Unfit | Fault::StartBy | Fault::Silent) {
            return;
        }
        if (row.stage, row.fault) == (Stage::Connect, Fault::Lost)
            || (row.stage, row.fault) == (Stage::Admission, Fault::Saturation)
        {
            return;
        }
        advance(Duration::from_millis(200)).await;
        match (row.fault, row.stage) {
            (Fault::Deadline, Stage::AwaitingResponse) => {
                let neighbour = self.other_call();
                let request = self.peer().expect_code(OTHER).await;
                self.peer().respond(&request).await;
                neighbour.await.unwrap().unwrap();
            }
            (Fault::Lost, stage) => {
                self.peer.take().expect("a connection that can be lost").cut();
                if stage == Stage::Signing {
                    settle().await;
                    self.signer.set(Readiness::Ready);
                    let mut next = self.network.accept().await;
                    let request = next.expect_code(SEND).await;
                    next.respond(&request).await;
                    self.peer = Some(next);
                }
            }
            (Fault::Refuses, Stage::Connect) => {
                self.network.set_dialing(Dialing::Refuse(io::ErrorKind::ConnectionRefused));
            }
            (Fault::Saturation, Stage::Connect) => {
                self.network.set_dialing(Dialing::Refuse(io::ErrorKind::AddrNotAvailable));
            }
            (Fault::Refuses, Stage::Signing) => self.signer.set(Readiness::Fail),
            (Fault::Shutdown, _) => {
                let transport = self.transport.clone();
                tokio::spawn(async move { transport.close(Duration::from_millis(100)).await });
            }
            _ => {}
        }
    }

    /// Checks that the peer has what it should have of the call, and that in the end every gauge is zero.
    async fn leaves_nothing(mut self, row: &Row) {
        settle().await;
        let closed = row.fault == Fault::Shutdown
            || row.fault == Fault::Silent && matches!(row.stage, Stage::BeforeWrite | Stage::Writing);
        let before = u64::from(row.stage == Stage::AwaitingResponse);
        if let Some(mut peer) = self.peer.take() {
            let seen = if closed { whole(peer.rest().await) } else { self.read_on(row, &mut peer).await };
            assert_eq!(before + seen, frames(row), "{}: whole frames that the peer has", row.name());
            self.peer = Some(peer);
        }
        settle().await;
        let mut usage = self.transport.usage();
        let remembered: u64 = usage.peers.iter_mut().map(|peer| std::mem::take(&mut peer.tombstones)).sum();
        assert!(usage.is_idle(), "{}: {usage:?}", row.name());
        assert_eq!(remembered, u64::from(is_remembered(row)), "{}", row.name());
        advance(Duration::from_secs(61)).await;
        settle().await;
        assert!(self.transport.usage().is_idle(), "{}: {:?}", row.name(), self.transport.usage());
    }

    /// Lets the peer read on, and answer the call that has the only place. How many frames of the row it reads.
    async fn read_on(&mut self, row: &Row, peer: &mut ScriptedPeer) -> u64 {
        self.signer.set(Readiness::Ready);
        peer.accept_all();
        if let Some(holder) = self.holder.take() {
            let request = peer.expect_code(OTHER).await;
            peer.respond(&request).await;
            holder.await.unwrap().unwrap();
        }
        let mut seen = u64::from(matches!(row.expect, Expect::GoesOn(_)));
        if row.stage == Stage::Writing {
            peer.expect_code(SEND).await;
            seen += 1;
        }
        peer.expect_nothing().await;
        seen
    }

    fn peer(&mut self) -> &mut ScriptedPeer {
        self.peer.as_mut().expect("a row behind Connect has a connection")
    }
}

fn check_error(row: &Row, failure: &Failure, error: &TransportError) {
    assert_eq!(
        (error.stage(), error.certainty(), error.code_id()),
        (row.stage, failure.certainty, failure.code),
        "{}: {error}",
        row.name()
    );
    let spent = Duration::from_millis(failure.ms);
    assert_eq!((error.elapsed(), error.budget()), (spent, row.budget()), "{}", row.name());
    assert_eq!(error.stage_clock().spent(row.stage), Some(spent), "{}", row.name());
    // An answer can come late only where the connection outlives the request.
    let deadline_ended_it = failure.code == "RMQ-T01";
    let may_come = failure.certainty == Certainty::Unknown && deadline_ended_it;
    assert_eq!(error.late_answer().is_some(), may_come, "{}", row.name());
    let heard = (row.stage == Stage::AwaitingResponse).then_some(row.fault == Fault::Deadline);
    assert_eq!(error.heard_since_written(), heard, "{}", row.name());
}

fn config(row: &Row) -> TransportConfig {
    let mut config = TransportConfig::default();
    match (row.stage, row.fault) {
        (Stage::Admission, Fault::Unfit) => config.data_limit.bytes = 4_096,
        (Stage::BeforeWrite, Fault::Unfit) => config.max_frame_bytes = 4_096,
        (Stage::Admission, _) => config.data_limit.requests = 1,
        _ => {}
    }
    config
}

/// How many whole frames of the call the peer has in the end.
fn frames(row: &Row) -> u64 {
    match &row.expect {
        Expect::Fails(failure) => u64::from(failure.certainty == Certainty::Unknown),
        Expect::Abandoned { frames } => *frames,
        Expect::GoesOn(_) => 1,
        Expect::CannotHappen(because) => panic!("it cannot happen: {because}"),
    }
}

/// Whether a tombstone stays.
fn is_remembered(row: &Row) -> bool {
    match &row.expect {
        Expect::Fails(failure) => failure.remembered == Remembered::Yes,
        Expect::Abandoned { frames } => *frames > 0,
        Expect::GoesOn(_) | Expect::CannotHappen(_) => false,
    }
}

/// The whole frames of the call among what a closed connection still held.
fn whole(rest: Rest) -> u64 {
    rest.frames.iter().filter(|frame| frame.code() == Code(SEND)).count() as u64
}

fn broker() -> Peer {
    "broker-a:10911".parse().unwrap()
}

/// The code of the call of a row.
const SEND: i32 = 310;
/// The code of every other call.
const OTHER: i32 = 34;
