//! The same over loopback TCP, where the operating system's buffers lie between the two: FIN, RST and half-close, of a
//! few frames and in the middle of a batch.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use rocketmq_transport::{
    Certainty, Command, Completed, Connecting, Connector, EncodeOptions, FrameLimits, HeaderEncoding, Opaque,
    Peer, RequestDeadline, Transport, TransportConfig, TransportError, TransportErrorKind, decode_frame,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
};

use crate::exchange::{number, request, response};

/// What is cut, where and how.
#[derive(Clone, Copy, Debug)]
struct Plan {
    cut: Cut,
    direction: Direction,
    /// How many calls are in flight, all of them in one batch.
    calls: usize,
    /// After so many bytes of that direction.
    bytes: usize,
    answers: Answers,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// The peer ends its direction, and then the connection.
    Fin,
    /// The connection is reset.
    Rst,
    /// The peer ends its direction and reads on.
    HalfClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    /// So many bytes of the requests are read; what is decoded of them is answered.
    Requests,
    /// So many bytes of the responses are sent.
    Responses,
}

/// What the peer does with what it has decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Given,
    /// As one that acts, and dies before it says so.
    Withheld,
}

/// How one call ended, and what its peer knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Answered,
    NotSentAndNotDecoded,
    UnknownAndDecoded,
    UnknownAndNotDecoded,
}

#[test]
fn a_cut_of_a_real_connection_leaves_no_call_with_a_wrong_not_sent() {
    let cuts = std::env::var("CUTS").map_or(1_500, |cuts| cuts.parse().expect("CUTS is a number"));
    let (began, mut counts) = (Instant::now(), BTreeMap::new());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // Most of the time goes into waiting for a full buffer to be read.
        let at_once = (0..AT_ONCE.min(cuts)).map(|first| {
            tokio::spawn(async move {
                let listener = listen().expect("a free port");
                let mut verdicts = Vec::new();
                for plan in (first..cuts).step_by(AT_ONCE).map(Plan::of) {
                    let told = exchange(&listener, plan).await.into_iter();
                    verdicts.extend(told.map(|verdict| (plan.direction, plan.cut, plan.calls, verdict)));
                }
                verdicts
            })
        });
        for verdicts in at_once.collect::<Vec<_>>() {
            for verdict in verdicts.await.expect("every cut holds") {
                *counts.entry(verdict).or_default() += 1;
            }
        }
    });
    let seen = |wanted| counts.keys().any(|(.., verdict)| *verdict == wanted);
    assert!(seen(Verdict::NotSentAndNotDecoded) && seen(Verdict::UnknownAndDecoded), "{counts:?}");
    report(cuts, began.elapsed(), &counts).expect("the report can be written");
}

impl Plan {
    /// The cuts go round all ways, and their bytes through the whole of what is sent.
    fn of(number: usize) -> Self {
        let cut = [Cut::Fin, Cut::Rst, Cut::HalfClose][number % 3];
        let direction = [Direction::Requests, Direction::Responses][number / 3 % 2];
        let calls = [FEW, BATCH][number / 6 % 2];
        let all: usize = match direction {
            Direction::Requests => (0..calls).map(|number| encoded(number).len()).sum(),
            Direction::Responses => (0..calls).map(answer_len).sum(),
        };
        let withheld = direction == Direction::Requests && number / 12 % 2 == 1;
        let answers = if withheld { Answers::Withheld } else { Answers::Given };
        Self { cut, direction, calls, bytes: (number / 24).wrapping_mul(STRIDE) % (all + 1), answers }
    }
}

async fn exchange(listener: &TcpListener, plan: Plan) -> Vec<Verdict> {
    let peer = Peer::from(listener.local_addr().expect("it listens"));
    let transport = Transport::builder(TransportConfig::default()).connector(Arc::new(Narrow)).build();
    let transport = transport.expect("default settings are in range");
    let calls: Vec<_> = (0..plan.calls)
        .map(|number| {
            let (transport, peer) = (transport.clone(), peer.clone());
            tokio::spawn(async move {
                let deadline = RequestDeadline::after(Duration::from_secs(60));
                transport.call(&peer, request(number, BODY), deadline).await
            })
        })
        .collect();
    let (stream, _) = listener.accept().await.expect("the transport dials");
    let witness = tokio::spawn(serve(stream, plan));
    let mut ended = Vec::new();
    for call in calls {
        ended.push(call.await.expect("no call panics"));
    }
    assert!(transport.usage().client.requests == 0, "{:?}", transport.usage());
    // A peer that reads on comes to the end of the stream.
    drop(transport);
    let witness = witness.await.expect("the peer's script holds");
    let judged = ended.into_iter().enumerate().map(|(number, call)| witness.judge(plan, number, call));
    judged.collect()
}

/// What the peer knows.
struct Witness {
    decoded: Vec<bool>,
    answered: Vec<bool>,
}

