//! Signing requests: the seam, and the access-control signer.

use std::{borrow::Cow, error::Error, fmt, future::Future, pin::Pin, sync::Arc};

use crate::Request;

/// Adds authentication fields to each request, after every other field is known.
pub trait Signer: Send + Sync + fmt::Debug {
    /// An upper bound of the bytes that [`sign`](Self::sign) adds to a header: names and values, without the
    /// encoding's own overhead. Admission charges it before the signature exists.
    fn max_header_bytes(&self) -> usize;

    /// Signs `request`: its header and body. The opaque is not signed, so one signature serves a request that
    /// is written again under another opaque.
    fn sign<'a>(&'a self, request: &'a Request<'a>) -> Signing<'a>;
}

/// Fields to add to the header, in the order they are written.
pub type Signature = Vec<(Cow<'static, str>, String)>;

/// Why a signer failed.
pub type SignError = Arc<dyn Error + Send + Sync>;

/// A signature, at once or later.
pub enum Signing<'a> {
    /// It is there.
    Ready(Result<Signature, SignError>),
    /// It takes a wait, for example for a token; the request's deadline covers it, and dropping it is safe.
    Pending(Pin<Box<dyn Future<Output = Result<Signature, SignError>> + Send + 'a>>),
}

impl fmt::Debug for Signing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready(Ok(_)) => "Ready(signed)",
            Self::Ready(Err(_)) => "Ready(failed)",
            Self::Pending(_) => "Pending",
        })
    }
}
