//! Our producer, as an application would use it.

use std::sync::Arc;

use bytes::Bytes;
use rocketmq_client::{Message, Producer};

use crate::{
    Outcome,
    args::Plan,
    load::Caller,
    wire::{GROUP, TOPIC},
};

/// One caller of a producer that all callers share.
#[derive(Clone)]
pub(crate) struct OurProducer {
    producer: Producer,
    topic: Arc<str>,
    body: Bytes,
}

impl OurProducer {
    /// A producer that asks the plan's server for the route.
    pub(crate) fn new(plan: &Plan) -> Outcome<Self> {
        let producer = Producer::builder(GROUP).namesrv(&plan.server.to_string()).build()?;
        Ok(Self { producer, topic: TOPIC.into(), body: plan.body() })
    }
}

impl Caller for OurProducer {
    async fn call(&mut self) -> Outcome<()> {
        let message = Message::new(Arc::clone(&self.topic), self.body.clone());
        self.producer.send(message).await?;
        Ok(())
    }
}
