//! A send that a broker can store, of bytes made once with places for what differs.

use super::{FIRST_OPAQUE, GROUP, SEND, SendHeader, TOPIC, decimal, write};

/// A send to [`TOPIC`], without its body.
#[derive(Clone, Debug)]
pub(crate) struct MessageTemplate {
    bytes: Vec<u8>,
    opaque_at: usize,
    queue_at: usize,
    born_at: usize,
    key_at: usize,
}

/// In what one send differs from another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    /// Of one digit.
    pub(crate) queue: u32,
    /// Milliseconds since the Unix epoch.
    pub(crate) born: u64,
    /// Makes the message's key unique.
    pub(crate) key: [u32; 2],
}

impl MessageTemplate {
    pub(crate) fn new(body_len: usize) -> Self {
        let properties = format!("UNIQ_KEY\u{1}7F000001{}{KEY}\u{2}WAIT\u{1}true\u{2}", "0".repeat(8));
        let header = SendHeader {
            group: GROUP,
            topic: TOPIC,
            queue_id: 0,
            born_timestamp: BORN,
            properties: &properties,
            broker: "broker-a",
            ..SendHeader::numbered(0)
        };
        let mut bytes = Vec::new();
        write::send(&mut bytes, SEND.0, &header, FIRST_OPAQUE, body_len);
        let at = |part: &str| {
            let at = bytes.windows(part.len()).rposition(|window| window == part.as_bytes());
            at.expect("it was just written")
        };
        Self {
            opaque_at: at(&FIRST_OPAQUE.to_string()),
            queue_at: at("\"e\":\"0\"") + 5,
            born_at: at(&BORN.to_string()),
            key_at: at(KEY),
            bytes,
        }
    }

    /// Appends the bytes with what differs in its place.
    pub(crate) fn write(&self, out: &mut Vec<u8>, opaque: u32, difference: Difference) {
        let Difference { queue, born, key } = difference;
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let frame = &mut out[start..];
        decimal::patch(&mut frame[self.opaque_at..][..OPAQUE_DIGITS], opaque);
        decimal::patch(&mut frame[self.queue_at..][..1], queue);
        let (seconds, millis) = (born / 1_000, born % 1_000);
        decimal::patch(&mut frame[self.born_at..][..BORN_DIGITS - 3], seconds as u32);
        decimal::patch(&mut frame[self.born_at + BORN_DIGITS - 3..][..3], millis as u32);
        for (word, room) in key.iter().zip(frame[self.key_at..][..KEY.len()].chunks_exact_mut(8)) {
            for (place, digit) in room.iter_mut().rev().enumerate() {
                *digit = b"0123456789ABCDEF"[(word >> (4 * place) & 15) as usize];
            }
        }
    }
}

const OPAQUE_DIGITS: usize = 10;
/// A time of as many digits as any of this century after 2001.
const BORN: i64 = 1_700_000_000_000;
const BORN_DIGITS: usize = 13;
/// The part of a message's key that differs.
const KEY: &str = "FEDCBA9876543210";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_lands_in_its_place() {
        let (mut patched, mut written) = (Vec::new(), Vec::new());
        let difference = Difference { queue: 3, born: 1_765_432_109_876, key: [0xAB, 0xCDEF_0123] };
        MessageTemplate::new(9).write(&mut patched, 1_234_567_890, difference);
        let header = SendHeader {
            group: GROUP,
            topic: TOPIC,
            queue_id: 3,
            born_timestamp: 1_765_432_109_876,
            properties: "UNIQ_KEY\u{1}7F00000100000000000000ABCDEF0123\u{2}WAIT\u{1}true\u{2}",
            ..SendHeader::numbered(0)
        };
        write::send(&mut written, SEND.0, &header, 1_234_567_890, 9);
        assert_eq!(String::from_utf8_lossy(&patched), String::from_utf8_lossy(&written));
    }
}
