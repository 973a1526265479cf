//! Three pipelined calls over one stream, and a peer whose own log of decoded frames is the truth.

use std::{io, sync::Mutex, time::Duration};

use bytes::{Bytes, BytesMut};
use rocketmq_transport::{
    Acceptance, Certainty, Code, Command, Completed, Connecting, Connector, EncodeOptions, Fields,
    FrameLimits, Header, HeaderEncoding, Peer, Request, RequestDeadline, Response, Stage, Stream, Transport,
    TransportConfig, TransportError, TransportErrorKind, decode_frame,
};

use crate::wire::{Cut, FarEnd, Reports, Slices, Wire, wire};

/// What is exchanged, over which kind of stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) encoding: HeaderEncoding,
    pub(crate) acceptance: Acceptance,
    pub(crate) reports: Reports,
    pub(crate) slices: Slices,
    /// The length of each request's body, its number included.
    pub(crate) bodies: [usize; 3],
}

/// What the peer does, when the stream has accepted what it will.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// It answers every request it has decoded.
    Decoded,
    /// It answers, but only so many bytes of its responses leave.
    Bytes(usize),
}

/// How the three calls ended, and what the peer knows.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) calls: [Result<Completed, TransportError>; 3],
    /// For each request whether the peer has decoded it.
    pub(crate) decoded: [bool; 3],
    /// For each request whether its response was delivered to its last byte.
    pub(crate) answered: [bool; 3],
}

/// Three calls over a stream that accepts `allowance` bytes and is then cut.
pub(crate) async fn exchange(setting: Setting, allowance: usize, answer: Answer, cut: Cut) -> Ended {
    let (near, far) = wire(setting.reports, setting.slices, allowance);
    let transport = transport(setting, near);
    let calls = [0, 1, 2].map(|number| {
        let (transport, length) = (transport.clone(), setting.bodies[number]);
        tokio::spawn(async move {
            let deadline = RequestDeadline::after(DEADLINE);
            transport.call(&peer(), request(number, length), deadline).await
        })
    });
    settle().await;
    let responses =
        decoded(&far).iter().map(|request| (number(request), response(request))).collect::<Vec<_>>();
    let all = responses.iter().flat_map(|(_, frame)| frame.iter().copied()).collect::<Vec<_>>();
    let sent = match answer {
        Answer::Decoded => all.len(),
        Answer::Bytes(bytes) => bytes,
    };
    far.send_and_cut(&all[..sent], cut);

    let mut ended = Vec::new();
    for call in calls {
        ended.push(call.await.expect("no call panics"));
    }
    settle().await;
    assert!(transport.usage().is_idle(), "{:?}", transport.usage());
    let mut witness =
        Ended { calls: ended.try_into().expect("three calls"), decoded: [false; 3], answered: [false; 3] };
    for request in decoded(&far) {
        witness.decoded[number(&request)] = true;
    }
    let mut end = 0;
    for (number, frame) in responses {
        end += frame.len();
        witness.answered[number] = end <= sent;
    }
    witness
}

impl Ended {
    /// What must hold however the stream is cut.
    pub(crate) fn check(&self) {
        for (number, call) in self.calls.iter().enumerate() {
            match call {
                Ok(completed) => {
                    assert!(self.answered[number], "call {number} was not answered");
                    assert_eq!(completed.response.body(), [number as u8]);
                }
                Err(error) => {
                    assert!(!self.answered[number], "the answer of call {number} was lost: {error}");
                    assert!(
                        matches!(error.kind(), TransportErrorKind::ConnectionLost(_)),
                        "call {number} ends with its connection: {error}"
                    );
                    assert_ne!(error.certainty(), Certainty::Refused);
                }
            }
        }
        let liars = self.liars();
        assert!(liars.is_empty(), "calls {liars:?} say not sent, but the peer has decoded them");
    }

    /// Where the stream vouches, what the peer has not decoded was not sent, and the client knows.
    pub(crate) fn check_exactly(&self) {
        self.check();
        for (number, call) in self.calls.iter().enumerate() {
            if let Err(error) = call {
                assert_eq!(
                    error.certainty() == Certainty::NotSent,
                    !self.decoded[number],
                    "call {number}: {error}"
                );
            }
        }
    }

