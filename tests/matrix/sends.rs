//! A producer, a broker that is scripted to the byte, a healthy one beside it, and a name server.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_client::{Duplicates, Message, MessageQueue, Producer, SendError, SendOptions, SendReceipt};
use rocketmq_transport::{
    Acceptance, Code, Command, Connecting, Connector, EncodeOptions, Fields, FrameLimits, Header, Opaque,
    Peer, RequestDeadline, Response, ServerConfig, Stage, Stream, TransportConfig, serve,
    test_support::{Dialing, Network, Readiness, ScriptedPeer, ScriptedSigner, Then, settle},
};
use tokio::{
    io::AsyncReadExt,
    task::JoinHandle,
    time::{advance, sleep},
};

use crate::row::{By, Expect, Fault, Names, Row, Script};

/// What a send of a row is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// How it ends where it makes one attempt at the only broker.
    Alone,
    /// What follows its first attempt, where there is another broker.
    Followed(Duplicates),
}

/// How a send of a row ended.
pub(crate) struct Outcome {
    /// `None` where its future was dropped.
    pub(crate) ended: Option<Result<SendReceipt, SendError>>,
    /// The producer, with all that is left in use.
    pub(crate) producer: Producer,
}

/// Carries `row` out with a send.
pub(crate) async fn run(row: &Row, watched: Watched) -> Outcome {
    let mut scene = Scene::new(row, watched);
    if row.stage != Stage::Route && row.by != By::Send(Script::LargeBody) {
        // A send that sets the scene takes the healthy broker's turn.
        let one_more = matches!(
            (row.stage, row.fault),
            (Stage::Admission, Fault::Saturation) | (Stage::Connect, Fault::Lost)
        );
        scene.warm_up(if one_more { "broker-a" } else { "broker-b" }).await;
        scene.freeze(row).await;
    } else if row.by == By::Send(Script::ClientFull) {
        scene.fill_client().await;
    }
    let send = scene.send(row);
    settle().await;
    scene.strike(row).await;
    if let Expect::Abandoned { .. } = row.expect {
        send.abort();
        assert!(send.await.unwrap_err().is_cancelled(), "{}", row.name());
        return Outcome { ended: None, producer: scene.producer };
    }
    let ended = Some(send.await.unwrap());
    scene.answer_holder().await;
    Outcome { ended, producer: scene.producer }
}

struct Scene {
    watched: Watched,
    producer: Producer,
    /// Where the scripted broker is dialled.
    network: Network,
    signer: Arc<ScriptedSigner>,
    /// The scripted broker, once it was dialled.
    broker: Option<ScriptedPeer>,
    /// The opaque of the next request to it.
    next_opaque: i32,
    /// The send that has the only place, and its request.
    holder: Option<(Send, Command)>,
}

type Send = JoinHandle<Result<SendReceipt, SendError>>;

impl Scene {
    fn new(row: &Row, watched: Watched) -> Self {
        let network = Network::new(1 << 20);
        let signer = Arc::new(ScriptedSigner::new(Readiness::Ready));
        let names = match row.by {
            By::Send(Script::Names(names)) => names,
            _ if watched == Watched::Alone => Names::Route(ONE_BROKER),
            _ => Names::Route(TWO_BROKERS),
        };
        let switch = Switch { scripted: network.connector(), names };
        let builder = Producer::builder("shop").namesrv("ns:9876").connector(Arc::new(switch));
        let builder = builder.signer(Arc::clone(&signer) as _).transport(config(row, watched));
        let builder = match watched {
            Watched::Alone if row.by == By::Send(Script::LargeBody) => builder,
            Watched::Alone => builder.attempts(1),
            Watched::Followed(duplicates) if row.fault == Fault::Deadline && row.stage < Stage::Writing => {
                builder.attempts(1).duplicates(duplicates)
            }
            Watched::Followed(duplicates) => builder.attempts(2).duplicates(duplicates),
        };
        let timeout = match watched {
            Watched::Alone => row.budget(),
            Watched::Followed(_) => Duration::from_secs(3),
        };
        let builder = if (row.stage, row.fault) == (Stage::BeforeWrite, Fault::Unfit) {
            builder.max_message_size(LARGE)
        } else {
            builder
        };
        let producer = builder.topics(["orders"]).timeout(timeout).build().unwrap();
        Self { watched, producer, network, signer, broker: None, next_opaque: 0, holder: None }
    }

