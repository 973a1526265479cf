//! What only sockets do: refusals, resets, and an orderly end with bytes unread.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::*;
use crate::Server;

async fn bind(script: &FaultScript) -> Server {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let handler = Arc::new(Counting::default());
    Server::bind_with_faults(address, handler, ServerConfig::default(), script.clone()).await.unwrap()
}

async fn dial(server: &Server) -> ScriptedPeer<TcpStream> {
    let stream = TcpStream::connect(server.local_addr()).await.unwrap();
    ScriptedPeer::at(server.local_addr().into(), stream)
}

#[tokio::test]
async fn while_nothing_listens_the_system_refuses_and_open_connections_go_on() {
    let script = FaultScript::default();
    let server = bind(&script).await;
    let mut open = dial(&server).await;
    open.send_request(310, Opaque(1)).await;
    open.expect().await;

    script.set(["connect=refuse".parse().unwrap()]);
    // The socket is closed by a task of its own; a dial that it surprises is accepted or reset.
    while TcpStream::connect(server.local_addr()).await.map_err(|error| error.kind()).err()
        != Some(io::ErrorKind::ConnectionRefused)
    {
        tokio::task::yield_now().await;
    }
    open.send_request(310, Opaque(2)).await;
    assert_eq!(open.expect().await.opaque(), Opaque(2));

    script.set([]);
    let mut again = loop {
        match TcpStream::connect(server.local_addr()).await {
            Ok(stream) => break ScriptedPeer::at(server.local_addr().into(), stream),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    again.send_request(310, Opaque(3)).await;
    assert_eq!(again.expect().await.opaque(), Opaque(3));
    server.close().await;
}

#[tokio::test]
async fn a_reset_is_seen_as_a_reset() {
    let script = FaultScript::new(["cut=in:4:rst".parse().unwrap()]);
    let server = bind(&script).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&request(1)).await.unwrap();
    assert_eq!(stream.read(&mut [0; 64]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn an_orderly_end_is_no_reset_though_the_client_sends_more() {
    let script = FaultScript::new(["cut=in:4:fin".parse().unwrap()]);
    let server = bind(&script).await;
    let mut stream = TcpStream::connect(server.local_addr()).await.unwrap();
    stream.write_all(&request(1)).await.unwrap();
    assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 0);
    stream.write_all(&request(2)).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(stream.read(&mut [0; 64]).await.unwrap(), 0);
    while server.connections() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_listens_no_more_can_be_closed() {
    let script = FaultScript::new(["connect=refuse".parse().unwrap()]);
    let server = bind(&script).await;
    server.close().await;
    assert_eq!(script.struck(), 0);
}
