//! From typed fields to the bytes of a frame.

use std::{borrow::Cow, ops::Range};

use super::{
    BINARY, FrameLimits, JSON, LENGTH_LEN, MAX_HEADER_LEN, PREFIX_LEN, binary, json,
    output::{Output, SLACK},
};
use crate::command::{
    Code, FLAG_ONEWAY, FLAG_RESPONSE, Fields, Header, HeaderEncoding, Opaque, Request, Response, Sink,
    decimal_len,
};

/// How a request or response is written where no [`Transport`](crate::Transport) does it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// The form of the header. Default JSON.
    pub encoding: HeaderEncoding,
    /// The `version` field (`MQVersion`). Default 0.
    pub version: i16,
}

/// A command that cannot be written as a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The frame would be longer than the limit.
    #[error("frame of {size} bytes is over the limit of {limit}")]
    FrameTooLong {
        /// The frame's length, its four length bytes included.
        size: usize,
        /// The limit that it exceeds.
        limit: usize,
    },
    /// The header would be longer than the limit.
    #[error("header of {size} bytes is over the limit of {limit}")]
    HeaderTooLong {
        /// The header's length.
        size: usize,
        /// The limit that it exceeds.
        limit: usize,
    },
    /// The binary form cannot carry a field with such a name.
    #[error("field name of {size} bytes, the binary header carries 1 to 32767")]
    NameLength {
        /// The name's length.
        size: usize,
    },
}

impl Request<'_> {
    /// Writes the request as a whole frame, for scripted peers and tests; a [`Transport`](crate::Transport)
    /// does not copy the body as this does.
    ///
    /// # Errors
    ///
    /// The limit that the request exceeds.
    ///
    /// # Examples
    ///
    /// ```
    /// use bytes::{Bytes, BytesMut};
    /// use rocketmq_transport::{Code, EncodeOptions, FrameLimits, Opaque, Request, decode_frame};
    ///
    /// let limits = FrameLimits::default();
    /// let request = Request { code: Code(34), header: &(), body: Bytes::from_static(b"{}") };
    /// let frame = request.encode(Opaque(7), EncodeOptions::default(), &limits)?;
    ///
    /// let command = decode_frame(&mut BytesMut::from(&frame[..]), &limits)?.expect("a whole frame");
    /// assert_eq!((command.code(), command.body()), (Code(34), &b"{}"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn encode(
        &self,
        opaque: Opaque,
        options: EncodeOptions,
        limits: &FrameLimits,
    ) -> Result<Vec<u8>, EncodeError> {
        Outgoing::request(self, opaque, options).encode(&self.body, limits)
    }

    /// Writes the request as [`encode`](Self::encode) does, marked as one that wants no response.
    ///
    /// # Errors
    ///
    /// The limit that the request exceeds.
    pub fn encode_oneway(
        &self,
        opaque: Opaque,
        options: EncodeOptions,
        limits: &FrameLimits,
    ) -> Result<Vec<u8>, EncodeError> {
        let outgoing = Outgoing { flag: FLAG_ONEWAY, ..Outgoing::request(self, opaque, options) };
        outgoing.encode(&self.body, limits)
    }
}

impl Response {
    /// Writes the response to the request with `opaque` as a whole frame, for scripted peers and tests.
    ///
    /// # Errors
    ///
    /// The limit that the response exceeds.
    pub fn encode(
        &self,
        opaque: Opaque,
        options: EncodeOptions,
        limits: &FrameLimits,
    ) -> Result<Vec<u8>, EncodeError> {
        Outgoing::response(self, opaque, options).encode(&self.body, limits)
    }
}

/// Everything of a frame but its body.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) code: Code,
    pub(crate) opaque: Opaque,
    pub(crate) flag: i32,
    pub(crate) version: i16,
    pub(crate) remark: Option<&'a str>,
    pub(crate) header: &'a dyn Header,
    /// What the signer adds behind the header's own fields.
    pub(crate) signature: &'a [(Cow<'static, str>, String)],
    pub(crate) body_len: usize,
    pub(crate) encoding: HeaderEncoding,
}

