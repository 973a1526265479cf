//! Where the socket is the point: real TCP, real time, and waits for events alone.

use std::{io, sync::Arc};

use rocketmq_transport::{
    Certainty, ConnectError, Connecting, Connector, Peer, Stage, Stream, Transport, TransportConfig,
    TransportErrorKind, test_support::ScriptedPeer,
};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::support::*;

/// Dials with a send buffer as small as the system allows.
#[derive(Debug)]
struct SmallBuffers;

impl Connector for SmallBuffers {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        Box::pin(async move {
            let socket = TcpSocket::new_v4()?;
            socket.set_send_buffer_size(1)?;
            let address = peer.as_str().parse().map_err(io::Error::other)?;
            Ok(Stream::from(socket.connect(address).await?))
        })
    }
}

async fn listen() -> (TcpListener, Peer) {
    let socket = TcpSocket::new_v4().unwrap();
    // Accepted sockets inherit it.
    socket.set_recv_buffer_size(1).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(16).unwrap();
    let peer = Peer::from(listener.local_addr().unwrap());
    (listener, peer)
}

async fn accept(listener: &TcpListener, peer: &Peer) -> ScriptedPeer<TcpStream> {
    ScriptedPeer::at(peer.clone(), listener.accept().await.unwrap().0)
}

fn client() -> Client {
    let builder = Transport::builder(TransportConfig::default()).connector(Arc::new(SmallBuffers));
    Client::real(builder.build().unwrap())
}

#[tokio::test]
async fn a_mebibyte_to_a_socket_that_is_not_read_ends_in_writing_and_is_finished_when_it_is() {
    let ((listener, name), client) = (listen().await, client());
    let large = client.call(ask(ms(200)).to(name.clone()).body(vec![9; 1 << 20]));
    let mut peer = accept(&listener, &name).await;
    let error = large.fails().await;
    assert_ended(&error, Stage::Writing, Certainty::Unknown);
    assert!(matches!(error.kind(), TransportErrorKind::DeadlineExpired));
    assert_eq!(error.remote().map(Peer::from), Some(name.clone()));

    let behind = client.call(ask(60 * SECOND).to(name).code(1));
    assert_eq!(peer.expect_code(SEND).await.body(), &[9; 1 << 20]);
    let request = peer.expect_code(1).await;
    peer.respond(&request).await;
    behind.succeeds().await;
    assert_eq!(peer.frames_seen(), 2);
    assert_only_tombstones(&client, 1);
}

#[tokio::test]
async fn what_a_socket_did_not_take_before_it_was_reset_is_known_not_to_be_sent() {
    let ((listener, name), client) = (listen().await, client());
    let first = client.call(ask(60 * SECOND).to(name.clone()).code(1));
    let mut peer = accept(&listener, &name).await;
    peer.expect_code(1).await;
    let writing = client.call(ask(60 * SECOND).to(name.clone()).body(vec![9; 8 << 20]));
    // It has begun: the peer has seen a part of it.
    peer.read_bytes(1 << 10).await;
    let queued = client.call(ask(60 * SECOND).to(name).code(2));
    while client.usage().queued == 0 {
        tokio::task::yield_now().await;
    }
    peer.cut();
    assert_ended(&first.fails().await, Stage::AwaitingResponse, Certainty::Unknown);
    assert_ended(&writing.fails().await, Stage::Writing, Certainty::NotSent);
    assert_ended(&queued.fails().await, Stage::BeforeWrite, Certainty::NotSent);
    assert_idle(&client);
}

#[tokio::test]
async fn a_port_that_refuses_is_named_with_its_cause() {
    let taken = TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = taken.local_addr().unwrap();
    let client = Client::real(Transport::new(TransportConfig::default()).unwrap());
    let error = client.call(ask(60 * SECOND).to(address.into())).fails().await;
    assert_ended(&error, Stage::Connect, Certainty::NotSent);
    let TransportErrorKind::ConnectFailed(cause) = error.kind() else { panic!("{error}") };
    assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);
    let reason = cause.get_ref().and_then(|inner| inner.downcast_ref());
    let Some(ConnectError::Dial { failures }) = reason else { panic!("{cause:?}") };
    assert_eq!(failures[0].address, address);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert_idle(&client);
}
