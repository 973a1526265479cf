//! What happens to connections, over pipes, to the byte.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::Instant,
};

use super::*;
use crate::test_support::settle;

fn cut(direction: Direction, after: usize, how: Cut) -> FaultScript {
    FaultScript::new([Fault::on_connection(ConnectionFault::Cut { direction, after: after as u64, how })])
}

/// The bytes of the answer to one request.
async fn answer_bytes() -> usize {
    let mut served = Served::under(&FaultScript::default());
    served.ask(310, 1).await;
    served.client.bytes_seen() as usize
}

#[tokio::test]
async fn a_cut_after_each_byte_to_the_client_lets_exactly_those_through() {
    let whole = answer_bytes().await;
    for after in 0..=whole {
        for how in [Cut::Fin, Cut::Half] {
            let mut served = Served::under(&cut(Direction::Out, after, how));
            served.client.send_request(310, Opaque(1)).await;
            let rest = served.client.rest().await;
            assert_eq!((served.client.bytes_seen(), rest.frames.len()), (after as u64, after / whole));
            served.client.send_request(310, Opaque(2)).await;
            settle().await;
            let carried_out = if how == Cut::Half { 2 } else { 1 };
            assert_eq!(served.handler.handled(), carried_out, "{after} {how:?}");
        }
    }
}

#[tokio::test]
async fn a_cut_after_each_byte_of_the_client_carries_out_what_is_whole() {
    let frame = request(1);
    for after in 0..=frame.len() {
        for how in [Cut::Fin, Cut::Rst] {
            let (mut near, far) = PipeEnd::pair(1 << 16);
            let handler = Arc::new(Counting::default());
            let remote = SocketAddr::from(([192, 0, 2, 1], 1));
            let script = cut(Direction::In, after, how);
            let served =
                serve_with_faults(far, remote, Arc::clone(&handler), ServerConfig::default(), script);
            let served = tokio::spawn(served);
            near.write_all(&[&frame[..], &frame].concat()).await.unwrap();
            let seen = near.read(&mut [0; 1024]).await.map_err(|error| error.kind());
            let expected = if how == Cut::Fin { Ok(0) } else { Err(io::ErrorKind::ConnectionReset) };
            assert_eq!(seen, expected, "{after} {how:?}");
            drop(near);
            assert!(matches!(served.await.unwrap(), CloseCause::EndOfStream));
            assert_eq!(handler.handled(), after / frame.len(), "{after} {how:?}");
        }
    }
}

#[tokio::test]
async fn a_reset_reaches_a_client_that_waits_for_its_answer() {
    let script = cut(Direction::Out, 5, Cut::Rst);
    let (mut near, far) = PipeEnd::pair(1 << 16);
    let remote = SocketAddr::from(([192, 0, 2, 1], 1));
    let served =
        serve_with_faults(far, remote, Arc::new(Counting::default()), ServerConfig::default(), script);
    let exchange = async {
        near.write_all(&request(1)).await.unwrap();
        near.read(&mut [0; 1024]).await.unwrap_err().kind()
    };
    let (cause, seen) = tokio::join!(served, exchange);
    assert_eq!(seen, io::ErrorKind::ConnectionReset);
    assert!(matches!(cause, CloseCause::EndOfStream));
}

#[tokio::test]
async fn a_peer_that_stops_reading_answers_what_it_has_read_and_no_more() {
    let after = request(1).len() as u64 + 3;
    let script = FaultScript::new([Fault::on_connection(ConnectionFault::StopReading { after })]);
    let mut served = Served::under(&script);
    for opaque in [1, 2] {
        served.client.send_raw(&request(opaque)).await;
    }
    assert_eq!(served.answered().await, (1, 0));
    served.client.expect_nothing().await;
    assert_eq!(served.handler.handled(), 1);
    assert!(!served.ended.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_slow_connection_is_looked_at_after_its_delay_and_the_next_one_at_once() {
    let slow = ConnectionFault::Slow(Duration::from_secs(2));
    let script = FaultScript::new([Fault::on_connection(slow).times(1)]);
    let (mut first, mut second) = (Served::under(&script), Served::under(&script));
    let start = Instant::now();
    assert_eq!(second.ask(1, 1).await, (1, 0));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(first.ask(1, 1).await, (1, 0));
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

#[tokio::test]
async fn faults_of_several_kinds_strike_one_connection_and_of_one_kind_the_first() {
    let at = |after| Fault::on_connection(ConnectionFault::StopReading { after });
    let frame = request(1).len() as u64;
    let half = ConnectionFault::Cut { direction: Direction::Out, after: 4, how: Cut::Half };
    let script = FaultScript::new([at(2 * frame), at(0), Fault::on_connection(half)]);
    let mut served = Served::under(&script);
    for opaque in 1..4 {
        served.client.send_raw(&request(opaque)).await;
    }
    let rest = served.client.rest().await;
    assert_eq!((rest.torn.len(), script.struck()), (4, 3));
    settle().await;
    assert_eq!(served.handler.handled(), 2);
}

#[tokio::test]
async fn a_scripted_peer_can_be_served_under_a_script_in_the_middle_of_a_test() {
    let mut network = crate::test_support::Network::new(1 << 12);
    let transport = crate::Transport::builder(crate::TransportConfig::default());
    let transport = transport.connector(network.connector()).build().unwrap();
    let peer = "broker.example:10911".parse().unwrap();
    let call = || {
        let request = Request { code: Code(310), header: &(), body: Bytes::new() };
        transport.call(&peer, request, crate::RequestDeadline::never())
    };
    let (first, broker) = tokio::join!(call(), async {
        let mut broker = network.accept().await;
        let request = broker.expect_code(310).await;
        broker.respond(&request).await;
        broker
    });
    first.unwrap();
    let script = FaultScript::new([Fault::on_any(busy()).times(1)]);
    let remote = SocketAddr::from(([192, 0, 2, 1], 1));
    let handler = Arc::new(Counting::default());
    tokio::spawn(serve_with_faults(broker.into_stream(), remote, handler, ServerConfig::default(), script));
    assert_eq!(call().await.unwrap().response.code(), Code(2));
    assert_eq!(call().await.unwrap().response.code(), Code::SUCCESS);
}
