mod lifecycle;
mod requests;

use std::sync::Mutex;

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex},
    net::TcpStream,
    sync::{Notify, Semaphore},
    task::JoinHandle,
};

use super::*;
use crate::{Acceptance, Code, EncodeOptions, HeaderEncoding, Opaque, Request, decode_frame};

/// The client's end of a connection.
struct Client<S> {
    stream: S,
    input: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    fn new(stream: S) -> Self {
        Self { stream, input: BytesMut::new() }
    }

    async fn send(&mut self, frame: impl AsRef<[u8]>) {
        self.stream.write_all(frame.as_ref()).await.unwrap();
    }

    /// The next response; nothing at the end of the stream.
    async fn receive(&mut self) -> Option<Command> {
        loop {
            if let Some(command) = decode_frame(&mut self.input, &FrameLimits::default()).unwrap() {
                assert!(command.is_response());
                return Some(command);
            }
            if self.stream.read_buf(&mut self.input).await.unwrap() == 0 {
                return None;
            }
        }
    }

    /// Opaque, code and body of the next response.
    async fn expect(&mut self) -> (i32, i32, Bytes) {
        let response = self.receive().await.expect("a response");
        (response.opaque().0, response.code().0, response.body_bytes())
    }
}

/// A handler that does what the body of a request says.
struct Scripted {
    started: AtomicUsize,
    running: AtomicUsize,
    /// Lets one request that says `wait` go on for each permit.
    gate: Semaphore,
    /// How many requests were still running when each connection ended.
    ended: Mutex<Vec<usize>>,
    changed: Notify,
}

impl Scripted {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            started: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            gate: Semaphore::new(0),
            ended: Mutex::default(),
            changed: Notify::new(),
        })
    }

    fn started(&self) -> usize {
        self.started.load(Ordering::Relaxed)
    }

    fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    fn ended(&self) -> Vec<usize> {
        self.ended.lock().unwrap().clone()
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            self.changed.notified().await;
        }
    }
}

impl Handler for Scripted {
    async fn handle(&self, request: Command, _: SocketAddr) -> Option<Response> {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.running.fetch_add(1, Ordering::Relaxed);
        let _running = Running(self);
        self.changed.notify_one();
        match request.body() {
            b"wait" => self.gate.acquire().await.unwrap().forget(),
            b"panic" => panic!("asked to"),
            b"nothing" => return None,
            b"large" => return Some(success(vec![0; 1 << 20])),
            _ => {}
        }
        Some(success(request.body_bytes()))
    }

    fn disconnected(&self, _: SocketAddr) {
        self.ended.lock().unwrap().push(self.running());
        self.changed.notify_one();
    }
}

/// Counts a request for as long as its future lives.
struct Running<'a>(&'a Scripted);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}

fn success(body: impl Into<Bytes>) -> Response {
    Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body: body.into() }
}

fn request(opaque: i32, body: &'static str) -> Vec<u8> {
    encoded(opaque, body, HeaderEncoding::Json)
}

fn encoded(opaque: i32, body: &'static str, encoding: HeaderEncoding) -> Vec<u8> {
    let options = EncodeOptions { encoding, ..EncodeOptions::default() };
    let request = Request { code: Code(10), header: &(), body: body.into() };
    request.encode(Opaque(opaque), options, &FrameLimits::default()).unwrap()
}

fn oneway(opaque: i32, body: &'static str) -> Vec<u8> {
    let request = Request { code: Code(10), header: &(), body: body.into() };
    request.encode_oneway(Opaque(opaque), EncodeOptions::default(), &FrameLimits::default()).unwrap()
}

/// A client over an in-memory pipe of `bytes`, and why its connection ends.
fn in_memory(
    handler: &Arc<Scripted>,
    config: ServerConfig,
    bytes: usize,
) -> (Client<DuplexStream>, JoinHandle<CloseCause>) {
    let (near, far) = duplex(bytes);
    let served = serve(Stream::new(near, Acceptance::Exact), CLIENT, Arc::clone(handler), config);
    (Client::new(far), tokio::spawn(served))
}

async fn bind(handler: &Arc<Scripted>, config: ServerConfig) -> Server {
    Server::bind(([127, 0, 0, 1], 0).into(), Arc::clone(handler), config).await.unwrap()
}

async fn dial(server: &Server) -> Client<TcpStream> {
    Client::new(TcpStream::connect(server.local_addr()).await.unwrap())
}

const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 1);
const PIPE: usize = 64 << 10;