    /// Connects everybody, and sends until `last` had its turn, where the brokers take turns.
    async fn warm_up(&mut self, last: &str) {
        self.producer.start().await.unwrap();
        let mut broker = self.network.accept().await;
        advance(Duration::from_millis(1)).await;
        let beat = broker.expect_code(HEARTBEAT).await;
        broker.respond(&beat).await;
        settle().await;
        self.next_opaque = beat.opaque().0 + 1;
        loop {
            let send = spawn(&self.producer, Message::new("orders", "first"), SendOptions::default());
            tokio::pin!(send);
            let receipt = tokio::select! {
                receipt = &mut send => receipt,
                request = broker.expect_code(SEND) => {
                    self.next_opaque = request.opaque().0 + 1;
                    broker.respond_with(&request, stored()).await;
                    send.await
                }
            };
            let receipt = receipt.unwrap().unwrap();
            if self.watched == Watched::Alone || receipt.broker() == last {
                break;
            }
        }
        self.broker = Some(broker);
    }

    /// Makes the next send stop in the stage of `row`.
    async fn freeze(&mut self, row: &Row) {
        match (row.stage, row.fault) {
            (_, Fault::Unfit) | (Stage::Route | Stage::AwaitingResponse, _) => {}
            (Stage::Admission, _) => self.hold().await,
            (Stage::Connect, fault) => {
                self.broker.take().expect("it was warmed up").cut();
                settle().await;
                if fault == Fault::Lost {
                    let lost = self.send_to_scripted();
                    self.network.accept().await.cut();
                    assert!(lost.await.unwrap().is_err());
                } else {
                    self.network.set_dialing(Dialing::Hold);
                }
            }
            (Stage::Signing, _) => self.signer.set(Readiness::Hold),
            (Stage::BeforeWrite, _) => self.broker().accept_only(0, Then::Wait),
            (Stage::Writing, _) => self.broker().accept_only(10, Then::Wait),
        }
    }

    /// Takes the only place at the scripted broker.
    async fn hold(&mut self) {
        let send = self.send_to_scripted();
        let request = self.broker().expect_code(SEND).await;
        self.holder = Some((send, request));
    }

    /// Takes the only place of the whole client, with a send to a topic whose route is known.
    async fn fill_client(&mut self) {
        self.warm_up("broker-a").await;
        self.hold().await;
    }

    async fn answer_holder(&mut self) {
        if let Some((send, request)) = self.holder.take() {
            self.broker().respond_with(&request, stored()).await;
            send.await.unwrap().unwrap();
        }
    }

    /// A send to the scripted broker alone, without a limit.
    fn send_to_scripted(&self) -> Send {
        let mut options = SendOptions::default();
        options.queue = Some(MessageQueue::new("orders", "broker-a", 0));
        options.deadline = Some(RequestDeadline::never());
        options.attempts = Some(std::num::NonZeroU32::MIN);
        spawn(&self.producer, Message::new("orders", "other"), options)
    }

    /// Begins the send of `row`.
    fn send(&self, row: &Row) -> Send {
        let mut options = SendOptions::default();
        let mut message = Message::new("orders", "two apples");
        match (row.by, row.fault) {
            (By::Send(Script::EmptyBody), _) => message = Message::new("orders", ""),
            (By::Send(Script::UnknownQueue), _) => {
                options.queue = Some(MessageQueue::new("orders", "broker-z", 7));
            }
            (By::Send(Script::ClientFull), _) if row.stage == Stage::Route => {
                message = Message::new("invoices", "two apples");
            }
            (By::Send(Script::LargeBody), _) | (By::Call, Fault::Unfit) => {
                message = Message::new(
                    "orders",
                    vec![b'x'; if row.stage == Stage::BeforeWrite { LARGE } else { 10_000 }],
                );
            }
            _ => {}
        }
        spawn(&self.producer, message, options)
    }