impl Witness {
    fn judge(&self, plan: Plan, number: usize, call: Result<Completed, TransportError>) -> Verdict {
        let (decoded, answered) = (self.decoded[number], self.answered[number]);
        let error = match call {
            Ok(completed) => {
                assert!(answered, "{plan:?}: call {number} was not answered");
                assert_eq!(completed.response.body(), [number as u8], "{plan:?}");
                return Verdict::Answered;
            }
            Err(error) => error,
        };
        let lost = matches!(error.kind(), TransportErrorKind::ConnectionLost(_));
        assert!(lost, "{plan:?}: call {number} ends with its connection: {error}");
        let readable = plan.cut == Cut::HalfClose && answered;
        assert!(!readable, "{plan:?}: the answer of call {number} was lost: {error}");
        match (error.certainty(), decoded) {
            (Certainty::NotSent, false) => Verdict::NotSentAndNotDecoded,
            (Certainty::Unknown, true) => Verdict::UnknownAndDecoded,
            (Certainty::Unknown, false) => Verdict::UnknownAndNotDecoded,
            (certainty, _) => {
                panic!("{plan:?}: call {number}, decoded: {decoded}, says {certainty}: {error}")
            }
        }
    }

    fn decode(&mut self, buffer: &mut BytesMut) -> Vec<Command> {
        let limits = FrameLimits::default();
        let requests = std::iter::from_fn(|| decode_frame(buffer, &limits).expect("sound frames"));
        let requests: Vec<_> = requests.collect();
        requests.iter().for_each(|request| self.decoded[number(request)] = true);
        requests
    }
}

/// The peer: reads, answers what it has decoded, and cuts.
async fn serve(mut stream: TcpStream, plan: Plan) -> Witness {
    let mut witness = Witness { decoded: vec![false; plan.calls], answered: vec![false; plan.calls] };
    let all = (0..plan.calls).map(|number| encoded(number).len()).sum();
    let mut buffer = BytesMut::new();
    let reads = if plan.direction == Direction::Requests { plan.bytes } else { all };
    read(&mut stream, &mut buffer, reads).await;
    let requests = witness.decode(&mut buffer);
    let mut answers = Vec::new();
    for request in requests.iter().filter(|_| plan.answers == Answers::Given) {
        answers.extend(response(request));
        let sent = plan.direction == Direction::Requests || answers.len() <= plan.bytes;
        witness.answered[number(request)] = sent;
    }
    if plan.direction == Direction::Responses {
        answers.truncate(plan.bytes);
    }
    stream.write_all(&answers).await.expect("the transport reads");
    match plan.cut {
        Cut::Fin => stream.shutdown().await.expect("it is still there"),
        Cut::Rst => stream.set_zero_linger().expect("it is a TCP socket"),
        Cut::HalfClose => {
            stream.shutdown().await.expect("it is still there");
            // A transport that has not read all it was sent ends with a reset; what came before counts.
            while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {}
            witness.decode(&mut buffer);
        }
    }
    witness
}

async fn read(stream: &mut TcpStream, buffer: &mut BytesMut, bytes: usize) {
    while buffer.len() < bytes {
        let missing = (bytes - buffer.len()) as u64;
        let read = stream.take(missing).read_buf(buffer).await.expect("the transport writes");
        assert!(read > 0, "the transport hung up first");
    }
}

/// Dials with the smallest buffer there is, so that a batch does not fit into it.
#[derive(Debug)]
struct Narrow;

impl Connector for Narrow {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        Box::pin(async move {
            let socket = TcpSocket::new_v4()?;
            socket.set_send_buffer_size(1)?;
            let address = peer.as_str().parse().map_err(io::Error::other)?;
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream.into())
        })
    }
}

fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(1)?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    socket.listen(8)
}

/// The frame of a request; the calls take the opaques in some order, all of them one digit or two.
fn encoded(opaque: usize) -> Vec<u8> {
    let options =
        EncodeOptions { encoding: HeaderEncoding::Json, version: TransportConfig::default().version };
    let frame = request(0, BODY).encode(Opaque(opaque as i32), options, &FrameLimits::default());
    frame.expect("a small request").to_vec()
}

/// The length of an answer, under any opaque of as many digits.
fn answer_len(opaque: usize) -> usize {
    let mut frame = BytesMut::from(&encoded(opaque)[..]);
    let request = decode_frame(&mut frame, &FrameLimits::default());
    response(&request.expect("a sound frame").expect("a whole one")).len()
}

/// The counts in a table, for who ran the long form.
fn report(
    cuts: usize,
    took: Duration,
    counts: &BTreeMap<(Direction, Cut, usize, Verdict), u64>,
) -> io::Result<()> {
    let mut table = format!(
        "{cuts} cuts in {} s\n\n| cut in | by | calls in flight | outcome | calls |\n",
        took.as_secs()
    );
    table.push_str("|---|---|---|---|---|\n");
    for ((direction, cut, calls, verdict), count) in counts {
        table.push_str(&format!("| {direction:?} | {cut:?} | {calls} | {verdict:?} | {count} |\n"));
    }
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuts.md"), table)
}

const FEW: usize = 3;
/// More than fits into the buffers of both ends.
const BATCH: usize = 64;
const BODY: usize = 200;
/// Prime, so that it comes by every byte.
const STRIDE: usize = 7_919;
/// So many connections are open at the same time.
const AT_ONCE: usize = 32;
