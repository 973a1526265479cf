//! What a connection asks for the answer to a request.

use std::{future::Future, net::SocketAddr};

use bytes::Bytes;

use super::Handler;
use crate::{Command, Opaque, Response};

/// A [`Handler`], or one that does not always answer as it should.
pub(crate) trait Answering: Send + Sync + 'static {
    /// What is known of a request's answer as soon as the request has come in.
    type Manner: Send + 'static;

    /// Called for each request in the order they come in, before anything else is done about it.
    fn manner(&self, request: &Command, remote: SocketAddr) -> Self::Manner;

    /// As [`Handler::handle`].
    fn answer(
        &self,
        request: Command,
        remote: SocketAddr,
        manner: Self::Manner,
    ) -> impl Future<Output = Reply> + Send;

    /// As [`Handler::disconnected`].
    fn disconnected(&self, remote: SocketAddr);
}

/// What is written for one request.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// The bytes before the response.
    pub(crate) raw: Bytes,
    pub(crate) response: Option<Response>,
    /// How many times the response is written.
    pub(crate) copies: usize,
    /// What the response is written under, where that is not the request's own number.
    pub(crate) opaque: Option<Opaque>,
}

impl From<Option<Response>> for Reply {
    fn from(response: Option<Response>) -> Self {
        Self { response, copies: 1, ..Self::default() }
    }
}

impl<H: Handler> Answering for H {
    type Manner = ();

    fn manner(&self, _: &Command, _: SocketAddr) {}

    async fn answer(&self, request: Command, remote: SocketAddr, (): ()) -> Reply {
        self.handle(request, remote).await.into()
    }

    fn disconnected(&self, remote: SocketAddr) {
        Handler::disconnected(self, remote);
    }
}
