//! Why a request is refused, as the client is told.

use std::borrow::Cow;

use bytes::Bytes;
use rocketmq_transport::{Code, FieldError, Response};

use crate::protocol::code;

/// A status other than success, and the text that explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) remark: Cow<'static, str>,
}

impl Refusal {
    pub(super) fn new(code: Code, remark: impl Into<Cow<'static, str>>) -> Self {
        Self { code, remark: remark.into() }
    }

    /// A parameter of the request breaks a rule.
    pub(super) fn parameter(remark: impl Into<Cow<'static, str>>) -> Self {
        Self::new(code::INVALID_PARAMETER, remark)
    }

    /// An operation that is not served here.
    pub(super) fn unsupported(code: Code) -> Self {
        Self::new(Code::REQUEST_CODE_NOT_SUPPORTED, format!("request type {code} not supported"))
    }
}

/// A field that is missing or malformed ends in code 1 at a real broker too, there with the text of an exception.
impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::new(Code::SYSTEM_ERROR, error.to_string())
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.code, remark: Some(refusal.remark), header: Box::new(()), body: Bytes::new() }
    }
}
