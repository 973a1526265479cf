//! We write what Java writes.

use bytes::Bytes;
use rocketmq_transport::{
    Code, EncodeOptions, FrameLimits, HeaderEncoding, Opaque, Request, Response, decode_frame,
};

use crate::{
    decoding::{decode, fields},
    samples::{Sample, sample},
    vectors::{self, Path, Vector},
};

/// The sample as a frame of ours.
fn encode(sample: Sample, options: EncodeOptions) -> Vec<u8> {
    let (code, opaque, limits) = (Code(sample.code), Opaque(sample.opaque), FrameLimits::default());
    let body = Bytes::from_static(sample.body.as_bytes());
    let remark = sample.remark.map(Into::into);
    let encoded = match sample.flag {
        0 => Request { code, header: &sample.fields, body }.encode(opaque, options, &limits),
        1 => {
            Response { code, remark, header: Box::new(sample.fields), body }.encode(opaque, options, &limits)
        }
        2 => Request { code, header: &sample.fields, body }.encode_oneway(opaque, options, &limits),
        flag => panic!("we never send flag {flag}"),
    };
    encoded.unwrap_or_else(|error| panic!("{error}"))
}

fn ours(vector: &Vector) -> Vec<u8> {
    let options = EncodeOptions { encoding: vector.encoding, version: vector.release.version() };
    encode(sample(vector.name, vector.release), options)
}

/// The vectors of what we send: no request of ours has a remark, or flags without a meaning.
fn sendable() -> impl Iterator<Item = Vector> {
    vectors::all().into_iter().filter(|vector| !matches!(vector.name, "raw_fields" | "flags"))
}

#[test]
fn our_frames_say_what_java_s_say() {
    for vector in sendable().filter(|vector| vector.name != "large_code") {
        let label = vector.label();
        let (ours, java) = (decode(&ours(&vector)), decode(&vector.frame));
        assert_eq!(ours.encoding(), java.encoding(), "{label}");
        assert_eq!(
            (ours.code(), ours.opaque(), ours.flag()),
            (java.code(), java.opaque(), java.flag()),
            "{label}"
        );
        assert_eq!(ours.version(), java.version(), "{label}");
        assert_eq!(ours.language().as_deref(), Some("RUST"), "{label}");
        assert_eq!(ours.remark(), java.remark(), "{label}");
        assert_eq!(fields(&ours), fields(&java), "{label}");
        assert_eq!(ours.body(), java.body(), "{label}");
    }
}

#[test]
fn our_binary_frames_are_java_s_to_the_byte_where_the_order_of_fields_is_fixed() {
    let mut compared = 0;
    for vector in sendable() {
        let fixed = match vector.name {
            "heartbeat" | "empty" | "empty_fields" | "opaque_min" | "opaque_max" => true,
            "success" | "busy" | "unicode_remark" | "response_body" => true,
            // Its class writes its fields itself, but only on the way to a socket.
            "send_v2" => vector.path == Path::Wire,
            _ => false,
        };
        if fixed && vector.encoding == HeaderEncoding::Binary {
            let mut ours = ours(&vector);
            assert_eq!(ours[LANGUAGE_AT], 12, "{}", vector.label());
            ours[LANGUAGE_AT] = 0;
            assert_eq!(ours, vector.frame, "{}", vector.label());
            compared += 1;
        }
    }
    assert_eq!(compared, 38);
}

#[test]
fn our_json_frames_differ_from_java_s_in_language_and_a_member_that_tells_the_encoding() {
    for vector in sendable() {
        let fixed =
            matches!(vector.name, "heartbeat" | "opaque_min" | "success" | "unicode_remark" | "large_code");
        if fixed && vector.encoding == HeaderEncoding::Json {
            let header = |frame: &[u8]| {
                let body_len = decode_frame(&mut frame.into(), &FrameLimits::default())
                    .map(|command| command.expect("the frame is whole").body().len());
                let header = &frame[8..frame.len() - body_len.expect("the frame is sound")];
                String::from_utf8(header.to_vec()).expect("JSON is UTF-8")
            };
            let java = header(&vector.frame)
                .replace(r#""language":"JAVA""#, r#""language":"RUST""#)
                .replace(r#""serializeTypeCurrentRPC":"JSON","#, "");
            assert_eq!(header(&ours(&vector)), java, "{}", vector.label());
        }
    }
}

#[test]
fn a_code_that_java_destroys_in_the_binary_form_is_sent_whole() {
    for vector in vectors::all().into_iter().filter(|vector| vector.name == "large_code") {
        let command = decode(&ours(&vector));
        assert_eq!((command.code(), command.encoding()), (Code(200_050), HeaderEncoding::Json));
    }
}

#[test]
fn texts_that_java_escapes_survive_our_encoding() {
    for vector in vectors::all().into_iter().filter(|vector| vector.name == "raw_fields") {
        assert_eq!(fields(&decode(&ours(&vector))), fields(&decode(&vector.frame)), "{}", vector.label());
    }
}

/// Where a binary frame has its language: behind two length words and the code.
const LANGUAGE_AT: usize = 10;
