//! The future of a request, from its first poll to its end.
//!
//! Written by hand, so that it is as large as its largest state and not the sum of them: what a request holds before
//! its frame goes into a box, and only where it has to wait there.

use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use tokio::time::Instant;

use crate::{
    IntoCallOptions, Peer, Request, Transport, TransportError,
    channel::Carried,
    request::Kind,
    sent::{Ended, Sent, Wait},
    trip::Trip,
};

/// A request that was not polled yet. It enters the transport, and its clock starts, with the first poll.
pub(crate) struct Entering<'a, O> {
    pub(crate) request: Request<'a>,
    pub(crate) options: O,
    pub(crate) kind: Kind,
}

/// A request on its way; `finish` makes its output.
#[must_use = "nothing is sent before it is polled"]
pub(crate) struct Call<'a, O, F> {
    transport: &'a Transport,
    peer: &'a Peer,
    finish: Option<F>,
    state: State<'a, O>,
}

enum State<'a, O> {
    Entering(Entering<'a, O>),
    /// It has to wait for something before its frame.
    Blocked(GoingOn<'a>),
    /// A connection has it.
    Sent(Wait<'a>),
    Ended,
}

type GoingOn<'a> = Pin<Box<dyn Future<Output = Result<Sent<'a>, TransportError>> + Send + 'a>>;

impl<'a, O, F> Call<'a, O, F> {
    pub(crate) const fn new(
        transport: &'a Transport,
        peer: &'a Peer,
        entering: Entering<'a, O>,
        finish: F,
    ) -> Self {
        Self { transport, peer, finish: Some(finish), state: State::Entering(entering) }
    }
}

impl<O, F, T> Future for Call<'_, O, F>
where
    O: IntoCallOptions + Unpin,
    F: FnOnce(Ended) -> T + Unpin,
{
    type Output = Result<T, TransportError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        let ended = loop {
            let sent = match &mut call.state {
                State::Entering(entering) => match carry(call.transport, call.peer, entering, cx.waker()) {
                    Ok(Carried::Sent(sent)) => Ok(sent),
                    Ok(Carried::Blocked(going_on)) => {
                        call.state = State::Blocked(going_on);
                        continue;
                    }
                    Err(error) => Err(error),
                },
                State::Blocked(going_on) => ready!(going_on.as_mut().poll(cx)),
                State::Sent(wait) => break ready!(Pin::new(wait).poll(cx)),
                State::Ended => panic!("{ENDED}"),
            };
            match sent {
                Ok(sent) => call.state = State::Sent(sent.wait()),
                Err(error) => break Err(error),
            }
        };
        call.state = State::Ended;
        if let Err(error) = &ended {
            call.transport.log_failure(call.peer, error);
        }
        let finish = call.finish.take().expect(ENDED);
        Poll::Ready(ended.map(finish))
    }
}

/// Carries a request as far as it goes without a wait.
#[inline]
fn carry<'a, O: IntoCallOptions>(
    transport: &'a Transport,
    peer: &'a Peer,
    entering: &mut Entering<'a, O>,
    waker: &Waker,
) -> Result<Carried<'a, GoingOn<'a>>, TransportError> {
    let Entering { request, options, kind } = entering;
    let now = Instant::now();
    let mut trip = Trip::start(peer, request.code, *kind, &options.into_call_options(now), now);
    let (channels, new);
    channels = transport.channels();
    let channel = match channels.get(peer) {
        Some(channel) => channel,
        None => {
            new = transport.channel(peer);
            &new
        }
    };
    let blocked = match channel.carry(&mut trip, request, waker)? {
        Carried::Sent(sent) => return Ok(Carried::Sent(sent)),
        Carried::Blocked(blocked) => blocked,
    };
    let (channel, request) =
        (Arc::clone(channel), Request { body: mem::take(&mut request.body), ..*request });
    Ok(Carried::Blocked(Box::pin(async move { channel.go_on(trip, request, blocked).await })))
}

/// The contract of every future.
const ENDED: &str = "a call is not polled after its end";
