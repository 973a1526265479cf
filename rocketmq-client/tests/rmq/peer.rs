//! A name server and broker in one whose answers the test decides on.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use rocketmq_transport::{AclSigner, Code, Command, Fields, Handler, Header, Response, Server, ServerConfig};
use tokio::sync::Semaphore;

/// What the peer does with requests, and what it has seen.
#[derive(Debug)]
pub(crate) struct Peer {
    address: OnceLock<SocketAddr>,
    /// Refuses everything that these credentials have not signed, if there are any.
    signer: Option<AclSigner>,
    /// One permit for each send that has come.
    pub(crate) arrived: Semaphore,
    /// One permit for each send that may be answered.
    pub(crate) allowed: Semaphore,
}

impl Peer {
    /// Starts to listen.
    pub(crate) async fn start(signer: Option<AclSigner>) -> (Server, Arc<Self>) {
        let (arrived, allowed) = (Semaphore::new(0), Semaphore::new(0));
        let peer = Arc::new(Self { address: OnceLock::new(), signer, arrived, allowed });
        let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::clone(&peer), ServerConfig::default());
        let server = server.await.expect("there is a free port");
        peer.address.set(server.local_addr()).expect("nobody else sets it");
        (server, peer)
    }

    fn route(&self) -> Bytes {
        let address = self.address.get().expect("it is set before anybody knows it");
        let queues =
            r#"[{"brokerName":"peer","readQueueNums":4,"writeQueueNums":4,"perm":6,"topicSysFlag":0}]"#;
        let brokers = format!(r#"[{{"cluster":"c","brokerName":"peer","brokerAddrs":{{"0":"{address}"}}}}]"#);
        format!(r#"{{"queueDatas":{queues},"brokerDatas":{brokers}}}"#).into()
    }
}

impl Handler for Peer {
    async fn handle(&self, request: Command, _: SocketAddr) -> Option<Response> {
        let answer = |code, header, body| Some(Response { code, remark: None, header, body });
        if self.signer.as_ref().is_some_and(|signer| !signer.has_signed(&request)) {
            return answer(NO_PERMISSION, Box::new(()), Bytes::new());
        }
        match request.code() {
            ROUTE => answer(Code::SUCCESS, Box::new(()), self.route()),
            SEND => {
                self.arrived.add_permits(1);
                self.allowed.acquire().await.expect("it is never closed").forget();
                answer(Code::SUCCESS, Box::new(Stored), Bytes::new())
            }
            _ => answer(Code::SUCCESS, Box::new(()), Bytes::new()),
        }
    }
}

/// The fields of the response to every send.
struct Stored;

impl Header for Stored {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("msgId", "7F00000100002A9F0000000000001000");
        fields.int("queueId", 0);
        fields.int("queueOffset", 0);
    }
}

const ROUTE: Code = Code(105);
const SEND: Code = Code(310);
const NO_PERMISSION: Code = Code(16);
