//! The pipe with what a real client cannot do without: the header encoded from typed fields, the answer's header
//! read to its end, and a deadline timer, in each call.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_transport::Code;
use tokio::time::timeout;

use super::pipe::Pipe;
use crate::{
    Outcome,
    args::Plan,
    load::{Caller, Multiplexed},
    wire::{
        DEADLINE, HELD, HELD_DEADLINE, SEND, SendHeader,
        read::{self, Head},
        write,
    },
};

/// One caller of a pipe that all callers share.
#[derive(Clone)]
pub(crate) struct RawFull {
    pipe: Arc<Pipe<Answer>>,
    body: Bytes,
    count: u64,
}

/// An answer with its header read.
struct Answer {
    head: Head,
    frame: Bytes,
}

impl RawFull {
    /// A caller of each connection.
    pub(crate) async fn connect(plan: &Plan) -> Outcome<Vec<Self>> {
        let body = Bytes::from(vec![b'.'; plan.cell.body]);
        let mut callers = Vec::new();
        for server in plan.servers() {
            let pipe = Pipe::connect(server, |frame| {
                let len = read::header_len(&frame).ok_or("an answer without header")?;
                let header = frame.get(8..8 + len).ok_or("a header beyond its frame")?;
                let head = read::head(header, |_, _| ())?;
                Ok((head.opaque, Answer { head, frame }))
            });
            callers.push(Self { pipe: pipe.await?, body: body.clone(), count: 0 });
        }
        Ok(callers)
    }

    async fn ask(&mut self, code: Code, limit: Duration) -> Outcome<()> {
        let (opaque, answer) = {
            self.count += 1;
            let header = SendHeader::numbered(self.count);
            let head = |out: &mut _, opaque| write::send(out, code.0, &header, opaque, self.body.len());
            self.pipe.ask(head, &self.body)
        };
        let Ok(answer) = timeout(limit, answer).await else {
            self.pipe.forget(opaque);
            return Err("not answered in time".into());
        };
        let Answer { head, frame } = answer?;
        if (head.code, head.flag & 1) != (0, 1) || frame.is_empty() {
            return Err("refused".into());
        }
        Ok(())
    }
}

impl Caller for RawFull {
    async fn call(&mut self) -> Outcome<()> {
        self.ask(SEND, DEADLINE).await
    }
}

impl Multiplexed for RawFull {
    async fn held(&mut self) -> Outcome<()> {
        self.ask(HELD, HELD_DEADLINE).await
    }
}
