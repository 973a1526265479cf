//! What goes over the wire, as values: operations, correlation numbers, requests and responses.

mod fields;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt};

use bytes::Bytes;

pub use self::fields::{FieldError, Fields, Header};
pub(crate) use self::fields::{Sink, decimal_len, shorten};

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

/// A request to be sent: operation, typed fields, body.
///
/// Its `Debug` shows the names of the fields and the length of the body, never a value.
#[derive(Clone)]
pub struct Request<'a> {
    /// The operation.
    pub code: Code,
    /// Its typed fields; `&()` for none.
    pub header: &'a dyn Header,
    /// The body; empty and absent are the same on the wire.
    pub body: Bytes,
}

impl Request<'_> {
    /// The fields of the header in the order in which brokers sign them: by name, UTF-16 unit by unit. A name
    /// that the header writes twice is there once, with its last value, as brokers read it.
    ///
    /// It allocates for each field, and is meant for [signers](crate::Signer).
    ///
    /// # Examples
    ///
    /// ```
    /// use bytes::Bytes;
    /// use rocketmq_transport::{Code, Fields, Header, Request};
    ///
    /// struct Offset;
    ///
    /// impl Header for Offset {
    ///     fn write(&self, fields: &mut Fields<'_>) {
    ///         fields.str("topic", "orders");
    ///         fields.int("queueId", 3);
    ///     }
    /// }
    ///
    /// let request = Request { code: Code(30), header: &Offset, body: Bytes::new() };
    /// let fields = request.fields();
    /// assert_eq!(fields[0], ("queueId".to_owned(), "3".to_owned()));
    /// assert_eq!(fields[1], ("topic".to_owned(), "orders".to_owned()));
    /// ```
    #[must_use]
    pub fn fields(&self) -> Vec<(String, String)> {
        fields::sorted(self.header)
    }
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("code", &self.code.0)
            .field("fields", &fields::names(self.header))
            .field("body_len", &self.body.len())
            .finish()
    }
}

/// A response to be sent by the listening side.
///
/// Its `Debug` shows the names of the fields and the length of the body, never a value.
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

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("code", &self.code.0)
            .field("remark", &self.remark.as_deref().map(shorten))
            .field("fields", &fields::names(&*self.header))
            .field("body_len", &self.body.len())
            .finish()
    }
}

/// Bit 0 of the flag word (`RPC_TYPE`): this is a response.
pub(crate) const FLAG_RESPONSE: i32 = 1;
/// Bit 1 of the flag word (`RPC_ONEWAY`): a request that wants no response.
pub(crate) const FLAG_ONEWAY: i32 = 2;
