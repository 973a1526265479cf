//! The bare pipe with what a broker needs of each send: a key of its own, the time, a queue; and what a sender needs
//! of the answer: where the message is.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;

use super::pipe::Pipe;
use crate::{
    Outcome,
    args::Plan,
    load::Caller,
    wire::{
        TOPIC_QUEUES, decimal,
        message::{Difference, MessageTemplate},
        read::{self, Head},
    },
};

/// One caller of a pipe to one broker that all callers share.
#[derive(Clone)]
pub(crate) struct RawProducer {
    pipe: Arc<Pipe<Answer>>,
    template: Arc<MessageTemplate>,
    body: Bytes,
    /// The same part of all keys of this caller, and what is added with each.
    caller: u32,
    count: u32,
}

/// An answer with its header read.
struct Answer {
    code: i32,
    stored: Option<Stored>,
}

/// Where a broker says that it has stored a message.
struct Stored {
    message_id: Bytes,
    queue_id: u32,
    queue_offset: i64,
}

impl RawProducer {
    /// As many callers as the plan has in flight, of one connection to the plan's server.
    pub(crate) async fn connect(plan: &Plan) -> Outcome<Vec<Self>> {
        let pipe = Pipe::connect(plan.server, read_answer).await?;
        let template = Arc::new(MessageTemplate::new(plan.cell.body));
        let body = plan.body();
        let caller = |caller| Self {
            pipe: Arc::clone(&pipe),
            template: Arc::clone(&template),
            body: body.clone(),
            caller,
            count: caller,
        };
        Ok((0..plan.cell.in_flight as u32).map(caller).collect())
    }
}

impl Caller for RawProducer {
    async fn call(&mut self) -> Outcome<()> {
        self.count = self.count.wrapping_add(1);
        let born = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64;
        let queue = self.count % TOPIC_QUEUES;
        let difference = Difference { queue, born, key: [self.caller, self.count] };
        let write = |out: &mut Vec<u8>, opaque| self.template.write(out, opaque, difference);
        let (_, answer) = self.pipe.ask(write, &self.body);
        let Answer { code, stored } = answer.await?;
        let Some(Stored { message_id, queue_id, queue_offset }) = stored else {
            return Err(format!("the broker answered {code}").into());
        };
        if message_id.is_empty() || queue_id != queue || queue_offset < 0 {
            return Err("stored somewhere else".into());
        }
        Ok(())
    }
}

/// Reads the header of an answer to its end, with the fields of a send that was stored.
fn read_answer(frame: Bytes) -> Outcome<(u32, Answer)> {
    let len = read::header_len(&frame).ok_or("an answer without header")?;
    let header = frame.get(8..8 + len).ok_or("a header beyond its frame")?;
    let (mut message_id, mut queue_id, mut queue_offset) = (None, None, None);
    let Head { code, opaque, .. } = read::head(header, |name, value| match name {
        b"msgId" => message_id = Some(frame.slice_ref(value)),
        b"queueId" => queue_id = decimal::read(value).and_then(|(id, _)| u32::try_from(id).ok()),
        b"queueOffset" => queue_offset = decimal::read(value).map(|(offset, _)| offset),
        _ => {}
    })?;
    let stored = message_id.zip(queue_id).zip(queue_offset).filter(|_| code == 0);
    let stored =
        stored.map(|((message_id, queue_id), queue_offset)| Stored { message_id, queue_id, queue_offset });
    Ok((opaque, Answer { code, stored }))
}
