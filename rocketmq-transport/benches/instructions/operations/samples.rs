//! A send and its answer, as a producer and a broker make them.

use bytes::Bytes;
use rocketmq_transport::{
    Code, EncodeOptions, Fields, FrameLimits, Header, HeaderEncoding, Opaque, Request, Response,
};

/// The fields of a send in the short names of its second layout (`SendMessageRequestHeaderV2`).
struct Send;

impl Header for Send {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("a", "order-producers");
        fields.str("b", "orders");
        fields.str("c", "TBW102");
        fields.int("d", 4);
        fields.int("e", 3);
        fields.int("f", 0);
        fields.int("g", 1_700_000_000_000);
        fields.int("h", 0);
        fields.str(
            "i",
            "UNIQ_KEY\u{1}7F0000010B2C18B4AAC216A5C5D20000\u{2}WAIT\u{1}true\u{2}TAGS\u{1}paid\u{2}",
        );
        fields.int("j", 0);
        fields.str("n", "broker-a");
    }
}

/// The fields of the answer to it (`SendMessageResponseHeader`).
struct Stored;

impl Header for Stored {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str("msgId", "7F00000100002A9F0000000000A1B2C3");
        fields.int("queueId", 3);
        fields.int("queueOffset", 1_234_567);
    }
}

/// A send with a body of `body_len` bytes, at most [`MAX_BODY`].
pub(super) fn send(body_len: usize) -> Request<'static> {
    static BODY: [u8; MAX_BODY] = [b'.'; MAX_BODY];
    Request { code: Code(310), header: &Send, body: Bytes::from_static(&BODY[..body_len]) }
}

/// A whole frame of its answer.
pub(super) fn stored_frame(opaque: Opaque, encoding: HeaderEncoding) -> Vec<u8> {
    let response =
        Response { code: Code::SUCCESS, remark: None, header: Box::new(Stored), body: Bytes::new() };
    response.encode(opaque, options(encoding), &FrameLimits::default()).expect("a small response fits")
}

/// The version that a client of 5.3.3 states, as a transport does by default.
pub(super) const fn options(encoding: HeaderEncoding) -> EncodeOptions {
    EncodeOptions { encoding, version: 479 }
}

/// The body of a typical message.
pub(super) const MAX_BODY: usize = 1_024;
/// Has as many digits as all that follow it here.
pub(super) const FIRST_OPAQUE: i32 = 1_000_000;
