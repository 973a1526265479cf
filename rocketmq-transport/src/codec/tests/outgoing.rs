//! What encoding measures, allocates and refuses.

use std::borrow::Cow;

use bytes::Bytes;

use super::*;
use crate::command::{Code, Opaque, Request, Response};

fn outgoing(header: &dyn Header, encoding: HeaderEncoding) -> Outgoing<'_> {
    Outgoing {
        code: Code(i32::from(i16::MIN)),
        opaque: Opaque(i32::MIN),
        flag: i32::MIN,
        version: i16::MIN,
        remark: None,
        header,
        signature: &[],
        body_len: 0,
        encoding,
    }
}

#[test]
fn the_json_header_is_compact_and_its_members_are_sorted() {
    let header = Pairs::of(&[("topic", "TopicA"), ("k\"", "a\\b\u{1}\n\u{7f}é/")]);
    let request = Request { code: Code(105), header: &header, body: Bytes::from_static(b"body") };
    let options = EncodeOptions { encoding: HeaderEncoding::Json, version: 479 };
    let json = concat!(
        r#"{"code":105,"extFields":{"topic":"TopicA","k\"":"a\\b\u0001\n\u007Fé/"},"#,
        r#""flag":0,"language":"RUST","opaque":7,"version":479}"#
    );
    let encoded = request.encode(Opaque(7), options, &FrameLimits::default()).unwrap();
    assert_eq!(encoded, frame(JSON, json.as_bytes(), b"body"));
}

#[test]
fn the_binary_header_is_the_one_that_brokers_read() {
    let header = Pairs::of(&[("topic", "TopicA")]);
    let request = Request { code: Code(105), header: &header, body: Bytes::new() };
    let options = EncodeOptions { encoding: HeaderEncoding::Binary, version: 479 };
    let expected = b"\0\0\0\x2a\x01\0\0\x26\0\x69\x0c\x01\xdf\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\x11\0\x05topic\0\0\0\x06TopicA";
    assert_eq!(request.encode(Opaque(7), options, &FrameLimits::default()).unwrap(), expected);
}

#[test]
fn a_header_without_fields_has_no_ext_fields() {
    let head = head_of(&outgoing(&(), HeaderEncoding::Json), &FrameLimits::default()).unwrap();
    assert!(!String::from_utf8_lossy(&head).contains("extFields"));
}

#[test]
fn flags_tell_one_way_requests_and_responses() {
    let (options, limits) = (EncodeOptions::default(), FrameLimits::default());
    let request = Request { code: Code(37), header: &(), body: Bytes::new() };
    let oneway = decode(&request.encode_oneway(Opaque(1), options, &limits).unwrap()).unwrap();
    assert_eq!((oneway.flag(), oneway.is_oneway()), (2, true));

    let response =
        Response { code: Code(1), remark: Some("no".into()), header: Box::new(()), body: Bytes::new() };
    let response = decode(&response.encode(Opaque(1), options, &limits).unwrap()).unwrap();
    assert_eq!((response.flag(), response.remark().as_deref()), (1, Some("no")));
}

#[test]
fn the_bound_is_room_enough_for_the_head() {
    let nasty = "\u{1}\u{2}\"\\\n\u{7f}é🚀".repeat(100);
    let header = Pairs::of(&[("a", &nasty), (&nasty, "x"), ("plain", "value")]);
    let signature = [(Cow::from("Signature"), "abc=".to_owned())];
    for encoding in ENCODINGS {
        let outgoing =
            Outgoing { signature: &signature, remark: Some(&nasty), ..outgoing(&header, encoding) };
        let mut room = vec![0; outgoing.head_bound()];
        assert!(outgoing.try_head(&mut room).unwrap().is_some(), "{encoding:?}");
    }
}

#[test]
fn an_open_head_closes_to_what_is_written_with_its_opaque_at_once() {
    let header = Pairs::of(&[("topic", "TopicTest"), ("long", &"x".repeat(1_000))]);
    let limits = FrameLimits::default();
    for encoding in ENCODINGS {
        for opaque in [0, 7, -1, 1_234_567, i32::MAX, i32::MIN] {
            for used in [vec![], vec![b'x'; 2_000]] {
                let outgoing =
                    Outgoing { body_len: 5, opaque: Opaque(i32::MIN), ..outgoing(&header, encoding) };
                let open = outgoing.open_head(used).unwrap();
                let expected = head_of(&Outgoing { opaque: Opaque(opaque), ..outgoing }, &limits).unwrap();
                assert!(expected.len() <= open.len());
                assert_eq!(open.close(Opaque(opaque), 5, &limits).unwrap(), expected);
            }
        }
    }
}

