//! The future of a request, from its first poll to its end.
//!
//! Written by hand, so that it is as large as its largest state and not the sum of them: what a request holds before
//! its frame goes into a box, and only where it has to wait there.

use std::{
    future::Future,
    mem,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::{
    CallOptions, IntoCallOptions, Peer, Request, Transport, TransportError,
    channel::Carried,
    request::Kind,
    sent::{Ended, Sent, Wait},
    trip::Trip,
};

/// A request that has entered the transport and was not polled yet.
pub(crate) struct Entered<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) options: CallOptions,
    pub(crate) kind: Kind,
    pub(crate) at: Instant,
}

impl<'a> Entered<'a> {
    pub(crate) fn new(request: Request<'a>, options: impl IntoCallOptions, kind: Kind) -> Self {
        let at = Instant::now();
        Self { request, options: options.into_call_options(at), kind, at }
    }
}

pin_project! {
    /// A request on its way; `finish` makes its output.
    #[must_use = "nothing is sent before it is polled"]
    pub(crate) struct Call<'a, F> {
        transport: &'a Transport,
        peer: &'a Peer,
        finish: Option<F>,
        #[pin]
        state: State<'a>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<'a> {
        Entered { entered: Option<Entered<'a>> },
        /// It has to wait for something before its frame.
        Blocked { going_on: GoingOn<'a> },
        /// A connection has it.
        Sent { #[pin] wait: Wait<'a> },
    }
}

type GoingOn<'a> = Pin<Box<dyn Future<Output = Result<Sent<'a>, TransportError>> + Send + 'a>>;

impl<'a, F> Call<'a, F> {
    pub(crate) const fn new(
        transport: &'a Transport,
        peer: &'a Peer,
        entered: Entered<'a>,
        finish: F,
    ) -> Self {
        Self { transport, peer, finish: Some(finish), state: State::Entered { entered: Some(entered) } }
    }
}

impl<F: FnOnce(Ended) -> T, T> Future for Call<'_, F> {
    type Output = Result<T, TransportError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut call = self.project();
        let ended = loop {
            let sent = match call.state.as_mut().project() {
                StateProjection::Entered { entered } => {
                    match carry(call.transport, call.peer, entered.as_mut().expect(ENDED), cx.waker()) {
                        Ok(Carried::Sent(sent)) => Ok(sent),
                        Ok(Carried::Blocked(going_on)) => {
                            call.state.set(State::Blocked { going_on });
                            continue;
                        }
                        Err(error) => Err(error),
                    }
                }
                StateProjection::Blocked { going_on } => ready!(going_on.as_mut().poll(cx)),
                StateProjection::Sent { wait } => break ready!(wait.poll(cx)),
            };
            match sent {
                Ok(sent) => call.state.set(State::Sent { wait: sent.wait() }),
                Err(error) => break Err(error),
            }
        };
        call.state.set(State::Entered { entered: None });
        if let Err(error) = &ended {
            call.transport.log_failure(call.peer, error);
        }
        let finish = call.finish.take().expect(ENDED);
        Poll::Ready(ended.map(finish))
    }
}

/// Carries a request as far as it goes without a wait.
#[inline]
fn carry<'a>(
    transport: &'a Transport,
    peer: &'a Peer,
    entered: &mut Entered<'a>,
    waker: &Waker,
) -> Result<Carried<'a, GoingOn<'a>>, TransportError> {
    let Entered { request, options, kind, at } = entered;
    let mut trip = Trip::start(peer, request.code, *kind, options, *at);
    let channel = transport.channel(peer);
    let blocked = match channel.carry(&mut trip, request, waker)? {
        Carried::Sent(sent) => return Ok(Carried::Sent(sent)),
        Carried::Blocked(blocked) => blocked,
    };
    let request = Request { body: mem::take(&mut request.body), ..*request };
    Ok(Carried::Blocked(Box::pin(async move { channel.go_on(trip, request, blocked).await })))
}

/// The contract of every future.
const ENDED: &str = "a call is not polled after its end";
