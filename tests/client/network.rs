//! A network in memory: scripted name servers and brokers, and a count of what each has seen.

use std::{
    borrow::Cow,
    collections::HashMap,
    future::pending,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{BufMut, Bytes};
use rocketmq_client::{Message, Producer, ProducerBuilder};
use rocketmq_transport::{
    Acceptance, Code, Command, Connecting, Connector, Fields, Handler, Header, Peer, Response, ServerConfig,
    Stream, serve,
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) const SEND: i32 = 310;
pub(crate) const QUERY: i32 = 12;
pub(crate) const ROUTE: i32 = 105;
pub(crate) const HEARTBEAT: i32 = 34;
pub(crate) const UNREGISTER: i32 = 35;

/// The peers there are; any other refuses the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network(Arc<Mutex<HashMap<Peer, Line>>>);

/// What happens to a dial.
#[derive(Clone, Debug)]
enum Line {
    Blackhole,
    Scripted(Scripted),
}

/// One scripted peer.
#[derive(Clone)]
pub(crate) struct Scripted {
    script: Arc<Script>,
    state: Arc<State>,
}

/// What a peer does with a request, given its number among those of its code.
type Script = dyn Fn(&Command, usize) -> Reply + Send + Sync;

#[derive(Debug, Default)]
struct State {
    seen: Mutex<Vec<(Instant, Command)>>,
    accepted: Mutex<usize>,
    closed: Mutex<usize>,
    cut: Notify,
}

/// What a peer does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// Answers at once, or after so long.
    Answer(Duration, i32, &'static str),
    /// Answers a send as stored in queue 1 at offset 42, with this status.
    Stored(Duration, i32),
    /// Answers a query with the record of the message that has this unique key; none stands for the one asked for.
    Record(Option<&'static str>),
    /// Answers with a body.
    Body(Duration, &'static str),
    /// Answers success without any field.
    Bare,
    /// Never answers.
    Silence,
    /// Ends the connection.
    Cut,
}

impl Network {
    /// A peer at `address` that does with each request what `script` says, given its number among those of
    /// its code. What no script is asked: heartbeats and unregistering succeed.
    pub(crate) fn peer(
        &self,
        address: &str,
        script: impl Fn(&Command, usize) -> Reply + Send + Sync + 'static,
    ) -> Scripted {
        let scripted = Scripted { script: Arc::new(script), state: Arc::default() };
        lock(&self.0)
            .insert(address.parse().expect("the address of a peer"), Line::Scripted(scripted.clone()));
        scripted
    }

    /// A peer that does the same with each request.
    pub(crate) fn always(&self, address: &str, reply: Reply) -> Scripted {
        self.peer(address, move |_, _| reply)
    }

    /// A name server at `ns:1` that has `route` for every topic.
    pub(crate) fn name_server(&self, route: &'static str) -> Scripted {
        self.always("ns:1", Reply::Body(Duration::ZERO, route))
    }

    /// The brokers a (`a:1`) and b (`b:1`), who do in turn what `replies` says, whoever of them is asked; the
    /// last reply goes on.
    pub(crate) fn brokers<const N: usize>(&self, replies: [Reply; N]) -> [Scripted; 2] {
        let asked = Arc::new(AtomicUsize::new(0));
        ["a:1", "b:1"].map(|address| {
            let asked = asked.clone();
            self.peer(address, move |_, _| replies[asked.fetch_add(1, Ordering::Relaxed).min(N - 1)])
        })
    }

    /// An address where no dial ever ends.
    pub(crate) fn blackhole(&self, address: &str) {
        lock(&self.0).insert(address.parse().expect("the address of a peer"), Line::Blackhole);
    }

    /// Takes the peer at `address` away; what is connected stays so.
    pub(crate) fn remove(&self, address: &str) {
        lock(&self.0).remove(&address.parse().expect("the address of a peer"));
    }

    /// A producer on this network that asks the name server at `ns:1`.
    pub(crate) fn producer(&self) -> ProducerBuilder {
        Producer::builder("group").namesrv("ns:1").connector(Arc::new(self.clone()))
    }
}

impl Connector for Network {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        Box::pin(async move {
            let line = lock(&self.0).get(peer).cloned();
            let scripted = match line {
                None => return Err(io::ErrorKind::ConnectionRefused.into()),
                Some(Line::Blackhole) => pending().await,
                Some(Line::Scripted(scripted)) => scripted,
            };
            *lock(&scripted.state.accepted) += 1;
            let (near, far) = tokio::io::duplex(64 << 10);
            tokio::spawn(scripted.run(Stream::new(far, Acceptance::Exact)));
            Ok(Stream::new(near, Acceptance::Exact))
        })
    }
}

impl Scripted {
    /// The requests of `code` that it has seen, in order.
    pub(crate) fn seen(&self, code: i32) -> Vec<Command> {
        self.timed(code).into_iter().map(|(_, command)| command).collect()
    }

    /// When it has seen each request of `code`.
    pub(crate) fn times(&self, code: i32) -> Vec<Instant> {
        self.timed(code).into_iter().map(|(at, _)| at).collect()
    }

    /// How many requests of `code` it has seen.
    pub(crate) fn count(&self, code: i32) -> usize {
        self.seen(code).len()
    }

    /// How many connections it has accepted, and how many of them have ended.
    pub(crate) fn connections(&self) -> (usize, usize) {
        (*lock(&self.state.accepted), *lock(&self.state.closed))
    }

    fn timed(&self, code: i32) -> Vec<(Instant, Command)> {
        let seen = lock(&self.state.seen);
        seen.iter().filter(|(_, command)| command.code() == Code(code)).cloned().collect()
    }

    async fn run(self, stream: Stream) {
        let remote = SocketAddr::from(([127, 0, 0, 1], 1));
        let state = self.state.clone();
        tokio::select! {
            _ = serve(stream, remote, Arc::new(self), ServerConfig::default()) => {}
            () = state.cut.notified() => {}
        }
        *lock(&state.closed) += 1;
    }

    fn next_reply(&self, request: &Command) -> Reply {
        let number = self.count(request.code().0);
        lock(&self.state.seen).push((Instant::now(), request.clone()));
        match request.code().0 {
            HEARTBEAT | UNREGISTER => Reply::Answer(Duration::ZERO, 0, ""),
            _ => (self.script)(request, number),
        }
    }
}

impl Handler for Scripted {
    async fn handle(&self, request: Command, _: SocketAddr) -> Option<Response> {
        let none: Box<dyn Header> = Box::new(());
        let empty = Bytes::new();
        let (wait, code, remark, header, body) = match self.next_reply(&request) {
            Reply::Answer(wait, code, remark) => (wait, code, remark, none, empty),
            Reply::Stored(wait, code) => (wait, code, "", Box::new(Stored) as Box<dyn Header>, empty),
            Reply::Record(key) => {
                let asked = request.field("key").unwrap_or_default();
                (Duration::ZERO, 0, "", none, record(key.unwrap_or(&asked)))
            }
            Reply::Body(wait, body) => (wait, 0, "", none, body.into()),
            Reply::Bare => (Duration::ZERO, 0, "", none, empty),
            Reply::Silence => pending().await,
            Reply::Cut => {
                self.state.cut.notify_waiters();
                pending().await
            }
        };
        sleep(wait).await;
        let remark = (!remark.is_empty()).then_some(Cow::Borrowed(remark));
        Some(Response { code: Code(code), remark, header, body })
    }
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

/// Locks what a script shares.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no script panics under a lock")
}

/// The header of a stored send.
struct Stored;

impl Header for Stored {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("msgId", "0A00000100002A9F0000000000001000");
        fields.int("queueId", 1);
        fields.int("queueOffset", 42);
    }
}

/// The record of a message of `orders` with the unique key `key`: in queue 3 at offset 77, stored by 10.0.0.1:10911 at
/// 4096 of its log, 1,700,000,000,005 ms after the Unix epoch.
fn record(key: &str) -> Bytes {
    let properties = format!("UNIQ_KEY\u{1}{key}\u{2}");
    let mut record = vec![0; 4];
    record.put_u32(0xDAA3_20A7);
    [0, 3, 0].into_iter().for_each(|crc_queue_flag| record.put_i32(crc_queue_flag));
    [77, 4_096].into_iter().for_each(|offset| record.put_i64(offset));
    record.put_i32(0);
    record.put_i64(1_700_000_000_000);
    record.put_slice(&[10, 0, 0, 9, 0, 0, 0xC3, 0x50]);
    record.put_i64(1_700_000_000_005);
    record.put_slice(&[10, 0, 0, 1, 0, 0, 0x2A, 0x9F]);
    record.put_i32(0);
    record.put_i64(0);
    record.put_i32(10);
    record.put_slice(b"two apples\x06orders");
    record.put_i16(i16::try_from(properties.len()).expect("a short key"));
    record.put_slice(properties.as_bytes());
    let length = u32::try_from(record.len()).expect("a short record");
    record[..4].copy_from_slice(&length.to_be_bytes());
    record.into()
}

/// A message for the topic `orders`.
pub(crate) fn message() -> Message {
    Message::new("orders", "two apples")
}

/// Stored at once.
pub(crate) const STORED: Reply = Reply::Stored(Duration::ZERO, 0);

/// An answer at once.
pub(crate) const fn answer(code: i32, remark: &'static str) -> Reply {
    Reply::Answer(Duration::ZERO, code, remark)
}

/// A route with one queue each at brokers a (`a:1`) and b (`b:1`).
pub(crate) const TWO_BROKERS: &str = r#"{"brokerDatas":[
    {"brokerName":"a","brokerAddrs":{0:"a:1"}},
    {"brokerName":"b","brokerAddrs":{0:"b:1"}}],
    "queueDatas":[
    {"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1},
    {"brokerName":"b","perm":6,"readQueueNums":1,"writeQueueNums":1}]}"#;

/// A route with two queues at broker a (`a:1`).
pub(crate) const ONE_BROKER: &str = r#"{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"0":"a:1"}}],
    "queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":2,"writeQueueNums":2}]}"#;