#[test]
fn the_limits_of_an_open_head_are_those_with_its_opaque() {
    for encoding in ENCODINGS {
        let outgoing = Outgoing { opaque: Opaque(i32::MIN), ..outgoing(&(), encoding) };
        let exact = head_of(&Outgoing { opaque: Opaque(1), ..outgoing }, &FrameLimits::default()).unwrap();
        let max = exact.len() + 10;
        let limits = FrameLimits { max_frame_bytes: max, ..FrameLimits::default() };
        let closed = |body_len| outgoing.open_head(Vec::new()).unwrap().close(Opaque(1), body_len, &limits);
        assert_eq!(closed(10).unwrap().len(), exact.len());
        assert_eq!(closed(11), Err(EncodeError::FrameTooLong { size: max + 1, limit: max }));
    }
}

#[test]
fn the_bound_of_plain_fields_is_close() {
    let header = Pairs::of(&[("topic", "TopicTest"), ("i", "KEYS\u{1}k1\u{2}")]);
    for encoding in ENCODINGS {
        let outgoing = outgoing(&header, encoding);
        let head = head_of(&outgoing, &FrameLimits::default()).unwrap();
        assert!(outgoing.head_bound() - head.len() < 20, "{encoding:?}");
    }
}

#[test]
fn the_signature_follows_the_fields() {
    let signature = [(Cow::from("AccessKey"), "ak".to_owned()), (Cow::from("Signature"), "s=".to_owned())];
    let header = Pairs::of(&[("topic", "T")]);
    for encoding in ENCODINGS {
        let outgoing = Outgoing { signature: &signature, ..outgoing(&header, encoding) };
        let command = decode(&head_of(&outgoing, &FrameLimits::default()).unwrap()).unwrap();
        let expected = Pairs::of(&[("topic", "T"), ("AccessKey", "ak"), ("Signature", "s=")]);
        assert_eq!(fields(&command), expected.0);
    }
}

#[test]
fn a_code_that_the_binary_header_would_destroy_is_sent_as_json() {
    for (code, encoding) in [
        (32_767, HeaderEncoding::Binary),
        (32_768, HeaderEncoding::Json),
        (200_050, HeaderEncoding::Json),
        (-32_769, HeaderEncoding::Json),
    ] {
        let outgoing = Outgoing { code: Code(code), ..outgoing(&(), HeaderEncoding::Binary) };
        let command = decode(&head_of(&outgoing, &FrameLimits::default()).unwrap()).unwrap();
        assert_eq!((command.code(), command.encoding()), (Code(code), encoding));
    }
}

#[test]
fn the_frame_limit_counts_length_word_and_body() {
    let limits = FrameLimits { max_frame_bytes: 200, max_header_bytes: 200 };
    for encoding in ENCODINGS {
        let head = head_of(&outgoing(&(), encoding), &limits).unwrap();
        let fits = Outgoing { body_len: 200 - head.len(), ..outgoing(&(), encoding) };
        assert!(head_of(&fits, &limits).is_ok());
        let over = Outgoing { body_len: 201 - head.len(), ..outgoing(&(), encoding) };
        assert_eq!(head_of(&over, &limits), Err(EncodeError::FrameTooLong { size: 201, limit: 200 }));
    }
    let endless = Outgoing { body_len: usize::MAX, ..outgoing(&(), HeaderEncoding::Json) };
    let unlimited = FrameLimits { max_frame_bytes: usize::MAX, max_header_bytes: usize::MAX };
    assert!(matches!(head_of(&endless, &unlimited), Err(EncodeError::FrameTooLong { .. })));
}

#[test]
fn the_header_limit_is_exact_and_never_over_24_bits() {
    for encoding in ENCODINGS {
        let len = head_of(&outgoing(&(), encoding), &FrameLimits::default()).unwrap().len() - PREFIX_LEN;
        let limits = |max_header_bytes| FrameLimits { max_header_bytes, ..FrameLimits::default() };
        assert!(head_of(&outgoing(&(), encoding), &limits(len)).is_ok());
        let refused = head_of(&outgoing(&(), encoding), &limits(len - 1));
        assert_eq!(refused, Err(EncodeError::HeaderTooLong { size: len, limit: len - 1 }));
    }
    let huge = Pairs(vec![("a".to_owned(), "x".repeat(1 << 24))]);
    let unlimited = FrameLimits { max_frame_bytes: usize::MAX, max_header_bytes: usize::MAX };
    let refused = head_of(&outgoing(&huge, HeaderEncoding::Binary), &unlimited);
    assert!(matches!(refused, Err(EncodeError::HeaderTooLong { limit: MAX_HEADER_LEN, .. })));
}

#[test]
fn a_name_that_the_binary_header_cannot_carry_is_refused() {
    for (size, accepted) in [(0, false), (1, true), (32_767, true), (32_768, false)] {
        let header = Pairs(vec![("n".repeat(size), "v".to_owned())]);
        let result = head_of(&outgoing(&header, HeaderEncoding::Binary), &FrameLimits::default());
        match result {
            Ok(_) => assert!(accepted, "{size}"),
            Err(error) => assert_eq!((accepted, error), (false, EncodeError::NameLength { size })),
        }
    }
}
