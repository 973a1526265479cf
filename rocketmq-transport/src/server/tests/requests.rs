//! What happens to requests on one connection.

use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn a_request_in_either_form_is_answered_in_json_with_its_opaque() {
    let (mut client, _served) = in_memory(&Scripted::new(), ServerConfig::default(), PIPE);
    for (opaque, form) in [(7, HeaderEncoding::Json), (-8, HeaderEncoding::Binary)] {
        client.send(encoded(opaque, "hello", form)).await;
        let response = client.receive().await.unwrap();
        assert_eq!((response.opaque().0, response.code()), (opaque, Code::SUCCESS));
        assert_eq!((response.body(), response.encoding()), (&b"hello"[..], HeaderEncoding::Json));
        assert_eq!(response.version(), 479);
    }
}

#[tokio::test]
async fn a_server_of_the_older_kind_answers_in_the_form_of_the_request() {
    let config = ServerConfig { response_encoding: ResponseEncoding::AsRequest, ..ServerConfig::default() };
    let (mut client, _served) = in_memory(&Scripted::new(), config, PIPE);
    for form in [HeaderEncoding::Json, HeaderEncoding::Binary] {
        client.send(encoded(1, "hello", form)).await;
        assert_eq!(client.receive().await.unwrap().encoding(), form);
    }
}

#[tokio::test]
async fn a_function_is_a_handler_and_knows_the_client_by_its_address() {
    let handler = |_: Command, remote: SocketAddr| async move { Some(success(remote.to_string())) };
    let (near, far) = duplex(PIPE);
    let stream = Stream::new(near, Acceptance::Exact);
    tokio::spawn(serve(stream, CLIENT, Arc::new(handler), ServerConfig::default()));
    let mut client = Client::new(far);
    client.send(request(1, "")).await;
    assert_eq!(client.expect().await, (1, 0, CLIENT.to_string().into()));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_the_order_they_end() {
    let handler = Scripted::new();
    let (mut client, _served) = in_memory(&handler, ServerConfig::default(), PIPE);
    client.send([request(1, "wait"), request(2, "quick"), request(3, "nothing")].concat()).await;
    assert_eq!(client.expect().await, (2, 0, "quick".into()));
    handler.gate.add_permits(1);
    assert_eq!(client.expect().await, (1, 0, "wait".into()));
}

#[tokio::test]
async fn frames_are_served_whatever_pieces_they_come_in() {
    let (mut client, _served) = in_memory(&Scripted::new(), ServerConfig::default(), 1);
    client.send([request(1, "first"), encoded(2, "second", HeaderEncoding::Binary)].concat()).await;
    let mut opaques = [client.expect().await.0, client.expect().await.0];
    opaques.sort_unstable();
    assert_eq!(opaques, [1, 2]);
}

#[tokio::test]
async fn a_one_way_request_is_never_answered() {
    let handler = Scripted::new();
    let (mut client, served) = in_memory(&handler, ServerConfig::default(), PIPE);
    client.send([oneway(1, "hello"), oneway(2, "panic"), request(3, "hello")].concat()).await;
    assert_eq!(client.expect().await.0, 3);
    client.stream.shutdown().await.unwrap();
    assert!(client.receive().await.is_none());
    assert_eq!(handler.started(), 3);
    assert!(matches!(served.await.unwrap(), CloseCause::EndOfStream));
}

#[tokio::test]
async fn a_handler_that_panics_is_answered_for_and_the_connection_goes_on() {
    let handler = Scripted::new();
    let (mut client, _served) = in_memory(&handler, ServerConfig::default(), PIPE);
    client.send([request(1, "wait"), request(2, "panic")].concat()).await;
    let response = client.receive().await.unwrap();
    assert_eq!((response.opaque().0, response.code()), (2, Code::SYSTEM_ERROR));
    assert_eq!(response.remark().unwrap(), "the handler panicked");
    handler.gate.add_permits(1);
    assert_eq!(client.expect().await.0, 1);
}

#[tokio::test]
async fn a_response_that_is_too_large_becomes_a_failure_that_says_so() {
    let limits = FrameLimits { max_frame_bytes: 1_000, ..FrameLimits::default() };
    let config = ServerConfig { limits, ..ServerConfig::default() };
    let (mut client, _served) = in_memory(&Scripted::new(), config, PIPE);
    client.send(request(1, "large")).await;
    let response = client.receive().await.unwrap();
    assert_eq!((response.opaque().0, response.code()), (1, Code::SYSTEM_ERROR));
    assert!(response.remark().unwrap().contains("limit of 1000"), "{:?}", response.remark());
    client.send(request(2, "small")).await;
    assert_eq!(client.expect().await, (2, 0, "small".into()));
}

#[tokio::test(start_paused = true)]
async fn with_all_places_taken_nothing_is_read_until_one_is_free() {
    let handler = Scripted::new();
    let config =
        ServerConfig { max_in_flight: const { NonZeroUsize::new(2).unwrap() }, ..ServerConfig::default() };
    let (client, _served) = in_memory(&handler, config, 64);
    let (read, mut write) = tokio::io::split(client.stream);
    let many = request(1, "wait").repeat(1_000);
    let mut writing = tokio::spawn(async move { write.write_all(&many).await });
    let stuck = timeout(Duration::from_secs(60), &mut writing).await;
    assert!(stuck.is_err(), "the pipe takes it all while two requests are stuck");
    assert_eq!(handler.started(), 2);

    handler.gate.add_permits(1_000);
    let mut client = Client::new(tokio::io::join(read, tokio::io::sink()));
    for _ in 0..1_000 {
        client.expect().await;
    }
    writing.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_not_read_from_either() {
    let handler = Scripted::new();
    let (mut client, _served) = in_memory(&handler, ServerConfig::default(), PIPE);
    let reads_nothing = async {
        for opaque in 0..2_000 {
            client.send(request(opaque, "large")).await;
        }
    };
    assert!(timeout(Duration::from_secs(60), reads_nothing).await.is_err());
    let started = handler.started();
    assert!(started < 600, "{started} responses of 1 MiB were made for a client that reads none");
    for _ in 0..started {
        assert_eq!(client.expect().await.2.len(), 1 << 20);
    }
}

#[tokio::test]
async fn responses_from_a_client_are_counted_and_ignored() {
    let server = bind(&Scripted::new(), ServerConfig::default()).await;
    let mut client = dial(&server).await;
    let stray = success("").encode(Opaque(1), EncodeOptions::default(), &FrameLimits::default()).unwrap();
    client.send([stray, request(2, "hello")].concat()).await;
    assert_eq!(client.expect().await.0, 2);
    assert_eq!(server.ignored(), 1);
    server.close().await;
}
