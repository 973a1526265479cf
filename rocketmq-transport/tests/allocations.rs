//! What the codec allocates.

use allocation_counter::measure;
use bytes::{Bytes, BytesMut};
use rocketmq_transport::{
    Code, Command, EncodeOptions, Fields, FrameLimits, Header, HeaderEncoding, Opaque, Request, Response,
    decode_frame,
};

struct Send;

impl Header for Send {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("a", "producers");
        fields.str("b", "TopicTest");
        fields.int("d", 4);
        fields.int("g", 1_700_000_000_000);
        fields.str("i", "KEYS\u{1}k1\u{2}TAGS\u{1}标签\u{2}");
        fields.bool("k", false);
    }
}

const ENCODINGS: [HeaderEncoding; 2] = [HeaderEncoding::Json, HeaderEncoding::Binary];

#[test]
fn encoding_a_request_allocates_once() {
    let request = Request { code: Code(310), header: &Send, body: Bytes::from_static(b"body") };
    for encoding in ENCODINGS {
        let options = EncodeOptions { encoding, version: 479 };
        let info = measure(|| {
            request.encode(Opaque(i32::MIN), options, &FrameLimits::default()).expect("it fits");
        });
        assert_eq!(info.count_total, 1, "{encoding:?}");
    }
}

#[test]
fn decoding_a_small_response_allocates_once_and_reading_its_plain_fields_never() {
    for encoding in ENCODINGS {
        let mut buffer = BytesMut::from(&send_response(encoding)[..]);
        let mut command = None;
        let info = measure(|| {
            command = decode_frame(&mut buffer, &FrameLimits::default()).expect("it is a frame");
        });
        assert_eq!(info.count_total, 1, "{encoding:?}");

        let command = command.expect("it is a whole frame");
        assert_eq!(measure(|| read(&command)).count_total, 0, "{encoding:?}");
    }
}

#[test]
fn refusing_bytes_of_another_protocol_allocates_nothing() {
    let mut buffer = BytesMut::from("HTTP/1.1 400 Bad Request\r\n");
    let info = measure(|| {
        decode_frame(&mut buffer, &FrameLimits::default()).expect_err("it is no frame");
    });
    assert_eq!(info.count_total, 0);
}

fn send_response(encoding: HeaderEncoding) -> Vec<u8> {
    let response = Response {
        code: Code::SUCCESS,
        remark: Some("ok".into()),
        header: Box::new(Send),
        body: Bytes::new(),
    };
    let options = EncodeOptions { encoding, version: 479 };
    response.encode(Opaque(7), options, &FrameLimits::default()).expect("it fits")
}

fn read(command: &Command) {
    assert_eq!(command.require::<i64>("g"), Ok(1_700_000_000_000));
    assert_eq!(command.require::<bool>("k"), Ok(false));
    assert_eq!(command.field("b").as_deref(), Some("TopicTest"));
    assert_eq!(command.remark().as_deref(), Some("ok"));
}
