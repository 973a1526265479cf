//! What a transport meets: dials, sockets and a signer that do as the schedule says, and keep a log.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use rocketmq_transport::{
    Acceptance, Connecting, Connector, Peer, Request, SignError, Signature, Signer, Signing, Stream,
    test_support::PipeEnd,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep},
};

use crate::{
    peer::serve,
    plan::{Dial, How, Schedule, SigningPlan, Vouches},
};

/// The surroundings of one transport.
#[derive(Debug)]
pub(crate) struct World {
    schedule: Arc<Schedule>,
    log: Mutex<Log>,
}

/// What the surroundings have seen.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) dials: Vec<DialLog>,
    /// In the order in which they were opened, which is that of their generations.
    pub(crate) connections: Vec<Arc<Mutex<ConnectionLog>>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DialLog {
    pub(crate) peer: usize,
    pub(crate) began: Instant,
    pub(crate) ended: Option<(Instant, Dialed)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialed {
    Connected,
    Failed,
    /// The transport gave it up.
    Dropped,
}

#[derive(Clone, Debug)]
pub(crate) struct ConnectionLog {
    pub(crate) peer: usize,
    pub(crate) opened: Instant,
    /// Every byte that has left, and how many had at which instant.
    pub(crate) left: Vec<u8>,
    pub(crate) marks: Vec<(usize, Instant)>,
    /// The same of every byte that a write was shown: on a stream that does not vouch it counts as having left.
    pub(crate) shown: Vec<(usize, Instant)>,
    /// The requests that the peer has decoded, by number.
    pub(crate) decoded: Vec<usize>,
    /// The requests it has answered: the last byte was on its way back then.
    pub(crate) answered: Vec<(usize, Instant)>,
    pub(crate) cut: Option<(How, Instant)>,
    /// When the transport let go of it.
    pub(crate) let_go: Option<Instant>,
}

impl World {
    pub(crate) fn new(schedule: &Arc<Schedule>) -> Arc<Self> {
        Arc::new(Self { schedule: Arc::clone(schedule), log: Mutex::default() })
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    fn open(&self, peer: usize) -> Stream {
        let (near, far) = PipeEnd::pair(self.schedule.settings.pipe_bytes);
        let log = Arc::new(Mutex::new(ConnectionLog {
            peer,
            opened: Instant::now(),
            left: Vec::new(),
            marks: Vec::new(),
            shown: Vec::new(),
            decoded: Vec::new(),
            answered: Vec::new(),
            cut: None,
            let_go: None,
        }));
        let mut world = self.log();
        let earlier = world.connections.iter().filter(|other| lock(other).peer == peer).count();
        world.connections.push(Arc::clone(&log));
        tokio::spawn(serve(Arc::clone(&self.schedule), earlier, far, Arc::clone(&log)));
        let acceptance = match self.schedule.peers[peer].vouches {
            Vouches::Yes => Acceptance::Exact,
            Vouches::No => Acceptance::Offered,
        };
        Stream::new(Tapped { end: near, log }, acceptance)
    }
}

/// What the transport calls a peer.
pub(crate) fn name(peer: usize) -> Peer {
    format!("peer-{peer}.example:10911").parse().expect("an address")
}

impl Connector for World {
    fn connect<'a>(&'a self, peer: &'a Peer) -> Connecting<'a> {
        let peer = (0..self.schedule.peers.len()).find(|index| name(*index) == *peer).expect("a known peer");
        let mut log = self.log();
        let earlier = log.dials.iter().filter(|dial| dial.peer == peer).count();
        let place = log.dials.len();
        log.dials.push(DialLog { peer, began: Instant::now(), ended: None });
        drop(log);
        let dials = &self.schedule.peers[peer].dials;
        let plan = dials[earlier.min(dials.len() - 1)];
        let mut ending = DialEnding { world: self, place, how: Dialed::Dropped };
        Box::pin(async move {
            match plan {
                Dial::Connects => {}
                Dial::ConnectsAfter(wait) => sleep(Duration::from_millis(wait)).await,
                Dial::Fails(kind) => {
                    ending.note(Dialed::Failed);
                    return Err(kind.into());
                }
                Dial::Hangs => std::future::pending().await,
            }
            ending.note(Dialed::Connected);
            Ok(self.open(peer))
        })
    }
}

/// Notes how a dial ended, also where it was dropped.
struct DialEnding<'a> {
    world: &'a World,
    place: usize,
    how: Dialed,
}

impl DialEnding<'_> {
    fn note(&mut self, how: Dialed) {
        self.how = how;
    }
}

impl Drop for DialEnding<'_> {
    fn drop(&mut self) {
        self.world.log().dials[self.place].ended = Some((Instant::now(), self.how));
    }
}

/// Signs each request as its plan says.
#[derive(Debug)]
pub(crate) struct ScheduledSigner(pub(crate) Arc<Schedule>);

impl Signer for ScheduledSigner {
    fn max_header_bytes(&self) -> usize {
        20
    }

    fn sign<'a>(&'a self, request: &'a Request<'a>) -> Signing<'a> {
        let signed = || Ok(vec![("Signature".into(), "scheduled".to_owned())]);
        let failed = || Err(Arc::new(io::Error::other("scheduled")) as SignError);
        let later = |wait, signed: Result<Signature, SignError>| {
            Signing::Pending(Box::pin(async move {
                sleep(Duration::from_millis(wait)).await;
                signed
            }))
        };
        match self.0.requests[number(&request.body)].signing {
            SigningPlan::AtOnce => Signing::Ready(signed()),
            SigningPlan::After(wait) => later(wait, signed()),
            SigningPlan::Fails => Signing::Ready(failed()),
            SigningPlan::FailsAfter(wait) => later(wait, failed()),
        }
    }
}

/// The body of a request: its number, and the number's last byte as often as it takes.
pub(crate) fn body(number: usize, length: usize) -> Vec<u8> {
    let mut body = vec![number as u8; length];
    body[..4].copy_from_slice(&(number as u32).to_be_bytes());
    body
}

/// The number of a request, or of the request that a response answers.
pub(crate) fn number(body: &[u8]) -> usize {
    u32::from_be_bytes(body[..4].try_into().expect("four bytes")) as usize
}

pub(crate) fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The transport's end of a pipe, with a log of what leaves.
struct Tapped {
    end: PipeEnd,
    log: Arc<Mutex<ConnectionLog>>,
}

impl AsyncRead for Tapped {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.end).poll_write_vectored(cx, slices);
        let mut log = lock(&self.log);
        let shown = log.left.len() + slices.iter().map(|slice| slice.len()).sum::<usize>();
        if log.shown.last().is_none_or(|(earlier, _)| *earlier < shown) {
            log.shown.push((shown, Instant::now()));
        }
        if let Poll::Ready(Ok(accepted)) = polled {
            log.left.extend(slices.iter().flat_map(|slice| slice.iter()).take(accepted));
            let mark = (log.left.len(), Instant::now());
            log.marks.push(mark);
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end).poll_shutdown(cx)
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        lock(&self.log).let_go = Some(Instant::now());
    }
}

impl fmt::Debug for Tapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tapped").finish_non_exhaustive()
    }
}
