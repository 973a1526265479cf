//! rocketmq-client-rust 1.0.0 against a broker; the server is a name server.

use std::{process::ExitCode, sync::Arc};

use rocketmq_bench_published::{Answered, Options, Outcome, closed, run, text};
use rocketmq_client_rust::{ClientRuntime, ClientRuntimeConfig, DefaultMQProducer, SendStatus};
use rocketmq_model::common::message::message_single::Message;
use rocketmq_observability::TelemetryRuntimeGuard;
use rocketmq_runtime::RuntimeOwner;

fn main() -> ExitCode {
    run(measure)
}

async fn measure(options: &Options, runtime: &RuntimeOwner) -> Outcome<()> {
    let telemetry = TelemetryRuntimeGuard::noop();
    let context = runtime.root_context().component("bench");
    let client =
        ClientRuntime::try_new(context, ClientRuntimeConfig::default(), telemetry.handle()).map_err(text)?;
    let mut producer = DefaultMQProducer::builder(client)
        .producer_group("bench-producers")
        .name_server_addr(options.server.to_string())
        .build();
    producer.start().await.map_err(text)?;
    let producer = Arc::new(producer);
    let body = Arc::<[u8]>::from(vec![b'.'; options.body]);
    closed("published-producer", options, move |_| {
        let (producer, body) = (Arc::clone(&producer), Arc::clone(&body));
        async move { send(&producer, &body).await }
    })
    .await
}

async fn send(producer: &DefaultMQProducer, body: &[u8]) -> Outcome<Answered> {
    let message = Message::builder().topic("BenchTopic").body_slice(body).build_unchecked();
    match producer.send(message).await.map_err(text)? {
        Some(result) if result.send_status == SendStatus::SendOk => Ok(Answered::Yes),
        result => Err(format!("not stored: {result:?}").into()),
    }
}
