//! The end of the runtime in the middle of something: its tasks are dropped where they are, and those that are
//! started then are dropped on the spot.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use rocketmq_transport::{
    Acceptance, Certainty, Connecting, Connector, Peer, Stage, Stream, Transport, TransportConfig,
    TransportError, TransportErrorKind,
};
use tokio::runtime::{Builder, Runtime};

use crate::support::*;

/// What `script` returns, which must come: a script that hangs fails.
fn returns<T: Send + 'static>(script: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, returned) = channel();
    thread::spawn(move || done.send(script()));
    returned.recv_timeout(PATIENCE).expect("the script panicked or hangs")
}

fn runtime(builder: &mut Builder) -> Runtime {
    builder.enable_all().build().unwrap()
}

#[test]
fn a_call_that_begins_while_the_runtime_ends_fails_and_hangs_nothing() {
    let error = returns(|| {
        let runtime = runtime(&mut Builder::new_current_thread());
        let (sender, ended) = channel();
        let (client, _network) = scene(ROOMY);
        runtime.spawn(CallsWhenDropped { client: Client::real(client.transport), sender });
        runtime.block_on(tokio::task::yield_now());
        drop(runtime);
        ended.recv().unwrap()
    });
    assert_ended(&error, Stage::Connect, Certainty::NotSent);
    assert!(matches!(error.kind(), TransportErrorKind::ConnectFailed(_)), "{error}");
}

/// A task that begins a call when it is dropped, and says how that ended.
struct CallsWhenDropped {
    client: Client,
    sender: Sender<TransportError>,
}

impl Future for CallsWhenDropped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        let mut call = self.client.begin(ask(SECOND));
        if let Poll::Ready(Err(error)) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            self.sender.send(error).unwrap();
        }
    }
}

#[test]
fn a_connection_that_opens_while_the_runtime_ends_is_lost_to_callers_of_another_runtime() {
    let error = returns(|| {
        let (shutdown_begun, begun) = channel();
        let (dialing, dialed) = channel();
        let connector = OpensAtTheEnd { dialing, begun: Mutex::new(begun) };
        let builder = Transport::builder(TransportConfig::default()).connector(Arc::new(connector));
        let client = Client::real(builder.build().unwrap());
        let other = runtime(&mut Builder::new_current_thread());

        let ending = runtime(Builder::new_multi_thread().worker_threads(2));
        ending.spawn(SaysWhenDropped(shutdown_begun));
        ending.spawn(client.begin(ask(SECOND)));
        dialed.recv().unwrap();
        let waiting = other.spawn(client.begin(ask(SECOND)));
        let ending = thread::spawn(move || drop(ending));
        let error = other.block_on(waiting).unwrap().unwrap_err();
        ending.join().unwrap();
        error
    });
    assert_eq!(error.certainty(), Certainty::NotSent, "{error}");
    assert!(error.elapsed() < SECOND, "it waited for its deadline: {error}");
}

/// A task that says when its runtime has begun to drop tasks.
struct SaysWhenDropped(Sender<()>);

impl Future for SaysWhenDropped {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

impl Drop for SaysWhenDropped {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
    }
}

/// Its first dial blocks its worker until the runtime drops tasks, and succeeds then; others fail.
#[derive(Debug)]
struct OpensAtTheEnd {
    dialing: Sender<()>,
    begun: Mutex<Receiver<()>>,
}

impl Connector for OpensAtTheEnd {
    fn connect<'a>(&'a self, _: &'a Peer) -> Connecting<'a> {
        Box::pin(async {
            // Nobody listens any more to a second dial.
            self.dialing.send(()).map_err(io::Error::other)?;
            self.begun.lock().unwrap().recv().map_err(io::Error::other)?;
            let (near, _far) = tokio::io::duplex(64);
            Ok(Stream::new(near, Acceptance::Exact))
        })
    }
}

/// How long a script may take that does not hang.
const PATIENCE: Duration = Duration::from_secs(60);
