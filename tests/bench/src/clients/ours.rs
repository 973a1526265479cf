//! Ours, as an application at transport level would use it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_transport::{
    Acceptance, Code, Connecting, Connector, Fields, Header, Limit, Peer, Request, Stream, Transport,
    TransportConfig,
};
use tokio::net::TcpStream;

use super::sender::{Link, Sender};
use crate::{
    Outcome,
    args::Plan,
    counting::Counting,
    wire::{DEADLINE, SEND, SendHeader},
};

/// A transport and whom it asks.
#[derive(Clone)]
pub(crate) struct Ours(Arc<(Transport, Peer)>);

impl Ours {
    /// A caller of each connection.
    pub(crate) fn each(plan: &Plan) -> Outcome<Vec<Sender<Self>>> {
        let mut config = TransportConfig::default();
        let room = Limit { requests: 1 << 20, bytes: 16 << 30 };
        (config.client_limit, config.peer_limit, config.data_limit) = (room, room, room);
        let mut builder = Transport::builder(config);
        if plan.count_writes {
            builder = builder.connector(Arc::new(CountingConnector));
        }
        let transport = builder.build()?;
        let link = |server| Self(Arc::new((transport.clone(), Peer::from(server))));
        Ok(plan.servers().map(|server| Sender::new(link(server), plan)).collect())
    }
}

impl Link for Ours {
    async fn send(&self, code: Code, count: u64, body: &Bytes, limit: Duration) -> Outcome<()> {
        let (transport, peer) = &*self.0;
        let request = Request { code, header: &Numbered(count), body: body.clone() };
        let completed = transport.call(peer, request, limit).await?;
        if completed.response.code() != Code::SUCCESS {
            return Err("refused".into());
        }
        Ok(())
    }
}

/// The header of the send of this number, which is what a caller keeps while it waits.
struct Numbered(u64);

impl Header for Numbered {
    fn write(&self, fields: &mut Fields<'_>) {
        SendHeader::numbered(self.0).write(fields);
    }
}

/// Bytes of the future that a call is, which every task that makes one holds.
pub(crate) fn call_future_bytes() -> Outcome<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let transport = Transport::new(TransportConfig::default())?;
    let peer = "127.0.0.1:10911".parse()?;
    let request = Request { code: SEND, header: &Numbered(0), body: Bytes::new() };
    Ok(size_of_val(&transport.call(&peer, request, DEADLINE)))
}

/// Connects as the transport's own connector does, with a counter in front of the socket.
#[derive(Debug)]
struct CountingConnector;

impl Connector for CountingConnector {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect((peer.host(), peer.port())).await?;
            stream.set_nodelay(true)?;
            Ok(Stream::new(Counting(stream), Acceptance::Exact))
        })
    }
}
