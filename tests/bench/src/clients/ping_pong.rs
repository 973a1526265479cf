//! One task that writes a request and then reads its answer: no channel, no table, no other task.

use bytes::{Buf, BytesMut};
use memchr::memmem::Finder;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    Outcome,
    args::Plan,
    load::Caller,
    wire::{FIRST_OPAQUE, SEND, read, write::Template},
};

pub(crate) struct PingPong {
    stream: TcpStream,
    template: Template,
    body: Vec<u8>,
    output: Vec<u8>,
    input: BytesMut,
    finder: Finder<'static>,
    opaque: u32,
}

impl PingPong {
    pub(crate) async fn connect(plan: &Plan) -> Outcome<Self> {
        if plan.cell.in_flight != 1 {
            return Err("ping-pong has one request in flight".into());
        }
        let stream = TcpStream::connect(plan.server).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            template: Template::new(SEND.0, plan.cell.body),
            body: vec![b'.'; plan.cell.body],
            output: Vec::new(),
            input: BytesMut::new(),
            finder: Finder::new(read::OPAQUE),
            opaque: FIRST_OPAQUE,
        })
    }
}

impl Caller for PingPong {
    async fn call(&mut self) -> Outcome<()> {
        self.opaque += 1;
        self.output.clear();
        self.template.write(&mut self.output, self.opaque);
        self.output.extend_from_slice(&self.body);
        self.stream.write_all(&self.output).await?;
        let len = loop {
            match read::frame_len(&self.input) {
                Some(len) => break len,
                None if self.stream.read_buf(&mut self.input).await? == 0 => return Err("closed".into()),
                None => {}
            }
        };
        if read::opaque(&self.input[..len], &self.finder) != Some(self.opaque) {
            return Err("an answer to something else".into());
        }
        self.input.advance(len);
        Ok(())
    }
}
