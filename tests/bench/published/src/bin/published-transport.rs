//! rocketmq-transport 1.0.0 against the neutral server.

use std::{process::ExitCode, sync::Arc, time::Duration};

use bytes::Bytes;
use cheetah_string::CheetahString;
use rocketmq_bench_published::{Answered, Options, Outcome, closed, run, text};
use rocketmq_protocol::{
    code::request_code::RequestCode,
    protocol::{
        header::message_operation_header::send_message_request_header_v2::SendMessageRequestHeaderV2,
        remoting_command::RemotingCommand,
    },
};
use rocketmq_runtime::RuntimeOwner;
use rocketmq_transport::api::{
    DefaultRequestProcessor, OutboundRequestOutcome, OutboundRequestRejectionReason, RequestDeadline,
    TransportClient, TransportClientConfig,
};

type Client = TransportClient<DefaultRequestProcessor>;

fn main() -> ExitCode {
    run(measure)
}

async fn measure(options: &Options, runtime: &RuntimeOwner) -> Outcome<()> {
    let context = runtime.root_context().component("bench");
    let client: Client = TransportClient::builder(
        Arc::new(TransportClientConfig::default()),
        DefaultRequestProcessor,
        context,
    )
    .build()
    .map_err(text)?;
    let client = Arc::new(client);
    client.start().await.map_err(text)?;
    let server = CheetahString::from_string(options.server.to_string());
    let body = Bytes::from(vec![b'.'; options.body]);
    closed("published", options, move |count| {
        let (client, server, body) = (Arc::clone(&client), server.clone(), body.clone());
        async move { call(&client, &server, body, count).await }
    })
    .await
}

async fn call(client: &Client, server: &CheetahString, body: Bytes, count: u64) -> Outcome<Answered> {
    let request =
        RemotingCommand::create_request_command(RequestCode::SendMessageV2, header(count)).set_body(body);
    let deadline = RequestDeadline::after(Duration::from_secs(3));
    match client.invoke_request_with_deadline(Some(server), request, deadline).await.map_err(text)? {
        OutboundRequestOutcome::Response(response) if response.code() == 0 => Ok(Answered::Yes),
        OutboundRequestOutcome::Rejected(rejection)
            if rejection.reason() == OutboundRequestRejectionReason::QueueSaturated =>
        {
            Ok(Answered::Refused)
        }
        outcome => Err(format!("{outcome:?}").into()),
    }
}

/// The fields that `bench` sends with its other clients.
fn header(count: u64) -> SendMessageRequestHeaderV2 {
    SendMessageRequestHeaderV2 {
        a: CheetahString::from_static_str("bench-producers"),
        b: CheetahString::from_static_str("BenchTopic"),
        c: CheetahString::from_static_str("TBW102"),
        d: 4,
        e: (count % 4) as i32,
        f: 0,
        g: 1_760_000_000_000 + count as i64,
        h: 0,
        i: Some(CheetahString::from_static_str(
            "UNIQ_KEY\u{1}7F00000100002A9F18B4AAC2D1F10001\u{2}WAIT\u{1}true\u{2}",
        )),
        j: Some(0),
        n: Some(CheetahString::from_static_str("broker-a")),
        ..SendMessageRequestHeaderV2::default()
    }
}