    /// The calls that say not sent although the peer has decoded them.
    pub(crate) fn liars(&self) -> Vec<usize> {
        let says_not_sent = |number: usize| matches!(&self.calls[number], Err(error) if error.certainty() == Certainty::NotSent);
        (0..3).filter(|number| self.decoded[*number] && says_not_sent(*number)).collect()
    }

    /// The stages in which calls failed, the furthest first.
    pub(crate) fn stages(&self) -> Vec<Stage> {
        let failures = self.calls.iter().filter_map(|call| call.as_ref().err());
        let mut stages: Vec<_> = failures.map(TransportError::stage).collect();
        stages.sort_unstable_by(|one, other| other.cmp(one));
        stages
    }
}

/// The bytes of the three requests, and of the responses to them.
pub(crate) async fn totals(setting: Setting) -> (usize, usize) {
    let (near, far) = wire(setting.reports, setting.slices, usize::MAX);
    let transport = transport(setting, near);
    for (number, length) in setting.bodies.into_iter().enumerate() {
        let (transport, peer) = (transport.clone(), peer());
        tokio::spawn(async move {
            let _ = transport.call(&peer, request(number, length), RequestDeadline::never()).await;
        });
    }
    // A frame that is larger than one offer takes some turns.
    settle().await;
    let responses = decoded(&far).iter().map(|request| response(request).len()).sum();
    (far.received().len(), responses)
}

fn transport(setting: Setting, near: Wire) -> Transport {
    let mut config = TransportConfig::default();
    config.header_encoding = setting.encoding;
    let stream = Mutex::new(Some(Stream::new(near, setting.acceptance)));
    let connector = std::sync::Arc::new(Once(stream));
    Transport::builder(config).connector(connector).build().expect("default settings are in range")
}

/// A connector with one stream to give.
#[derive(Debug)]
struct Once(Mutex<Option<Stream>>);

impl Connector for Once {
    fn connect<'a>(&'a self, _: &'a Peer) -> Connecting<'a> {
        let stream = self.0.lock().expect("no dial panics").take();
        Box::pin(async { stream.ok_or_else(|| io::Error::from(io::ErrorKind::ConnectionRefused)) })
    }
}

struct Topic;

impl Header for Topic {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("topic", "orders");
    }
}

/// The number of the request is the first byte of its body.
pub(crate) fn request(number: usize, length: usize) -> Request<'static> {
    let mut body = vec![b'.'; length];
    body[0] = number as u8;
    Request { code: Code(310), header: &Topic, body: body.into() }
}

pub(crate) fn number(request: &Command) -> usize {
    request.body()[0].into()
}

/// An answer with the same number, in JSON and in binary by turns.
pub(crate) fn response(request: &Command) -> Vec<u8> {
    let number = request.body()[..1].to_vec();
    let encoding = if number == [1] { HeaderEncoding::Binary } else { HeaderEncoding::Json };
    let response =
        Response { code: Code::SUCCESS, remark: None, header: Box::new(Topic), body: Bytes::from(number) };
    let options = EncodeOptions { encoding, version: 479 };
    response.encode(request.opaque(), options, &FrameLimits::default()).expect("a small response")
}

/// The peer's log: every frame it can decode of what it has received.
fn decoded(far: &FarEnd) -> Vec<Command> {
    let mut received = BytesMut::from(&far.received()[..]);
    std::iter::from_fn(|| decode_frame(&mut received, &FrameLimits::default()).expect("sound frames"))
        .collect()
}

fn peer() -> Peer {
    "broker:10911".parse().expect("an address")
}

/// Lets every task run until each waits.
async fn settle() {
    for _ in 0..SETTLING_TURNS {
        tokio::task::yield_now().await;
    }
}

/// In each turn every task that can runs once.
const SETTLING_TURNS: usize = 32;
/// Far away: the cut ends the calls, not their deadline.
const DEADLINE: Duration = Duration::from_secs(5);
