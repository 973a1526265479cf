//! No connection, or none any more: each cause is told from the others.

use std::{error::Error, io, sync::Arc};

use rocketmq_transport::{
    Certainty, CloseCause, ConnectError, Peer, RequestDeadline, Resolver, Resolving, Stage, TcpConnector,
    Transport, TransportConfig, TransportError, TransportErrorKind,
    test_support::{Dialing, LogSink, settle},
};
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpSocket},
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn local_ports_that_are_used_up_are_told_from_a_refusal() {
    for kind in [io::ErrorKind::AddrNotAvailable, io::ErrorKind::ConnectionRefused] {
        let (transport, network) = scene(|_| {});
        let log = LogSink::install();
        network.set_dialing(Dialing::Refuse(kind));
        let error = call(&transport, RequestDeadline::after(ms(100))).await.unwrap_err();
        assert_eq!((error.stage(), error.certainty()), (Stage::Connect, Certainty::NotSent));
        assert_eq!(dial_failure(&error).kind(), kind);
        let line = log.lines().into_iter().find(|line| line.target == "rocketmq::request").unwrap();
        assert_eq!(line.message, format!("request failed: connection failed: {}", io::Error::from(kind)));

        // During the pause that follows the cause is still the same.
        let error = call(&transport, RequestDeadline::after(ms(100))).await.unwrap_err();
        let TransportErrorKind::BackingOff { source, .. } = error.kind() else { panic!("{error}") };
        assert_eq!(source.kind(), kind);
    }
}

#[tokio::test]
async fn a_real_refusal_names_the_address() {
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = taken.local_addr().unwrap();
    let error = fails(&tcp(TcpConnector::new()), &address.into()).await;
    assert_eq!(dial_failure(&error).kind(), io::ErrorKind::ConnectionRefused);
    let Some(ConnectError::Dial { failures }) = connect_error(&error) else { panic!("{error:?}") };
    assert_eq!(failures[0].address, address);
}

#[tokio::test]
async fn a_name_that_cannot_be_resolved_is_no_refusal() {
    let peer: Peer = "no-such-host.invalid:10911".parse().unwrap();
    for connector in [TcpConnector::new(), TcpConnector::with_resolver(Arc::new(Nowhere))] {
        let error = fails(&tcp(connector), &peer).await;
        assert_eq!((error.stage(), error.certainty()), (Stage::Connect, Certainty::NotSent));
        let Some(ConnectError::Resolve { peer: named, .. }) = connect_error(&error) else {
            panic!("{error:?}")
        };
        assert_eq!(*named, peer);
        assert_ne!(dial_failure(&error).kind(), io::ErrorKind::ConnectionRefused);
    }
}

#[tokio::test]
async fn a_reset_is_told_from_the_end_of_the_stream() {
    for reset in [Hangup::Reset, Hangup::Fin] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = Peer::from(listener.local_addr().unwrap());
        let transport = tcp(TcpConnector::new());
        let (error, ()) = tokio::join!(fails(&transport, &peer), async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // To its last byte, so that a close is a close.
            stream.read_exact(&mut [0; 4]).await.unwrap();
            while stream.try_read(&mut [0; 1_000]).is_ok_and(|read| read > 0) {}
            if reset == Hangup::Reset {
                stream.set_zero_linger().unwrap();
            }
        });
        assert_eq!((error.stage(), error.certainty()), (Stage::AwaitingResponse, Certainty::Unknown));
        assert!(error.late_answer().is_none(), "none can come any more");
        match (reset, lost(&error)) {
            (Hangup::Fin, CloseCause::EndOfStream) => {}
            (Hangup::Reset, CloseCause::Io(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            }
            (_, cause) => panic!("{cause}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_peer_closed_while_it_was_idle_costs_no_request_anything() {
    let (transport, mut network) = scene(|_| {});
    let peer = connected(&transport, &mut network).await;
    let log = LogSink::install();
    pass(ms(10_000)).await;
    peer.cut();
    settle().await;
    let closing = log.with_message("connection closing");
    assert_eq!(closing[0].fields["cause"], "the peer closed the connection");
    connected(&transport, &mut network).await;
    assert_eq!(network.dials(), 2);
    assert!(!log.lines().iter().any(|line| line.target == "rocketmq::request"));
}

#[tokio::test(start_paused = true)]
async fn a_connection_lost_before_its_first_answer_leaves_its_cause_and_kind_for_the_pause() {
    for (kind, text) in [
        (io::ErrorKind::UnexpectedEof, "the peer closed the connection"),
        (io::ErrorKind::ConnectionReset, "the socket failed: connection reset"),
    ] {
        let (transport, mut network) = scene(|_| {});
        let asked = spawn(&transport, ms(1_000));
        let mut peer = network.accept().await;
        peer.expect().await;
        match kind {
            io::ErrorKind::UnexpectedEof => peer.cut(),
            kind => peer.reset(kind),
        }
        let error = asked.await.unwrap().unwrap_err();
        assert_eq!(lost(&error).to_string(), text);
        let error = call(&transport, RequestDeadline::after(ms(100))).await.unwrap_err();
        let TransportErrorKind::BackingOff { source, .. } = error.kind() else { panic!("{error}") };
        assert_eq!((source.kind(), source.to_string()), (kind, text.to_owned()));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hangup {
    Reset,
    Fin,
}

/// A resolver that knows nobody.
#[derive(Debug)]
struct Nowhere;

impl Resolver for Nowhere {
    fn resolve<'a>(&'a self, _: &'a Peer) -> Resolving<'a> {
        Box::pin(async { Err(io::Error::new(io::ErrorKind::NotFound, "no such host")) })
    }
}

fn tcp(connector: TcpConnector) -> Transport {
    let mut config = TransportConfig::default();
    // What a name server that is far away takes is not the point.
    config.connect_timeout = ms(60_000);
    Transport::builder(config).connector(Arc::new(connector)).build().expect("settings in range")
}

async fn fails(transport: &Transport, peer: &Peer) -> TransportError {
    transport.call(peer, request(), RequestDeadline::after(ms(60_000))).await.expect_err("nobody answers")
}

fn dial_failure(error: &TransportError) -> &io::Error {
    let TransportErrorKind::ConnectFailed(source) = error.kind() else { panic!("{error}") };
    source
}

fn connect_error(error: &TransportError) -> Option<&ConnectError> {
    let cause = error.source()?.downcast_ref::<io::Error>()?;
    cause.get_ref()?.downcast_ref()
}

fn lost(error: &TransportError) -> &CloseCause {
    let TransportErrorKind::ConnectionLost(cause) = error.kind() else { panic!("{error}") };
    cause
}
