//! How connections and servers begin and end.

use std::{collections::VecDeque, future};

use tokio::{task::yield_now, time::Instant};

use super::*;

#[tokio::test]
async fn a_malformed_frame_ends_its_connection_and_no_other() {
    let handler = Scripted::new();
    let server = bind(&handler, ServerConfig::default()).await;
    let (mut good, mut bad) = (dial(&server).await, dial(&server).await);
    good.send(request(1, "wait")).await;
    bad.send("GET / HTTP/1.1\r\n\r\n").await;
    assert!(bad.receive().await.is_none());
    handler.gate.add_permits(1);
    assert_eq!(good.expect().await.0, 1);
    handler.until(|handler| handler.ended().len() == 1).await;
    server.close().await;
}

#[tokio::test]
async fn the_end_of_a_malformed_connection_says_what_was_wrong() {
    let (mut client, served) = in_memory(&Scripted::new(), ServerConfig::default(), PIPE);
    client.send([0xff; 8]).await;
    assert!(matches!(served.await.unwrap(), CloseCause::Malformed(_)));
}

#[tokio::test]
async fn a_client_that_ends_its_direction_still_gets_its_responses() {
    let handler = Scripted::new();
    let server = bind(&handler, ServerConfig::default()).await;
    let mut client = dial(&server).await;
    client.send([request(1, "wait"), request(2, "wait")].concat()).await;
    client.stream.shutdown().await.unwrap();
    handler.until(|handler| handler.started() == 2).await;
    handler.gate.add_permits(2);
    let mut opaques = [client.expect().await.0, client.expect().await.0];
    opaques.sort_unstable();
    assert_eq!(opaques, [1, 2]);
    assert!(client.receive().await.is_none());
    handler.until(|handler| handler.ended() == [0]).await;
    assert_eq!(server.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_client_that_has_left_end_with_the_drain() {
    let handler = Scripted::new();
    let (mut client, served) = in_memory(&handler, ServerConfig::default(), PIPE);
    let start = Instant::now();
    client.send(request(1, "wait")).await;
    client.stream.shutdown().await.unwrap();
    assert!(client.receive().await.is_none());
    assert!(matches!(served.await.unwrap(), CloseCause::EndOfStream));
    assert_eq!(start.elapsed().as_secs(), ServerConfig::default().max_drain.as_secs());
    assert_eq!(handler.ended(), [0], "the request has ended before the handler learns of its client's end");
}

#[tokio::test]
async fn a_drain_without_limit_waits_for_the_last_response() {
    let handler = Scripted::new();
    let config = ServerConfig { max_drain: Duration::MAX, ..ServerConfig::default() };
    let (mut client, served) = in_memory(&handler, config, PIPE);
    client.send(request(1, "wait")).await;
    client.stream.shutdown().await.unwrap();
    handler.until(|handler| handler.started() == 1).await;
    handler.gate.add_permits(1);
    assert_eq!(client.expect().await.0, 1);
    assert!(matches!(served.await.unwrap(), CloseCause::EndOfStream));
}

#[tokio::test]
async fn a_lost_connection_ends_its_requests_and_the_handler_learns_of_it() {
    let handler = Scripted::new();
    let (mut client, served) = in_memory(&handler, ServerConfig::default(), PIPE);
    client.send([request(1, "wait"), request(2, "wait")].concat()).await;
    handler.until(|handler| handler.started() == 2).await;
    drop(client);
    handler.gate.add_permits(1);
    assert!(matches!(served.await.unwrap(), CloseCause::Io(_)));
    assert_eq!(handler.ended(), [0]);
}

#[tokio::test]
async fn closing_finishes_what_is_in_flight_and_takes_nothing_more() {
    let handler = Scripted::new();
    let server = bind(&handler, ServerConfig::default()).await;
    let (mut busy, mut idle) = (dial(&server).await, dial(&server).await);
    busy.send(request(1, "wait")).await;
    idle.send(request(1, "hello")).await;
    assert_eq!(idle.expect().await.0, 1);
    handler.until(|handler| handler.started() == 2).await;
    assert_eq!(server.connections(), 2);

    let closing = async {
        tokio::join!(server.close(), server.close());
    };
    let clients = async {
        assert!(idle.receive().await.is_none());
        handler.gate.add_permits(1);
        assert_eq!(busy.expect().await.0, 1);
        assert!(busy.receive().await.is_none());
    };
    tokio::join!(closing, clients);
    assert!(TcpStream::connect(server.local_addr()).await.is_err());
    assert_eq!((handler.ended().len(), server.connections()), (2, 0));
    server.close().await;
}

#[tokio::test]
async fn closing_does_not_wait_for_a_request_beyond_the_drain() {
    let handler = Scripted::new();
    let server = bind(&handler, ServerConfig { max_drain: Duration::ZERO, ..ServerConfig::default() }).await;
    let mut client = dial(&server).await;
    client.send(request(1, "wait")).await;
    handler.until(|handler| handler.started() == 1).await;
    server.close().await;
    assert!(client.receive().await.is_none());
    assert_eq!(handler.ended(), [0]);
}

#[tokio::test]
async fn a_close_that_is_dropped_goes_on() {
    let handler = Scripted::new();
    let server = bind(&handler, ServerConfig::default()).await;
    let mut client = dial(&server).await;
    client.send(request(1, "wait")).await;
    handler.until(|handler| handler.started() == 1).await;
    tokio::select! {
        biased;
        () = server.close() => panic!("it does not wait for the request in flight"),
        () = future::ready(()) => {}
    }
    handler.gate.add_permits(1);
    assert_eq!(client.expect().await.0, 1);
    assert!(client.receive().await.is_none());
}

#[tokio::test]
async fn a_dropped_server_ends_everything_and_leaves_its_port_free() {
    let handler = Scripted::new();
    let server = bind(&handler, ServerConfig::default()).await;
    let mut client = dial(&server).await;
    client.send(request(1, "wait")).await;
    handler.until(|handler| handler.started() == 1).await;
    let address = server.local_addr();
    drop(server);
    assert!(client.receive().await.is_none());
    handler.until(|handler| handler.running() == 0 && handler.ended().len() == 1).await;
    Server::bind(address, handler, ServerConfig::default()).await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_an_error() {
    let server = bind(&Scripted::new(), ServerConfig::default()).await;
    let taken = Server::bind(server.local_addr(), Scripted::new(), ServerConfig::default()).await;
    assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test(start_paused = true)]
async fn a_socket_that_cannot_accept_is_asked_again_after_pauses() {
    let (near, far) = duplex(PIPE);
    let emfile = || io::Error::from_raw_os_error(24);
    let mut script = VecDeque::from_iter((0..10).map(|_| Err(emfile())));
    script.push_back(Err(io::ErrorKind::ConnectionAborted.into()));
    script.push_back(Ok((Stream::new(near, Acceptance::Exact), CLIENT)));
    let next = move |_: &mut Context<'_>| script.pop_front().map_or(Poll::Pending, Poll::Ready);

    let service =
        Service { handler: Scripted::new(), config: ServerConfig::default(), counts: Arc::default() };
    let (start, stop) = (Instant::now(), CancellationToken::new());
    let accepting = tokio::spawn(accept(next, service, stop.clone()));
    let mut client = Client::new(far);
    client.send(request(1, "hello")).await;
    assert_eq!(client.expect().await.0, 1);
    // 10, 20, 40 … 640 ms, then three of one second.
    assert_eq!(start.elapsed().as_millis(), 1_270 + 3_000);
    stop.cancel();
    accepting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_close_during_such_a_pause_does_not_wait_for_it() {
    let next = |_: &mut Context<'_>| Poll::Ready(Err(io::ErrorKind::Other.into()));
    let service =
        Service { handler: Scripted::new(), config: ServerConfig::default(), counts: Arc::default() };
    let (start, stop) = (Instant::now(), CancellationToken::new());
    let accepting = tokio::spawn(accept(next, service, stop.clone()));
    yield_now().await;
    stop.cancel();
    accepting.await.unwrap();
    assert_eq!(start.elapsed(), Duration::ZERO);
}
