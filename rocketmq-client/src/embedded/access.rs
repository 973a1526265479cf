//! Access control: who may ask the brokers anything.

use rocketmq_transport::{AclError, AclSigner, Command};

use super::refusal::Refusal;
use crate::protocol::code;

/// The only user there is, who may do everything.
#[derive(Clone, Debug)]
pub(super) struct Access {
    access_key: String,
    signer: AclSigner,
}

impl Access {
    pub(super) fn new(access_key: String, secret_key: &str) -> Result<Self, AclError> {
        let signer = AclSigner::new(access_key.clone(), secret_key)?;
        Ok(Self { access_key, signer })
    }

    /// Refuses what the user has not signed, in the words of brokers since 5.3.
    pub(super) fn check(&self, request: &Command) -> Result<(), Refusal> {
        let refused = |remark: String| Err(Refusal::new(code::NO_PERMISSION, remark));
        match request.field("AccessKey") {
            None => refused("username cannot be null.".into()),
            Some(user) if user != self.access_key => refused(format!("User:{user} is not found.")),
            Some(_) if !self.signer.has_signed(request) => refused("check signature failed.".into()),
            Some(_) => Ok(()),
        }
    }
}
