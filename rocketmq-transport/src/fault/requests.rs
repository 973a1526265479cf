//! A handler whose requests a script has its say in.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use tokio::time::sleep;

use super::{FaultScript, RequestFault};
use crate::{
    Command, Handler, Response,
    server::{Answering, Reply},
};

/// Answers as `handler` does, but where a fault of `script` is due.
#[derive(Debug)]
pub(crate) struct Faulty<H> {
    pub(crate) handler: Arc<H>,
    pub(crate) script: FaultScript,
}

impl<H: Handler> Answering for Faulty<H> {
    /// Decided as the request comes in, so that faults count requests in their order.
    type Manner = Option<RequestFault>;

    fn manner(&self, request: &Command, remote: SocketAddr) -> Self::Manner {
        self.script.due_for_request(request.code(), request.opaque(), remote)
    }

    async fn answer(&self, request: Command, remote: SocketAddr, fault: Self::Manner) -> Reply {
        let opaque = request.opaque();
        let done = match fault {
            Some(RequestFault::Ignore) => return Reply::default(),
            Some(RequestFault::Answer { code, remark }) => {
                let remark = Some(remark).filter(|remark| !remark.is_empty());
                return Some(Response { code, remark, header: Box::new(()), body: Bytes::new() }).into();
            }
            _ => Reply::from(self.handler.handle(request, remote).await),
        };
        match fault {
            Some(RequestFault::Delay(delay)) => {
                sleep(delay).await;
                done
            }
            Some(RequestFault::Never) => Reply::default(),
            Some(RequestFault::Twice) => Reply { copies: 2, ..done },
            Some(RequestFault::Opaque(wrong)) => {
                Reply { opaque: Some(self.script.wrong_opaque(wrong, opaque, remote)), ..done }
            }
            Some(RequestFault::Garbage { bytes }) => {
                Reply { raw: vec![0xff; bytes].into(), ..Reply::default() }
            }
            Some(RequestFault::Ignore | RequestFault::Answer { .. }) | None => done,
        }
    }

    fn disconnected(&self, remote: SocketAddr) {
        self.handler.disconnected(remote);
    }
}