impl<'a> Outgoing<'a> {
    /// An unsigned request that wants a response.
    pub(crate) fn request(request: &'a Request<'_>, opaque: Opaque, options: EncodeOptions) -> Self {
        Self {
            code: request.code,
            opaque,
            flag: 0,
            version: options.version,
            remark: None,
            header: request.header,
            signature: &[],
            body_len: request.body.len(),
            encoding: options.encoding,
        }
    }

    /// The response to the request with `opaque`.
    pub(crate) fn response(response: &'a Response, opaque: Opaque, options: EncodeOptions) -> Self {
        Self {
            code: response.code,
            opaque,
            flag: FLAG_RESPONSE,
            version: options.version,
            remark: response.remark.as_deref(),
            header: &*response.header,
            signature: &[],
            body_len: response.body.len(),
            encoding: options.encoding,
        }
    }

    /// An upper bound of the bytes before the body, from the typed fields and without encoding them: never
    /// less than [`append_head`](Self::append_head) writes.
    pub(crate) fn head_bound(&self) -> usize {
        match self.encoding() {
            HeaderEncoding::Json => self.bound(json::FIXED_BOUND, json::add_extra),
            HeaderEncoding::Binary => self.bound(binary::FIXED_LEN, |_, _| ()),
        }
    }

    /// Everything before the body of a request, in the memory of `bytes`, to be [closed](OpenHead::close) with its opaque;
    /// that of `self` holds its place and should be the longest.
    pub(crate) fn open_head(&self, mut bytes: Vec<u8>) -> Result<OpenHead, EncodeError> {
        bytes.resize(bytes.capacity().max(COMMON_HEAD), 0);
        self.write_head(&mut bytes, 0)?;
        let opaque = match self.encoding() {
            HeaderEncoding::Json => json::opaque_in(&bytes, self),
            HeaderEncoding::Binary => PREFIX_LEN + binary::OPAQUE.start..PREFIX_LEN + binary::OPAQUE.end,
        };
        Ok(OpenHead { bytes, opaque, encoding: self.encoding() })
    }

    /// Appends everything before the body: both length words and the header. After an error what was appended is of no
    /// use.
    pub(crate) fn append_head(&self, out: &mut Vec<u8>, limits: &FrameLimits) -> Result<(), EncodeError> {
        let start = out.len();
        out.resize(start + COMMON_HEAD, 0);
        self.write_head(out, start)?;
        describe(&mut out[start..], self.encoding(), self.body_len, limits)
    }

    /// The whole frame, not measured before.
    fn encode(&self, body: &[u8], limits: &FrameLimits) -> Result<Vec<u8>, EncodeError> {
        let mut frame = Vec::with_capacity(COMMON_HEAD + body.len());
        self.append_head(&mut frame, limits)?;
        frame.extend_from_slice(body);
        Ok(frame)
    }

    /// Writes the head, but for what is in its length words, from `start` on and cuts `out` behind it. Where it does not
    /// fit into what is there, there is made more room and all is written again.
    fn write_head(&self, out: &mut Vec<u8>, start: usize) -> Result<(), EncodeError> {
        loop {
            let room = out.len() - start;
            if let Some(len) = self.try_head(&mut out[start..])? {
                out.truncate(start + len);
                return Ok(());
            }
            out.resize(start + self.head_bound().max(2 * room), 0);
        }
    }

    /// Writes the head to the start of `room`, and how long it is; `None` where the room does not suffice.
    pub(super) fn try_head(&self, room: &mut [u8]) -> Result<Option<usize>, EncodeError> {
        let len = room.len();
        let mut output = Output::new(room);
        output.keep::<PREFIX_LEN>();
        match self.encoding() {
            HeaderEncoding::Json => json::write(self, &mut output),
            HeaderEncoding::Binary => binary::write(self, &mut output)?,
        }
        Ok(output.finish().map(|left| len - left))
    }

    /// The prefix, the header's `fixed` bytes, and those of remark and fields with what `add_extra` says that the
    /// encoding adds to a text; and the room that there must be behind them.
    fn bound(&self, fixed: usize, add_extra: impl Fn(&mut usize, &str)) -> usize {
        let mut bytes = PREFIX_LEN + fixed + SLACK;
        if let Some(remark) = self.remark {
            bytes += json::REMARK_LEN + remark.len();
            add_extra(&mut bytes, remark);
        }
        let mut bound = Bound { bytes, add_extra };
        self.write_fields(&mut bound);
        bound.bytes
    }

