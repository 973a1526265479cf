//! Responses on their way out.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::{Code, EncodeError, EncodeOptions, FrameLimits, Opaque, Response, codec::Outgoing};

/// The encoded responses of one connection that the socket has not accepted yet.
#[derive(Default)]
pub(super) struct Output {
    bytes: BytesMut,
    /// Where heads are encoded.
    head: Vec<u8>,
    /// Whether the stream may hold accepted bytes back.
    unflushed: bool,
}

impl Output {
    /// Whether so much waits that no more is to be added: the bound is [`MAX_WAITING`] and one response.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= MAX_WAITING
    }

    /// Whether there is something to [`write`](Self::write).
    pub(super) fn is_pending(&self) -> bool {
        self.unflushed || !self.bytes.is_empty()
    }

    /// Adds `response` to the request with `opaque`, or a failure that says why it cannot be written.
    pub(super) fn push(
        &mut self,
        response: &Response,
        opaque: Opaque,
        options: EncodeOptions,
        limits: &FrameLimits,
    ) -> Result<(), EncodeError> {
        self.append(response, opaque, options, limits).or_else(|error| {
            let failure = failure(format!("the response cannot be written: {error}"));
            self.append(&failure, opaque, options, limits)
        })
    }

    /// Adds `bytes` as they are.
    pub(super) fn push_raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes and flushes what waits. Dropping the future loses nothing, and the next call goes on.
    pub(super) async fn write(&mut self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        while self.bytes.has_remaining() {
            self.unflushed = true;
            if stream.write_buf(&mut self.bytes).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        if self.bytes.capacity() > MAX_WAITING {
            self.bytes = BytesMut::new();
            self.head = Vec::new();
        }
        stream.flush().await?;
        self.unflushed = false;
        Ok(())
    }

    fn append(
        &mut self,
        response: &Response,
        opaque: Opaque,
        options: EncodeOptions,
        limits: &FrameLimits,
    ) -> Result<(), EncodeError> {
        self.head.clear();
        Outgoing::response(response, opaque, options).append_head(&mut self.head, limits)?;
        self.bytes.reserve(self.head.len() + response.body.len());
        self.bytes.extend_from_slice(&self.head);
        self.bytes.extend_from_slice(&response.body);
        Ok(())
    }
}

/// The response to a request that was not carried out for a reason of our own.
pub(super) fn failure(remark: String) -> Response {
    Response {
        code: Code::SYSTEM_ERROR,
        remark: Some(remark.into()),
        header: Box::new(()),
        body: bytes::Bytes::new(),
    }
}

/// With so many bytes waiting, no more responses are encoded and no more requests read.
const MAX_WAITING: usize = 1 << 20;