    /// Lets the fault of `row` happen, 200 ms after the send was frozen where it is an event.
    async fn strike(&mut self, row: &Row) {
        if row.stage == Stage::AwaitingResponse {
            self.broker().expect_code(SEND).await;
        }
        if row.fault == Fault::StartBy && row.stage == Stage::Signing {
            sleep(Duration::from_millis(1_501)).await;
            self.signer.set(Readiness::Ready);
        }
        let event = match row.fault {
            Fault::Shutdown | Fault::Dropped => true,
            Fault::Lost | Fault::Refuses | Fault::Saturation => row.stage > Stage::Admission,
            Fault::Unfit | Fault::Deadline => row.stage == Stage::AwaitingResponse,
            Fault::Silent | Fault::StartBy => false,
        };
        if !event || (row.stage, row.fault) == (Stage::Connect, Fault::Lost) {
            return;
        }
        advance(Duration::from_millis(200)).await;
        let dialing = |kind| self.network.set_dialing(Dialing::Refuse(kind));
        match (row.fault, row.stage) {
            (Fault::Deadline, _) => {
                self.hold().await;
                self.answer_holder().await;
            }
            // Reader and writer find the same then, whichever is the first.
            (Fault::Lost, _) => {
                self.broker.take().expect("a connection to lose").reset(io::ErrorKind::ConnectionReset);
            }
            (Fault::Refuses, Stage::Connect) => dialing(io::ErrorKind::ConnectionRefused),
            (Fault::Saturation, Stage::Connect) => dialing(io::ErrorKind::AddrNotAvailable),
            (Fault::Refuses, Stage::Signing) => self.signer.set(Readiness::Fail),
            (Fault::Refuses, _) => {
                let By::Send(Script::Answer(code, remark)) = row.by else { panic!("{}", row.name()) };
                self.answer(code, remark).await;
            }
            (Fault::Unfit, _) => self.answer(0, "").await,
            (Fault::Shutdown, _) => {
                let producer = self.producer.clone();
                let bound = Duration::from_millis(if row.stage < Stage::BeforeWrite { 0 } else { 100 });
                tokio::spawn(async move { producer.shutdown(bound).await });
            }
            _ => {}
        }
    }

    /// Answers the send of the row, whether all of it has come or not.
    async fn answer(&mut self, code: i32, remark: &'static str) {
        let remark = (!remark.is_empty()).then_some(remark.into());
        let response = Response { code: Code(code), remark, header: Box::new(()), body: Bytes::new() };
        let opaque = Opaque(self.next_opaque);
        let frame = response.encode(opaque, EncodeOptions::default(), &FrameLimits::default()).unwrap();
        self.broker().send_raw(&frame).await;
    }

    fn broker(&mut self) -> &mut ScriptedPeer {
        self.broker.as_mut().expect("the scripted broker is connected")
    }
}

fn spawn(producer: &Producer, message: Message, options: SendOptions) -> Send {
    let producer = producer.clone();
    tokio::spawn(async move { producer.send_with(message, options).await })
}

fn config(row: &Row, watched: Watched) -> TransportConfig {
    let mut config = TransportConfig::default();
    match (row.stage, row.fault) {
        _ if row.by == By::Send(Script::LargeBody) => config.client_limit.bytes = 4_096,
        _ if row.by == By::Send(Script::ClientFull) => config.client_limit.requests = 1,
        (Stage::Admission, Fault::Unfit) => config.data_limit.bytes = 4_096,
        (Stage::BeforeWrite, Fault::Unfit) => config.max_frame_bytes = 4_096,
        (Stage::Admission, _) => config.data_limit.requests = 1,
        _ => {}
    }
    if row.fault == Fault::Silent && watched != Watched::Alone {
        // So that these limits leave time for another broker.
        config.connect_timeout = Duration::from_millis(300);
        config.max_write_stall = Duration::from_millis(300);
    }
    config
}