    /// The fields of the header, then those of the signer.
    pub(super) fn write_fields(&self, sink: &mut dyn Sink) {
        let mut fields = Fields::new(sink);
        self.header.write(&mut fields);
        for (name, value) in self.signature {
            fields.str(name, value);
        }
    }

    /// The form that can carry the code.
    fn encoding(&self) -> HeaderEncoding {
        match self.encoding {
            HeaderEncoding::Binary if i16::try_from(self.code.0).is_ok() => HeaderEncoding::Binary,
            HeaderEncoding::Binary | HeaderEncoding::Json => HeaderEncoding::Json,
        }
    }
}

/// The head of a request that has yet to get its opaque.
#[derive(Debug)]
pub(crate) struct OpenHead {
    bytes: Vec<u8>,
    /// Where the opaque belongs, and something of its kind is.
    opaque: Range<usize>,
    encoding: HeaderEncoding,
}

impl OpenHead {
    /// Its length with what holds the place of the opaque.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Its memory, for another.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        self.bytes
    }

    /// The head of the request with `opaque` and a body of so many bytes.
    pub(crate) fn close(
        self,
        opaque: Opaque,
        body_len: usize,
        limits: &FrameLimits,
    ) -> Result<Vec<u8>, EncodeError> {
        let Self { bytes: mut head, opaque: Range { start, end }, encoding } = self;
        match encoding {
            HeaderEncoding::Json => {
                let mut digits = [0; MAX_OPAQUE_LEN + SLACK];
                let mut output = Output::new(&mut digits);
                output.put_decimal(opaque.0.into());
                let len = MAX_OPAQUE_LEN + SLACK - output.left();
                let tail = head.len() - end;
                head.copy_within(end.., start + len);
                head[start..start + len].copy_from_slice(&digits[..len]);
                head.truncate(start + len + tail);
            }
            HeaderEncoding::Binary => head[start..end].copy_from_slice(&opaque.0.to_be_bytes()),
        }
        describe(&mut head, encoding, body_len, limits)?;
        Ok(head)
    }
}

/// Fills in the length words of a head, unless it or its frame is too long.
fn describe(
    head: &mut [u8],
    encoding: HeaderEncoding,
    body_len: usize,
    limits: &FrameLimits,
) -> Result<(), EncodeError> {
    let header_len = head.len() - PREFIX_LEN;
    let limit = limits.max_header_bytes.min(MAX_HEADER_LEN);
    if header_len > limit {
        return Err(EncodeError::HeaderTooLong { size: header_len, limit });
    }
    let size = head.len().saturating_add(body_len);
    let announced = u32::try_from(size - LENGTH_LEN).ok().filter(|_| size <= limits.max_frame_bytes);
    let Some(announced) = announced else {
        return Err(EncodeError::FrameTooLong { size, limit: limits.max_frame_bytes });
    };
    let encoding = match encoding {
        HeaderEncoding::Json => JSON,
        HeaderEncoding::Binary => BINARY,
    };
    let described = u32::from(encoding) << 24 | header_len as u32;
    head[..PREFIX_LEN].copy_from_slice(&(u64::from(announced) << 32 | u64::from(described)).to_be_bytes());
    Ok(())
}

/// Adds up an upper bound of the encoded fields.
struct Bound<E> {
    bytes: usize,
    /// Adds what the encoding adds to a text at most.
    add_extra: E,
}

impl<E: Fn(&mut usize, &str)> Sink for Bound<E> {
    fn text(&mut self, name: &str, value: &str) {
        self.bytes += FIELD_OVERHEAD + name.len() + value.len();
        (self.add_extra)(&mut self.bytes, name);
        (self.add_extra)(&mut self.bytes, value);
    }

    fn int(&mut self, name: &str, value: i64) {
        self.bytes += FIELD_OVERHEAD + name.len() + decimal_len(value);
        (self.add_extra)(&mut self.bytes, name);
    }
}

/// What either encoding puts around a field: `,"":""`, or two lengths.
const FIELD_OVERHEAD: usize = 6;
/// Room for the head of most frames.
const COMMON_HEAD: usize = 512;
/// The decimal digits of an opaque, with a sign.
const MAX_OPAQUE_LEN: usize = 11;
