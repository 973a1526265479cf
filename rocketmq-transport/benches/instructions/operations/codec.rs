//! From fields to bytes and back.

use std::hint::black_box;

use bytes::BytesMut;
use rocketmq_transport::{Command, FieldError, FrameLimits, HeaderEncoding, Opaque, decode_frame};

use super::samples::{FIRST_OPAQUE, MAX_BODY, options, send, stored_frame};

pub(super) fn encode_send_json(count: u64) {
    encode(HeaderEncoding::Json, count);
}

pub(super) fn encode_send_binary(count: u64) {
    encode(HeaderEncoding::Binary, count);
}

pub(super) fn decode_send_json(count: u64) {
    let limits = FrameLimits::default();
    let frame = send(MAX_BODY).encode(Opaque(FIRST_OPAQUE), options(HeaderEncoding::Json), &limits);
    decode(&frame.expect("a small request fits"), read_send, count);
}

pub(super) fn decode_response_json(count: u64) {
    decode(&stored_frame(Opaque(FIRST_OPAQUE), HeaderEncoding::Json), read_stored, count);
}

pub(super) fn decode_response_binary(count: u64) {
    decode(&stored_frame(Opaque(FIRST_OPAQUE), HeaderEncoding::Binary), read_stored, count);
}

/// Without a body, which a transport does not copy into the frame.
fn encode(encoding: HeaderEncoding, count: u64) {
    let (options, limits) = (options(encoding), FrameLimits::default());
    let request = send(0);
    for _ in 0..count {
        let frame = black_box(&request).encode(Opaque(FIRST_OPAQUE), options, &limits);
        black_box(frame.expect("a small request fits"));
    }
}

/// Each frame is put into the read buffer, decoded, and read with `read`.
fn decode(frame: &[u8], read: fn(&Command) -> Result<(), FieldError>, count: u64) {
    let limits = FrameLimits::default();
    let mut buffer = BytesMut::with_capacity(64 << 10);
    for _ in 0..count {
        buffer.extend_from_slice(black_box(frame));
        let command = decode_frame(&mut buffer, &limits).ok().flatten();
        read(&command.expect("it is a whole frame")).expect("it has these fields");
    }
}

/// What a producer reads of the answer to a send.
fn read_stored(response: &Command) -> Result<(), FieldError> {
    let [message, queue, offset] = response.select(["msgId", "queueId", "queueOffset"]);
    black_box((message.require::<String>()?, queue.require::<u32>()?, offset.require::<i64>()?));
    Ok(())
}

/// What a listening side needs to know before it hands a send on.
fn read_send(request: &Command) -> Result<(), FieldError> {
    let [topic, queue] = request.select(["b", "e"]);
    black_box((topic.require::<String>()?, queue.require::<i32>()?));
    Ok(())
}
