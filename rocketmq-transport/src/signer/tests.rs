use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::{
    Code, EncodeOptions, Fields, FrameLimits, Header, HeaderEncoding, Opaque, codec::Outgoing, decode_frame,
};

/// A header of text fields, in the order given.
struct Texts<'a>(&'a [(&'a str, &'a str)]);

impl Header for Texts<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        for (name, value) in self.0 {
            fields.str(name, value);
        }
    }
}

fn signer(access_key: &str, secret_key: &str) -> AclSigner {
    AclSigner::new(access_key, secret_key).unwrap()
}

fn added(signer: &AclSigner, fields: &[(&str, &str)], body: &[u8]) -> Signature {
    let request = Request { code: Code(10), header: &Texts(fields), body: Bytes::copy_from_slice(body) };
    let Signing::Ready(signed) = signer.sign(&request) else { panic!("it has nothing to wait for") };
    signed.unwrap()
}

fn signature(signer: &AclSigner, fields: &[(&str, &str)], body: &[u8]) -> String {
    let (name, value) = added(signer, fields, body).pop().unwrap();
    assert_eq!(name, "Signature");
    value
}

/// What a broker receives of a request that was given `signature`.
fn received(
    fields: &[(&str, &str)],
    body: &[u8],
    signature: &Signature,
    encoding: HeaderEncoding,
) -> Command {
    let header = Texts(fields);
    let request = Request { code: Code(10), header: &header, body: Bytes::copy_from_slice(body) };
    let options = EncodeOptions { encoding, ..EncodeOptions::default() };
    let outgoing = Outgoing { signature, ..Outgoing::request(&request, Opaque(1), options) };
    let limits = FrameLimits::default();
    let mut frame = Vec::new();
    outgoing.append_head(&mut frame, &limits).unwrap();
    frame.extend_from_slice(body);
    decode_frame(&mut BytesMut::from(&frame[..]), &limits).unwrap().unwrap()
}

#[test]
fn signatures_are_those_that_brokers_compute() {
    let topic = [("topic", "TopicA")];
    let plain = signer("ak", "sk");
    assert_eq!(signature(&plain, &topic, b""), "LaFvs8ZmttDE4nOZYPB8+nLiOHA=");
    assert_eq!(signature(&plain, &topic, b"hi"), "c8j7T27LHxqCqrbo4RZSA1rE9Ms=");
    let temporary = plain.security_token("tok").unwrap();
    assert_eq!(signature(&temporary, &topic, b"hi"), "MrY4+RlUgoZqgOqY5azb3OZsL3k=");
}

#[test]
fn upper_case_names_come_before_lower_case_ones() {
    let fields = [("a", "1"), ("B", "2"), ("queueId", "0")];
    let signature = signature(&signer("ak", "secret"), &fields, b"body");
    assert_eq!(signature, "96WR4XUQ9xOLhTWYNKOOxbE+PZQ=");
    assert_ne!(signature, "fflUMSELz8FbDqaAlvGGnDDNID0=");
}

#[test]
fn names_are_ordered_by_utf_16_unit_as_brokers_do() {
    let fields = [("\u{ff5e}", "tilde"), ("\u{10000}", "astral")];
    assert_eq!(signature(&signer("ak", "sk"), &fields, b""), "9gHmDAdIqlNyYxd7QGqmFtvFWU0=");
}

#[test]
fn texts_are_signed_as_utf_8_and_the_body_as_it_is() {
    let fields = [("topic", "größe"), ("ключ", "钥")];
    assert_eq!(signature(&signer("ak", "schlüssel"), &fields, b"\xff\x00"), "4GAEwxKT7p9PDetgSftI2fgPKxM=");
}

#[test]
fn empty_values_are_not_in_the_header_and_not_signed() {
    let signer = signer("ak", "sk");
    let with_empty = signature(&signer, &[("topic", "TopicA"), ("namespace", "")], b"");
    assert_eq!(with_empty, signature(&signer, &[("topic", "TopicA")], b""));
}

#[test]
fn what_the_header_says_under_our_names_is_overridden() {
    let signer = signer("ak", "sk");
    let forged = [("topic", "TopicA"), ("Signature", "old"), ("AccessKey", "other")];
    assert_eq!(signature(&signer, &forged, b""), "LaFvs8ZmttDE4nOZYPB8+nLiOHA=");
    let command = received(&forged, b"", &added(&signer, &forged, b""), HeaderEncoding::Json);
    assert!(signer.has_signed(&command));
}

#[test]
fn the_credentials_come_before_the_signature_and_stay_within_the_bound() {
    let signer = signer("ak", "sk").security_token("tok").unwrap();
    let added = added(&signer, &[("topic", "TopicA")], b"");
    let names: Vec<_> = added.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["AccessKey", "SecurityToken", "Signature"]);
    let bytes: usize = added.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert_eq!(bytes, signer.max_header_bytes());
}

#[test]
fn credentials_without_characters_are_refused_by_name() {
    assert_eq!(AclSigner::new("", "sk").unwrap_err(), AclError::EmptyAccessKey);
    assert_eq!(AclSigner::new("ak", "").unwrap_err(), AclError::EmptySecretKey);
    assert_eq!(signer("ak", "sk").security_token("").unwrap_err(), AclError::EmptySecurityToken);
}

#[test]
fn no_credential_appears_in_debug_output() {
    let signer = signer("the-access-key", "the-secret-key").security_token("the-token").unwrap();
    let request = Request { code: Code(10), header: &(), body: Bytes::new() };
    let text = format!("{signer:?} {:?} {:?}", signer.sign(&request), AclSigner::new("the-access-key", ""));
    assert!(!text.contains("the-"), "{text}");
}

#[test]
fn a_received_request_is_known_by_its_signature() {
    let ours = signer("ak", "sk");
    let fields = [("topic", "TopicA"), ("queueId", "3")];
    let recognised = |by: &AclSigner, change: fn(&mut Signature)| {
        let mut signature = added(by, &fields, b"body");
        change(&mut signature);
        ours.has_signed(&received(&fields, b"body", &signature, HeaderEncoding::Json))
    };
    assert!(recognised(&ours, |_| {}));
    assert!(!recognised(&ours, |added| added[0].1 = "other".into()), "another account");
    assert!(!recognised(&ours, |added| added[1].1 = "no base64".into()), "no signature");
    assert!(!recognised(&ours, Vec::clear), "nothing at all");
    assert!(
        !recognised(&ours, |added| added.insert(0, ("a".into(), "b".into()))),
        "a field that was not signed"
    );
    assert!(!recognised(&signer("ak", "other"), |_| {}), "another secret");
    assert!(!recognised(&ours.clone().security_token("tok").unwrap(), |_| {}), "a token we do not have");
}

proptest! {
    #[test]
    fn what_is_signed_is_recognised_in_either_form(
        fields in proptest::collection::vec(("[a-cA-C\u{e4}\u{ff5e}\u{10000}]{1,2}", ".{1,8}"), 0..8),
        body: Vec<u8>,
    ) {
        let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        let ours = signer("ak", "sk");
        let signature = added(&ours, &fields, &body);
        for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
            prop_assert!(ours.has_signed(&received(&fields, &body, &signature, encoding)));
        }
    }
}
