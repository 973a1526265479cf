//! The bare pipe: header bytes made once and patched with the opaque, and no look at the answer but for its opaque.

use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem::Finder;

use super::pipe::Pipe;
use crate::{
    Outcome,
    args::Plan,
    load::{Caller, Multiplexed},
    wire::{HELD, SEND, read, write::Template},
};

/// One caller of a pipe that all callers of a connection share.
#[derive(Clone)]
pub(crate) struct Raw {
    pipe: Arc<Pipe<Bytes>>,
    templates: Arc<Templates>,
    body: Bytes,
}

struct Templates {
    answered: Template,
    held: Template,
}

impl Raw {
    /// A caller of each connection.
    pub(crate) async fn connect(plan: &Plan) -> Outcome<Vec<Self>> {
        let len = plan.cell.body;
        let templates =
            Arc::new(Templates { answered: Template::new(SEND.0, len), held: Template::new(HELD.0, len) });
        let mut callers = Vec::new();
        for server in plan.servers() {
            let finder = Finder::new(read::OPAQUE);
            let pipe = Pipe::connect(server, move |frame| {
                let opaque = read::opaque(&frame, &finder).ok_or("an answer without opaque")?;
                Ok((opaque, frame))
            });
            callers.push(Self { pipe: pipe.await?, templates: Arc::clone(&templates), body: plan.body() });
        }
        Ok(callers)
    }

    async fn ask(&self, template: &Template) -> Outcome<()> {
        let (_, answer) = self.pipe.ask(|out, opaque| template.write(out, opaque), &self.body);
        answer.await?;
        Ok(())
    }
}

impl Caller for Raw {
    async fn call(&mut self) -> Outcome<()> {
        self.ask(&self.templates.answered).await
    }
}

impl Multiplexed for Raw {
    async fn held(&mut self) -> Outcome<()> {
        self.ask(&self.templates.held).await
    }
}
