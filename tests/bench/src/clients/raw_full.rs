//! The pipe with what a real client cannot do without: the header encoded from typed fields, the answer's header
//! read to its end, and a deadline timer, in each call.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_transport::Code;
use tokio::time::timeout;

use super::{
    pipe::Pipe,
    sender::{Link, Sender},
};
use crate::{
    Outcome,
    args::Plan,
    wire::{
        SendHeader,
        read::{self, Head},
        write,
    },
};

/// The pipe to one server.
#[derive(Clone)]
pub(crate) struct RawFull(Arc<Pipe<Answer>>);

/// An answer with its header read.
pub(crate) struct Answer {
    head: Head,
    frame: Bytes,
}

impl RawFull {
    /// A caller of each connection.
    pub(crate) async fn connect(plan: &Plan) -> Outcome<Vec<Sender<Self>>> {
        let mut callers = Vec::new();
        for server in plan.servers() {
            callers.push(Sender::new(Self(Pipe::connect(server, read_answer).await?), plan));
        }
        Ok(callers)
    }
}

impl Link for RawFull {
    async fn send(&self, code: Code, count: u64, body: &Bytes, limit: Duration) -> Outcome<()> {
        let Self(pipe) = self;
        let (opaque, answer) = {
            let header = SendHeader::numbered(count);
            pipe.ask(|out, opaque| write::send(out, code.0, &header, opaque, body.len()), body)
        };
        let Ok(answer) = timeout(limit, answer).await else {
            pipe.forget(opaque);
            return Err("not answered in time".into());
        };
        let Answer { head, frame } = answer?;
        if (head.code, head.flag & 1) != (0, 1) || frame.is_empty() {
            return Err("refused".into());
        }
        Ok(())
    }
}

/// Reads the header of an answer to its end.
fn read_answer(frame: Bytes) -> Outcome<(u32, Answer)> {
    let len = read::header_len(&frame).ok_or("an answer without header")?;
    let header = frame.get(8..8 + len).ok_or("a header beyond its frame")?;
    let head = read::head(header, |_, _| ())?;
    Ok((head.opaque, Answer { head, frame }))
}
