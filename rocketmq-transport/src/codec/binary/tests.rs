use crate::{
    codec::{
        BINARY, FrameError,
        tests::{decode, frame},
    },
    command::{Code, HeaderEncoding, Opaque},
};

/// A header of a response with opaque 7, this remark and this list of fields, and their lengths as given.
fn header(remark: (i32, &[u8]), fields: (i32, &[u8])) -> Vec<u8> {
    let mut header = b"\0\x02\x0c\x01\xdf\0\0\0\x07\0\0\0\x01".to_vec();
    for (len, bytes) in [remark, fields] {
        header.extend_from_slice(&len.to_be_bytes());
        header.extend_from_slice(bytes);
    }
    header
}

fn error(header: &[u8]) -> FrameError {
    decode(&frame(BINARY, header, b"body")).expect_err("the header is malformed")
}

fn with_fields(fields: &[u8]) -> Vec<u8> {
    header((0, b""), (fields.len() as i32, fields))
}

#[test]
fn every_part_is_read() {
    let fields = b"\0\x05topic\0\0\0\x01T\0\x01e\0\0\0\0\0\x05topic\0\0\0\x02\xc3\xa9";
    let command =
        decode(&frame(BINARY, &header((2, b"no"), (fields.len() as i32, fields)), b"body")).unwrap();
    assert_eq!((command.code(), command.opaque(), command.flag()), (Code(2), Opaque(7), 1));
    assert_eq!((command.version(), command.encoding()), (479, HeaderEncoding::Binary));
    assert_eq!(command.language().as_deref(), Some("RUST"));
    assert_eq!(command.remark().as_deref(), Some("no"));
    assert_eq!(command.field("topic").as_deref(), Some("é"));
    assert_eq!(command.field("e"), None);
    assert_eq!(command.fields().count(), 3);
    assert_eq!(command.body(), b"body");
}

#[test]
fn an_empty_remark_and_no_fields_are_nothing() {
    let command = decode(&frame(BINARY, &header((0, b""), (0, b"")), b"")).unwrap();
    assert_eq!((command.remark(), command.fields().count(), command.body()), (None, 0, &b""[..]));
}

#[test]
fn a_negative_length_of_the_fields_is_no_fields() {
    let command = decode(&frame(BINARY, &header((0, b""), (-1, b"")), b"")).unwrap();
    assert_eq!(command.fields().count(), 0);
}

#[test]
fn an_unknown_language_is_its_number() {
    let mut header = header((0, b""), (0, b""));
    header[2] = 255;
    assert_eq!(decode(&frame(BINARY, &header, b"")).unwrap().language().as_deref(), Some("255"));
}

#[test]
fn a_header_shorter_than_its_fixed_part_is_refused() {
    let header = header((0, b""), (0, b""));
    for len in 0..header.len() {
        assert!(matches!(error(&header[..len]), FrameError::HeaderTooShort { least: 21, .. }), "{len} bytes");
    }
}

#[test]
fn lengths_that_leave_the_header_are_refused() {
    let overrun = |header: &[u8], part, announced, room| {
        assert_eq!(error(header), FrameError::Overrun { part, announced, room });
    };
    overrun(&header((9, b"no"), (0, b"")), "remark", 9, 6);
    overrun(&header((-1, b""), (0, b"")), "remark", -1, 4);
    overrun(&header((i32::MAX, b""), (0, b"")), "remark", i32::MAX.into(), 4);
    overrun(&header((0, b""), (1, b"")), "list of fields", 1, 0);
    overrun(&header((0, b""), (i32::MAX, b"abc")), "list of fields", i32::MAX.into(), 3);
    overrun(&with_fields(b"\0"), "length of a name", 2, 1);
    overrun(&with_fields(b"\0\x03ab"), "name of a field", 3, 2);
    overrun(&with_fields(b"\xff\xffab"), "name of a field", -1, 2);
    overrun(&with_fields(b"\0\x01a\0\0"), "length of a value", 4, 2);
    overrun(&with_fields(b"\0\x01a\0\0\0\x02b"), "value of a field", 2, 1);
    overrun(&with_fields(b"\0\x01a\xff\xff\xff\xffb"), "value of a field", -1, 1);
}

#[test]
fn bytes_behind_the_last_field_are_refused() {
    assert_eq!(error(&header((0, b""), (0, b"rest"))), FrameError::LeftOver { left: 4 });
    assert_eq!(error(&header((0, b""), (-5, b"rest"))), FrameError::LeftOver { left: 4 });
}

#[test]
fn texts_that_are_not_utf_8_are_refused() {
    assert_eq!(error(&header((1, b"\xff"), (0, b""))), FrameError::NotUtf8 { part: "remark" });
    assert_eq!(error(&with_fields(b"\0\x01\xff\0\0\0\0")), FrameError::NotUtf8 { part: "name of a field" });
    assert_eq!(
        error(&with_fields(b"\0\x01a\0\0\0\x02\xc3(")),
        FrameError::NotUtf8 { part: "value of a field" }
    );
}
