//! Access control.

use rocketmq_transport::{AclError, AclSigner, Signer, Signing};

use super::*;

/// A header and what `signer` adds to it.
struct Signed<'a>(&'a dyn Header, Vec<(Cow<'static, str>, String)>);

impl<'a> Signed<'a> {
    fn new(code: Code, header: &'a dyn Header, body: &'static str, signer: &AclSigner) -> Self {
        let request = Request { code, header, body: body.into() };
        let Signing::Ready(Ok(added)) = signer.sign(&request) else { panic!("it signs at once") };
        Self(header, added)
    }
}

impl Header for Signed<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        self.0.write(fields);
        for (name, value) in &self.1 {
            fields.str(name, value);
        }
    }
}

#[tokio::test]
async fn only_what_is_signed_with_the_credentials_is_carried_out_and_each_refusal_says_why() {
    let builder = EmbeddedBroker::builder().credentials("me", "hush").topic("t", 4);
    let (broker, mut names, mut link) = one_broker(builder).await;
    assert_eq!(names.route("t").await.code(), Code::SUCCESS, "the name server asks nobody");
    let signer = |access, secret| AclSigner::new(access, secret).unwrap();
    for (signer, remark) in [
        (Some(signer("me", "hash")), "check signature failed."),
        (Some(signer("you", "hush")), "User:you is not found."),
        (None, "username cannot be null."),
    ] {
        let header = message("t");
        let refused = match &signer {
            Some(signer) => {
                let signed = Signed::new(code::SEND_MESSAGE_V2, &header, "b", signer);
                link.ask(code::SEND_MESSAGE_V2, &signed, "b").await
            }
            None => link.send(&header, "b").await,
        };
        assert_eq!((refused.code(), refused.remark().as_deref()), (code::NO_PERMISSION, Some(remark)));
    }
    assert_eq!(link.ask(code::HEART_BEAT, &(), "").await.code(), code::NO_PERMISSION);
    assert_eq!(broker.stored_count("t"), 0);

    let header = message("t");
    let signed = Signed::new(code::SEND_MESSAGE_V2, &header, "b", &signer("me", "hush"));
    assert_eq!(link.ask(code::SEND_MESSAGE_V2, &signed, "b").await.code(), Code::SUCCESS);
    assert_eq!(broker.stored_count("t"), 1);
}

#[tokio::test]
async fn credentials_that_cannot_be_used_are_an_error_at_the_start_and_are_never_shown() {
    let builder = EmbeddedBroker::builder().credentials("me", "hush");
    assert!(!format!("{builder:?}").contains("hush"));
    let error = EmbeddedBroker::builder().credentials("me", "").start().await.unwrap_err();
    assert!(matches!(error, EmbeddedBrokerError::Credentials(AclError::EmptySecretKey)), "{error:?}");
}
