use std::sync::Mutex;

use tokio::net::{TcpListener, TcpSocket};

use super::*;
use crate::stream::Io;

/// Answers with a fixed list or failure, and remembers whom it was asked for.
#[derive(Debug, Default)]
struct Scripted {
    addresses: Vec<SocketAddr>,
    failure: Option<io::ErrorKind>,
    asked: Mutex<Vec<String>>,
}

impl Resolver for Scripted {
    fn resolve<'a>(&'a self, peer: &'a Peer) -> Resolving<'a> {
        self.asked.lock().unwrap().push(peer.to_string());
        Box::pin(async move {
            match self.failure {
                Some(kind) => Err(io::Error::new(kind, "no such host")),
                None => Ok(self.addresses.clone()),
            }
        })
    }
}

fn to(addresses: Vec<SocketAddr>) -> TcpConnector {
    TcpConnector::with_resolver(Arc::new(Scripted { addresses, ..Scripted::default() }))
}

/// A port that is taken, so that no other test gets it, and on which nobody listens.
fn refusing() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

async fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn named() -> Peer {
    "broker.example:10911".parse().unwrap()
}

fn reason(error: &io::Error) -> &ConnectError {
    error.get_ref().and_then(|inner| inner.downcast_ref()).expect("every failure of the connector is typed")
}

#[tokio::test]
async fn a_connection_is_open_to_the_address_and_sends_without_delay() {
    let (listener, address) = listening().await;
    let stream = TcpConnector::new().connect(&address.into()).await.unwrap();
    assert_eq!(stream.remote, Some(address));
    let Io::Tcp(socket) = &stream.io else { panic!("not TCP") };
    assert!(socket.nodelay().unwrap());
    assert_eq!(listener.accept().await.unwrap().1, socket.local_addr().unwrap());
}

#[tokio::test]
async fn a_host_that_is_an_address_is_never_resolved() {
    let resolver = Arc::new(Scripted { failure: Some(io::ErrorKind::Other), ..Scripted::default() });
    let connector = TcpConnector::with_resolver(Arc::clone(&resolver) as Arc<dyn Resolver>);
    let (_listener, address) = listening().await;
    connector.connect(&address.into()).await.unwrap();
    let (_taken, closed) = refusing();
    let v6 = format!("[::ffff:127.0.0.1]:{}", closed.port()).parse().unwrap();
    connector.connect(&v6).await.unwrap_err();
    assert!(resolver.asked.lock().unwrap().is_empty());
    connector.connect(&named()).await.unwrap_err();
    assert_eq!(*resolver.asked.lock().unwrap(), ["broker.example:10911"]);
}

#[tokio::test]
async fn a_refused_address_keeps_its_kind_and_is_named() {
    let (_taken, address) = refusing();
    let error = TcpConnector::new().connect(&address.into()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let ConnectError::Dial { failures } = reason(&error) else { panic!("{error:?}") };
    assert_eq!(failures[0].address, address);
}

#[tokio::test]
async fn the_next_address_is_tried_after_one_that_refuses() {
    let ((_taken, closed), (_listener, open)) = (refusing(), listening().await);
    let stream = to(vec![closed, open]).connect(&named()).await.unwrap();
    assert_eq!(stream.remote, Some(open));
}

#[tokio::test]
async fn when_all_addresses_refuse_each_is_named() {
    let ((_taken, first), (_taken_too, second)) = (refusing(), refusing());
    let error = to(vec![first, second]).connect(&named()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains(&first.to_string()) && text.contains(&second.to_string()), "{text}");
}

#[tokio::test]
async fn a_host_without_addresses_is_an_error_that_names_it() {
    let error = to(Vec::new()).connect(&named()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(matches!(reason(&error), ConnectError::NoAddress { .. }));
    assert!(error.to_string().contains("broker.example:10911"), "{error}");
}

#[tokio::test]
async fn a_failed_resolution_is_told_apart_from_a_failed_dial() {
    let failure = Some(io::ErrorKind::TimedOut);
    let resolver = Scripted { failure, ..Scripted::default() };
    let error = TcpConnector::with_resolver(Arc::new(resolver)).connect(&named()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(matches!(reason(&error), ConnectError::Resolve { .. }));
    assert!(error.to_string().contains("broker.example:10911"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "no such host");
}

#[tokio::test]
async fn the_operating_system_resolves_localhost() {
    let (_listener, address) = listening().await;
    let peer = format!("localhost:{}", address.port()).parse().unwrap();
    let stream = TcpConnector::default().connect(&peer).await.unwrap();
    assert_eq!(stream.remote, Some(address));
}

#[tokio::test]
async fn a_dial_that_meets_itself_counts_as_refused() {
    let (socket, address) = refusing();
    let stream = socket.connect(address).await.unwrap();
    assert_eq!(refuse_self(&stream).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
}
