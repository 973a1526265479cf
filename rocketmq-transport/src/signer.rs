//! Signing requests: the seam, and the access-control signer.

use std::{borrow::Cow, error::Error, fmt, future::Future, iter, pin::Pin, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use sha1::Sha1;

use crate::{Command, Request};

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

/// Signs with an access key and a secret key, as brokers with access control expect: HMAC-SHA1 over the
/// values of all fields and the body.
///
/// It adds `AccessKey`, `SecurityToken` where there is one, and `Signature`, and overrides what the header
/// itself says under these names. Nothing may be added to the header after it. The signature has no time in
/// it, so who reads a signed request can send it again. Its `Debug` shows no key.
///
/// # Examples
///
/// ```
/// use rocketmq_transport::AclSigner;
///
/// let signer = AclSigner::new("rocketmq-user", "12345678")?.security_token("session-1")?;
/// assert_eq!(format!("{signer:?}"), "AclSigner { .. }");
/// assert!(AclSigner::new("rocketmq-user", "").is_err());
/// # Ok::<(), rocketmq_transport::AclError>(())
/// ```
#[derive(Clone)]
pub struct AclSigner {
    access_key: String,
    security_token: Option<String>,
    /// Keyed with the secret, which is kept nowhere else.
    mac: HmacSha1,
}

/// Credentials that no broker would accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AclError {
    /// The access key has no characters.
    #[error("the access key is empty")]
    EmptyAccessKey,
    /// The secret key has no characters.
    #[error("the secret key is empty")]
    EmptySecretKey,
    /// The security token has no characters; where there is none, it is not set at all.
    #[error("the security token is empty")]
    EmptySecurityToken,
}

impl AclSigner {
    /// A signer for the account `access_key`.
    ///
    /// # Errors
    ///
    /// One of the keys is empty.
    pub fn new(access_key: impl Into<String>, secret_key: impl AsRef<str>) -> Result<Self, AclError> {
        let (access_key, secret_key) = (access_key.into(), secret_key.as_ref());
        if access_key.is_empty() {
            return Err(AclError::EmptyAccessKey);
        }
        if secret_key.is_empty() {
            return Err(AclError::EmptySecretKey);
        }
        let mac = HmacSha1::new_from_slice(secret_key.as_bytes()).expect("HMAC takes a key of any length");
        Ok(Self { access_key, security_token: None, mac })
    }

    /// Adds the token of temporary credentials.
    ///
    /// # Errors
    ///
    /// The token is empty.
    pub fn security_token(mut self, token: impl Into<String>) -> Result<Self, AclError> {
        let token = token.into();
        if token.is_empty() {
            return Err(AclError::EmptySecurityToken);
        }
        self.security_token = Some(token);
        Ok(self)
    }

    /// Whether the received `request` carries these credentials and was signed with them: the check of the
    /// listening side. The signatures are compared in constant time.
    #[must_use]
    pub fn has_signed(&self, request: &Command) -> bool {
        let sent = |name| request.field(name);
        let signature = sent(SIGNATURE).and_then(|text| STANDARD.decode(text.as_bytes()).ok());
        sent(ACCESS_KEY).as_deref() == Some(&self.access_key)
            && sent(SECURITY_TOKEN).as_deref() == self.security_token.as_deref()
            && signature.is_some_and(|signature| {
                self.digest(request.fields().collect(), request.body()).verify_slice(&signature).is_ok()
            })
    }

    /// The fields that say who signs, in the order they are written.
    fn credentials(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let token = self.security_token.iter().map(|token| (SECURITY_TOKEN, token));
        iter::once((ACCESS_KEY, &self.access_key)).chain(token)
    }

    /// Takes in what is signed: the value of each field but the signature itself, by name, then the body.
    /// Where a name was written twice, brokers know only its last value.
    fn digest(&self, mut fields: Vec<(Cow<'_, str>, Cow<'_, str>)>, body: &[u8]) -> HmacSha1 {
        fields.retain(|(name, _)| name != SIGNATURE);
        // Brokers sort by UTF-16 unit; the sort is stable, so of one name the last stays the last.
        fields.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
        let mut mac = self.mac.clone();
        for (place, (name, value)) in fields.iter().enumerate() {
            if fields.get(place + 1).is_none_or(|(next, _)| next != name) {
                mac.update(value.as_bytes());
            }
        }
        mac.chain_update(body)
    }
}

impl Signer for AclSigner {
    fn max_header_bytes(&self) -> usize {
        let credentials: usize = self.credentials().map(|(name, value)| name.len() + value.len()).sum();
        credentials + SIGNATURE.len() + SIGNATURE_BYTES
    }

    fn sign<'a>(&'a self, request: &'a Request<'a>) -> Signing<'a> {
        let fields = request.fields().into_iter().map(|(name, value)| (name.into(), value.into()));
        let credentials = self.credentials().map(|(name, value)| (name.into(), value.into()));
        let digest = self.digest(fields.chain(credentials).collect(), &request.body);
        let signature = STANDARD.encode(digest.finalize().into_bytes());
        let mut added: Signature =
            self.credentials().map(|(name, value)| (name.into(), value.clone())).collect();
        added.push((SIGNATURE.into(), signature));
        Signing::Ready(Ok(added))
    }
}

impl fmt::Debug for AclSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AclSigner").finish_non_exhaustive()
    }
}

type HmacSha1 = Hmac<Sha1>;

/// The ext fields of access control (`SessionCredentials`).
const ACCESS_KEY: &str = "AccessKey";
const SECURITY_TOKEN: &str = "SecurityToken";
const SIGNATURE: &str = "Signature";
/// The 20 bytes of a SHA-1 in Base64.
const SIGNATURE_BYTES: usize = 28;

#[cfg(test)]
mod tests;
