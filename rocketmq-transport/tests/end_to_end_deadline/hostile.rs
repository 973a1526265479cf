//! A peer that sends what is not the protocol's, or only a part of it.

use rocketmq_transport::{
    Certainty, CloseCause, EncodeOptions, FrameError, FrameLimits, Opaque, Response, Stage,
    TransportErrorKind,
    test_support::{ScriptedPeer, settle},
};

use crate::support::*;

/// Has a connected peer send `bytes` while a call waits, and says why the connection ended.
async fn lost_by(bytes: &[u8]) -> CloseCause {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(60 * SECOND));
    peer.expect().await;
    peer.send_raw(bytes).await;
    let error = call.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    peer.expect_end().await;
    assert_idle(&client);
    // The next call finds another connection.
    connected(&client, &mut network).await;
    match error.kind() {
        TransportErrorKind::ConnectionLost(cause) => cause.clone(),
        kind => panic!("the connection was not lost: {kind}"),
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_bytes_close_the_connection_with_an_error_that_names_the_fault() {
    let json = |header: &str| {
        let mut frame = ((header.len() + 4) as u32).to_be_bytes().to_vec();
        frame.extend((header.len() as u32).to_be_bytes());
        frame.extend(header.as_bytes());
        frame
    };
    let cases: [(Vec<u8>, Fault, &str); 8] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), |e| matches!(e, FrameError::TooLong { .. }), "HTTP/1"),
        (vec![0x15, 3, 3, 0, 2, 2, 40, 0], |e| matches!(e, FrameError::TooLong { .. }), "TLS"),
        (vec![0x7F, 0xFF, 0xFF, 0xFF], |e| matches!(e, FrameError::TooLong { .. }), "over the limit"),
        (vec![0, 0, 0, 3, 0], |e| matches!(e, FrameError::TooShort { .. }), "3 bytes"),
        (vec![0, 0, 0, 8, 9, 0, 0, 4], |e| matches!(e, FrameError::UnknownEncoding { .. }), "encoding 9"),
        (vec![0, 0, 0, 8, 0, 0, 0, 5], |e| matches!(e, FrameError::HeaderBeyondFrame { .. }), "does not fit"),
        (json("{\"code\":0,"), |e| matches!(e, FrameError::Json(_)), "JSON header"),
        (json("{\"code\":0,\"flag\":1}"), |e| matches!(e, FrameError::MissingOpaque), "without an opaque"),
    ];
    for (bytes, is_expected, hint) in cases {
        let cause = lost_by(&bytes).await;
        let CloseCause::Malformed(fault) = &cause else { panic!("{cause}") };
        assert!(is_expected(fault), "{fault:?}");
        assert!(cause.to_string().contains(hint), "{cause}");
    }
}

/// Which fault is expected.
type Fault = fn(&FrameError) -> bool;

/// A whole answer to the request with `opaque`, of which a test sends what it likes.
fn answer(opaque: Opaque) -> Vec<u8> {
    let response = Response {
        code: rocketmq_transport::Code::SUCCESS,
        remark: None,
        header: Box::new(()),
        body: vec![1; 100].into(),
    };
    response.encode(opaque, EncodeOptions::default(), &FrameLimits::default()).unwrap()
}

async fn begin_half(peer: &mut ScriptedPeer) -> Vec<u8> {
    let frame = answer(peer.expect().await.opaque());
    peer.send_raw(&frame[..50]).await;
    settle().await;
    frame
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_stays_incomplete_closes_the_connection() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(60 * SECOND));
    begin_half(&mut peer).await;
    let error = call.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert!(matches!(
        error.kind(),
        TransportErrorKind::ConnectionLost(CloseCause::FrameReadTimeout { limit }) if *limit == 30 * SECOND
    ));
    assert_eq!(error.elapsed(), 30 * SECOND);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_dribbles_in_within_the_limit_is_taken() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(60 * SECOND));
    let frame = begin_half(&mut peer).await;
    for byte in &frame[50..] {
        pass(ms(100)).await;
        peer.send_raw(&[*byte]).await;
    }
    assert_eq!(call.succeeds().await.response.body(), [1; 100]);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_dribbles_in_past_the_limit_closes_the_connection_all_the_same() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let call = client.call(ask(60 * SECOND));
    let frame = begin_half(&mut peer).await;
    for byte in &frame[50..79] {
        pass(SECOND).await;
        peer.send_raw(&[*byte]).await;
    }
    assert!(call.is_pending().await);
    let error = call.fails().await;
    assert_ended(&error, Stage::AwaitingResponse, Certainty::Unknown);
    assert_eq!(error.elapsed(), 30 * SECOND);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_outlives_the_limit_of_an_incomplete_frame() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    pass(60 * SECOND).await;
    let call = client.call(ask(SECOND));
    let request = peer.expect().await;
    peer.send_raw(&answer(request.opaque())).await;
    call.succeeds().await;
    assert_eq!(network.dials(), 1);
    assert_idle(&client);
}

#[tokio::test(start_paused = true)]
async fn answers_in_front_of_malformed_bytes_are_delivered() {
    let (client, mut network) = scene(ROOMY);
    let mut peer = connected(&client, &mut network).await;
    let (answered, lost) = (client.call(ask(SECOND)), client.call(ask(SECOND)));
    let (first, _second) = (peer.expect().await, peer.expect().await);
    let mut bytes = answer(first.opaque());
    bytes.extend([0xFF; 8]);
    peer.send_raw(&bytes).await;
    answered.succeeds().await;
    assert_ended(&lost.fails().await, Stage::AwaitingResponse, Certainty::Unknown);
    assert_idle(&client);
}
