//! Servers under a script, as their clients see them.

mod connections;
mod requests;
mod sockets;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use tokio::task::JoinHandle;

use super::*;
use crate::{
    CloseCause, Command, EncodeOptions, FrameLimits, Handler, Opaque, Request, Response, ServerConfig,
    serve_with_faults,
    test_support::{PipeEnd, ScriptedPeer},
};

/// Answers each request with success and counts it.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl Counting {
    fn handled(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Handler for Counting {
    async fn handle(&self, _: Command, _: SocketAddr) -> Option<Response> {
        self.0.fetch_add(1, Relaxed);
        Some(Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body: Bytes::new() })
    }
}

/// A client whose server runs under a script, over a pipe.
struct Served {
    client: ScriptedPeer,
    handler: Arc<Counting>,
    ended: JoinHandle<CloseCause>,
}

impl Served {
    fn under(script: &FaultScript) -> Self {
        Self::from(script, 1)
    }

    /// The client at `port`.
    fn from(script: &FaultScript, port: u16) -> Self {
        let (near, far) = PipeEnd::pair(1 << 16);
        let handler = Arc::new(Counting::default());
        let remote = SocketAddr::from(([192, 0, 2, 1], port));
        let config = ServerConfig::default();
        let served = serve_with_faults(far, remote, Arc::clone(&handler), config, script.clone());
        Self { client: ScriptedPeer::at(remote.into(), near), handler, ended: tokio::spawn(served) }
    }

    /// Sends one request and returns number and status of the next response.
    async fn ask(&mut self, code: i32, opaque: i32) -> (i32, i32) {
        self.client.send_request(code, Opaque(opaque)).await;
        self.answered().await
    }

    async fn answered(&mut self) -> (i32, i32) {
        let response = self.client.expect().await;
        assert!(response.is_response());
        (response.opaque().0, response.code().0)
    }
}

fn request(opaque: i32) -> Vec<u8> {
    let request = Request { code: Code(310), header: &(), body: Bytes::from_static(b"body") };
    request.encode(Opaque(opaque), EncodeOptions::default(), &FrameLimits::default()).unwrap()
}

fn busy() -> RequestFault {
    RequestFault::Answer { code: Code(2), remark: "busy".into() }
}
