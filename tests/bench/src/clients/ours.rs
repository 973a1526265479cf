//! Ours, as an application at transport level would use it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_transport::{
    Acceptance, Code, Connecting, Connector, Limit, Peer, Request, Stream, Transport, TransportConfig,
};
use tokio::net::TcpStream;

use crate::{
    Outcome,
    args::Plan,
    counting::Counting,
    load::{Caller, Multiplexed},
    wire::{DEADLINE, HELD, HELD_DEADLINE, SEND, SendHeader},
};

/// One caller of a transport that all callers share.
#[derive(Clone)]
pub(crate) struct Ours {
    shared: Arc<(Transport, Peer)>,
    body: Bytes,
    count: u64,
}

impl Ours {
    /// A caller of each connection.
    pub(crate) fn each(plan: &Plan) -> Outcome<Vec<Self>> {
        let mut config = TransportConfig::default();
        let room = Limit { requests: 1 << 20, bytes: 16 << 30 };
        (config.client_limit, config.peer_limit, config.data_limit) = (room, room, room);
        let mut builder = Transport::builder(config);
        if plan.count_writes {
            builder = builder.connector(Arc::new(CountingConnector));
        }
        let transport = builder.build()?;
        let body = Bytes::from(vec![b'.'; plan.cell.body]);
        let caller = |server| Self {
            shared: Arc::new((transport.clone(), Peer::from(server))),
            body: body.clone(),
            count: 0,
        };
        Ok(plan.servers().map(caller).collect())
    }

    async fn ask(&mut self, code: Code, limit: Duration) -> Outcome<()> {
        self.count += 1;
        let (transport, peer) = &*self.shared;
        let header = SendHeader::numbered(self.count);
        let request = Request { code, header: &header, body: self.body.clone() };
        let completed = transport.call(peer, request, limit).await?;
        if completed.response.code() != Code::SUCCESS {
            return Err("refused".into());
        }
        Ok(())
    }
}

impl Caller for Ours {
    async fn call(&mut self) -> Outcome<()> {
        self.ask(SEND, DEADLINE).await
    }
}

impl Multiplexed for Ours {
    async fn held(&mut self) -> Outcome<()> {
        self.ask(HELD, HELD_DEADLINE).await
    }
}

/// Bytes of the future that a call is, which every task that makes one holds.
pub(crate) fn call_future_bytes() -> Outcome<usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let transport = Transport::new(TransportConfig::default())?;
    let peer = "127.0.0.1:10911".parse()?;
    let header = SendHeader::numbered(0);
    let request = Request { code: SEND, header: &header, body: Bytes::new() };
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
