//! Bytes that nobody should send: no panic, no endless loop, no allocation that they ask for.

use std::borrow::Cow;

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;
use crate::command::{Code, Opaque, Response};

/// Decodes all that can be decoded and asks each command for everything it knows.
fn exhaust(bytes: &[u8]) {
    let mut buffer = BytesMut::from(bytes);
    while let Ok(Some(command)) = decode_frame(&mut buffer, &FrameLimits::default()) {
        let all = command.fields().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        assert!(all <= 3 * bytes.len(), "fields of {all} bytes out of {}", bytes.len());
        for (name, _) in command.fields() {
            let _ = command.field(&name);
        }
        let _ = (command.remark(), command.language(), command.body(), format!("{command:?}"));
    }
}

fn valid(encoding: HeaderEncoding) -> Vec<u8> {
    let response = Response {
        code: Code(2),
        remark: Some("busy \"é\" \u{1}🚀".into()),
        header: Box::new(Pairs::of(&[("msgId", "7F00"), ("k\u{e9}y", "a\\b\u{2}"), ("queueOffset", "17")])),
        body: Bytes::from_static(b"body"),
    };
    response.encode(Opaque(7), EncodeOptions { encoding, version: 479 }, &FrameLimits::default()).unwrap()
}

#[test]
fn a_header_cut_at_any_byte_is_refused() {
    for encoding in ENCODINGS {
        let valid = valid(encoding);
        let header = &valid[PREFIX_LEN..valid.len() - b"body".len()];
        for len in 0..header.len() {
            let error =
                decode(&frame(valid[LENGTH_LEN], &header[..len], b"")).expect_err("a part of a header");
            match encoding {
                _ if matches!(error, FrameError::HeaderTooShort { .. }) => assert!(len < 21),
                HeaderEncoding::Json => assert!(matches!(error, FrameError::Json(_)), "{error}"),
                HeaderEncoding::Binary => assert!(matches!(error, FrameError::Overrun { .. }), "{error}"),
            }
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in vec(any::<u8>(), 0..300)) {
        exhaust(&bytes);
    }

    #[test]
    fn random_headers_are_survived(header in vec(any::<u8>(), 0..300), encoding in 0..3_u8) {
        exhaust(&frame(encoding, &header, b"body"));
    }

    #[test]
    fn headers_of_json_tokens_are_survived(tokens in vec(token(), 0..60)) {
        exhaust(&frame(JSON, format!("{{{}", tokens.concat()).as_bytes(), b""));
    }

    #[test]
    fn mutated_frames_are_survived(
        binary in any::<bool>(),
        changes in vec((any::<Index>(), any::<u8>()), 1..8),
        cut in any::<Index>(),
    ) {
        let mut bytes = valid(if binary { HeaderEncoding::Binary } else { HeaderEncoding::Json });
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        exhaust(&bytes);
        exhaust(&bytes[..cut.index(bytes.len())]);
    }

    #[test]
    fn normalizing_anything_gives_an_error_or_json_that_is_normal(tokens in vec(token(), 0..60)) {
        let json = format!("{{{}}}", tokens.concat());
        if let Ok(normal) = normalize_json(json.as_bytes()) {
            let again = normalize_json(&normal).map(Cow::into_owned);
            prop_assert_eq!(again, Ok(normal.into_owned()));
        }
    }
}

fn token() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"\"",
        "\"a\"",
        "\"code\":",
        "\"extFields\":{",
        "\"remark\":",
        "\"opaque\":1",
        "\"flag\":1",
        "0",
        "-1",
        "1.5e9",
        "99999999999",
        "true",
        "false",
        "null",
        "\"\\u12\"",
        "\"\\ud83d\"",
        " ",
        "\"",
        "\\",
        "\u{1}",
        "é",
        "{0:1}",
        "{{}:1}",
    ])
}
