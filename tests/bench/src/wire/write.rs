//! Requests, written straight into their place.

use super::{FIRST_OPAQUE, SendHeader, decimal};

/// The bytes before the header: the frame's length, and the header's under the encoding's byte.
const PREFIX_LEN: usize = 8;

/// Appends the prefix and the JSON header of a send, field by field. The body follows; it is `body_len` long.
pub(crate) fn send(out: &mut Vec<u8>, code: i32, header: &SendHeader<'_>, opaque: u32, body_len: usize) {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX_LEN]);
    out.extend_from_slice(b"{\"code\":");
    decimal::write(out, code.into());
    out.extend_from_slice(b",\"extFields\":{\"a\":\"");
    text(out, header.group);
    out.extend_from_slice(b"\",\"b\":\"");
    text(out, header.topic);
    out.extend_from_slice(b"\",\"c\":\"");
    text(out, header.default_topic);
    out.extend_from_slice(b"\",\"d\":\"");
    decimal::write(out, header.default_topic_queues.into());
    out.extend_from_slice(b"\",\"e\":\"");
    decimal::write(out, header.queue_id.into());
    out.extend_from_slice(b"\",\"f\":\"");
    decimal::write(out, header.sys_flag.into());
    out.extend_from_slice(b"\",\"g\":\"");
    decimal::write(out, header.born_timestamp);
    out.extend_from_slice(b"\",\"h\":\"");
    decimal::write(out, header.flag.into());
    out.extend_from_slice(b"\",\"i\":\"");
    text(out, header.properties);
    out.extend_from_slice(b"\",\"j\":\"");
    decimal::write(out, header.reconsume_times.into());
    out.extend_from_slice(b"\",\"n\":\"");
    text(out, header.broker);
    out.extend_from_slice(b"\"},\"flag\":0,\"language\":\"RUST\",\"opaque\":");
    decimal::write(out, opaque.into());
    out.extend_from_slice(b",\"version\":479}");

    let header_len = (out.len() - start - PREFIX_LEN) as u32;
    let frame_len = 4 + header_len + body_len as u32;
    out[start..start + 4].copy_from_slice(&frame_len.to_be_bytes());
    // The encoding's byte of JSON is 0, so that it needs no place of its own.
    out[start + 4..start + PREFIX_LEN].copy_from_slice(&header_len.to_be_bytes());
}

/// Appends `value` with everything escaped that a JSON string must escape, plain run by plain run.
fn text(out: &mut Vec<u8>, value: &str) {
    let mut rest = value.as_bytes();
    while let Some(plain) = rest.iter().position(|&byte| NEEDS_ESCAPE[usize::from(byte)]) {
        out.extend_from_slice(&rest[..plain]);
        match rest[plain] {
            byte @ (b'"' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            byte => {
                let digits = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
        }
        rest = &rest[plain + 1..];
    }
    out.extend_from_slice(rest);
}

static NEEDS_ESCAPE: [bool; 256] = {
    let mut needs = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        needs[byte] = true;
        byte += 1;
    }
    needs[b'"' as usize] = true;
    needs[b'\\' as usize] = true;
    needs
};
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// A send whose bytes are made once, with a place for the opaque.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    opaque_at: usize,
}

impl Template {
    pub(crate) fn new(code: i32, body_len: usize) -> Self {
        let mut bytes = Vec::new();
        send(&mut bytes, code, &SendHeader::numbered(0), FIRST_OPAQUE, body_len);
        let digits = FIRST_OPAQUE.to_string();
        let at = bytes.windows(OPAQUE_DIGITS).rposition(|window| window == digits.as_bytes());
        Self { bytes, opaque_at: at.expect("it was just written") }
    }

    /// Appends the bytes with `opaque` in its place.
    pub(crate) fn write(&self, out: &mut Vec<u8>, opaque: u32) {
        let at = out.len() + self.opaque_at;
        out.extend_from_slice(&self.bytes);
        decimal::patch(&mut out[at..at + OPAQUE_DIGITS], opaque);
    }
}

const OPAQUE_DIGITS: usize = 10;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rocketmq_transport::{EncodeOptions, FrameLimits, Opaque, Request};

    use super::*;
    use crate::wire::SEND;

    #[test]
    fn the_bytes_are_those_of_the_transport() {
        let header = SendHeader::numbered(7);
        let request = Request { code: SEND, header: &header, body: Bytes::from_static(b"body") };
        let options = EncodeOptions { version: 479, ..EncodeOptions::default() };
        let expected =
            request.encode(Opaque(1_000_000_012), options, &FrameLimits::default()).expect("small");
        let mut written = Vec::new();
        send(&mut written, SEND.0, &header, 1_000_000_012, 4);
        written.extend_from_slice(b"body");
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&expected));
    }

    #[test]
    fn a_template_differs_in_its_opaque_alone() {
        let (mut patched, mut written) = (Vec::new(), Vec::new());
        Template::new(SEND.0, 9).write(&mut patched, 1_234_567_890);
        send(&mut written, SEND.0, &SendHeader::numbered(0), 1_234_567_890, 9);
        assert_eq!(patched, written);
    }
}
