//! Requests and responses: what we write from typed fields, and what we read as a view on the frame.

use std::{borrow::Cow, fmt, ops::Range};

use bytes::Bytes;

use crate::codec::{FieldError, Fields};

/// The operation of a request, or the status of a response (`RequestCode`, `ResponseCode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub i32);

impl Code {
    /// Status 0: done.
    pub const SUCCESS: Self = Self(0);
    /// Status 1: the peer failed in some way.
    pub const SYSTEM_ERROR: Self = Self(1);
    /// Status 3: the peer does not know the operation.
    pub const REQUEST_CODE_NOT_SUPPORTED: Self = Self(3);
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The protocol's correlation number: unique among the live requests and tombstones of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opaque(pub i32);

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How a header is written on the wire (`SerializeType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HeaderEncoding {
    /// Type byte 0: a JSON object.
    #[default]
    Json,
    /// Type byte 1: the compact ROCKETMQ form. A request whose code does not fit its 16 bits is written as
    /// JSON all the same, since brokers would read another code.
    Binary,
}

/// The typed fields of a request or response, written straight into the frame.
pub trait Header: Send + Sync {
    /// Writes each field that is set. It must write the same fields each time it is asked.
    fn write(&self, fields: &mut Fields<'_>);
}

/// No fields.
impl Header for () {
    fn write(&self, _: &mut Fields<'_>) {}
}

/// A request to be sent: operation, typed fields, body.
#[derive(Clone)]
pub struct Request<'a> {
    /// The operation.
    pub code: Code,
    /// Its typed fields; `&()` for none.
    pub header: &'a dyn Header,
    /// The body; empty and absent are the same on the wire.
    pub body: Bytes,
}

/// A response to be sent by the listening side.
pub struct Response {
    /// The status.
    pub code: Code,
    /// Text for people, mostly on failures.
    pub remark: Option<Cow<'static, str>>,
    /// The typed fields; `Box::new(())` for none (which does not allocate).
    pub header: Box<dyn Header>,
    /// The body; empty and absent are the same on the wire.
    pub body: Bytes,
}

/// A received request or response: a view on its frame, decoded as far as it is asked for.
#[derive(Clone)]
pub struct Command {
    frame: Bytes,
    ext: Range<u32>,
}
impl Command {
    /// doc
    pub fn code(&self) -> Code { unimplemented!() }
    /// doc
    pub fn opaque(&self) -> Opaque { unimplemented!() }
    /// doc
    pub fn flag(&self) -> i32 { unimplemented!() }
    /// doc
    pub fn is_response(&self) -> bool { unimplemented!() }
    /// doc
    pub fn is_oneway(&self) -> bool { unimplemented!() }
    /// doc
    pub fn version(&self) -> i32 { unimplemented!() }
    /// Language as sent
    pub fn language(&self) -> Option<Cow<'_, str>> { unimplemented!() }
    /// doc
    pub fn remark(&self) -> Option<Cow<'_, str>> { unimplemented!() }
    /// The form of the header it came in
    pub fn encoding(&self) -> HeaderEncoding { unimplemented!() }
    /// The value of ext field `name`; the last one where it was sent twice; `None` where missing, null or empty.
    pub fn field(&self, name: &str) -> Option<Cow<'_, str>> { let _ = (name, &self.frame, &self.ext); unimplemented!() }
    /// parse field; None where missing/null/empty
    pub fn parse<T: std::str::FromStr>(&self, name: &'static str) -> Result<Option<T>, FieldError> { let _ = name; unimplemented!() }
    /// parse required
    pub fn require<T: std::str::FromStr>(&self, name: &'static str) -> Result<T, FieldError> { let _ = name; unimplemented!() }
    /// all fields in order of the wire, duplicates included
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> + '_ { std::iter::empty() }
    /// doc
    pub fn body(&self) -> &[u8] { unimplemented!() }
    /// Body sharing the frame's memory
    pub fn body_bytes(&self) -> Bytes { unimplemented!() }
}
impl fmt::Debug for Command { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str("Command") } }