/// Dials the scripted broker, the healthy one, or the name server.
#[derive(Debug)]
struct Switch {
    scripted: Arc<dyn Connector>,
    names: Names,
}

impl Connector for Switch {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        match (peer.host(), self.names) {
            ("broker-a", _) => self.scripted.connect(peer),
            ("broker-b", _) => Box::pin(async { Ok(serving(|_| Some(stored()))) }),
            (_, Names::Refuse) => Box::pin(async { Err(io::ErrorKind::ConnectionRefused.into()) }),
            (_, Names::Cut) => Box::pin(async {
                let (near, mut far) = tokio::io::duplex(4_096);
                tokio::spawn(async move { far.read_u8().await });
                Ok(Stream::new(near, Acceptance::Exact))
            }),
            (_, Names::Silent) => Box::pin(async { Ok(serving(|_| None)) }),
            (_, Names::NoRoute) => Box::pin(async { Ok(serving(|_| Some(no_route()))) }),
            (_, Names::Route(route)) => Box::pin(async move { Ok(serving(move |_| Some(routed(route)))) }),
        }
    }
}

/// A connection to a peer that answers each request so, or not at all.
fn serving(
    answer: impl Fn(Command) -> Option<Response> + Clone + std::marker::Send + Sync + 'static,
) -> Stream {
    let (near, far) = tokio::io::duplex(64 << 10);
    let handler = move |request: Command, _: SocketAddr| {
        let answer = answer.clone();
        async move {
            match answer(request) {
                Some(response) => Some(response),
                None => std::future::pending().await,
            }
        }
    };
    let remote = SocketAddr::from(([127, 0, 0, 1], 1));
    let far = Stream::new(far, Acceptance::Exact);
    tokio::spawn(async move { serve(far, remote, Arc::new(handler), ServerConfig::default()).await });
    Stream::new(near, Acceptance::Exact)
}

fn routed(route: &'static str) -> Response {
    Response { body: Bytes::from_static(route.as_bytes()), ..bare(0) }
}

fn no_route() -> Response {
    Response { remark: Some("No topic route info in name server for the topic: orders".into()), ..bare(17) }
}

fn stored() -> Response {
    Response { header: Box::new(Stored), ..bare(0) }
}

fn bare(code: i32) -> Response {
    Response { code: Code(code), remark: None, header: Box::new(()), body: Bytes::new() }
}

/// The header of a stored send.
struct Stored;

impl Header for Stored {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("msgId", "0A00000100002A9F0000000000001000");
        fields.int("queueId", 0);
        fields.int("queueOffset", 42);
    }
}

const SEND: i32 = 310;
/// A body that fits a message and, with its header, no frame.
const LARGE: usize = 4_000;
const HEARTBEAT: i32 = 34;

/// A route with one queue at the scripted broker.
const ONE_BROKER: &str = r#"{"brokerDatas":[{"brokerName":"broker-a","brokerAddrs":{"0":"broker-a:10911"}}],
    "queueDatas":[{"brokerName":"broker-a","perm":6,"writeQueueNums":1}]}"#;

/// A route with one queue each at the scripted broker and the healthy one.
const TWO_BROKERS: &str = r#"{"brokerDatas":[
    {"brokerName":"broker-a","brokerAddrs":{"0":"broker-a:10911"}},
    {"brokerName":"broker-b","brokerAddrs":{"0":"broker-b:10911"}}],
    "queueDatas":[
    {"brokerName":"broker-a","perm":6,"writeQueueNums":1},
    {"brokerName":"broker-b","perm":6,"writeQueueNums":1}]}"#;
