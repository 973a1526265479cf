//! Lengths, limits, and how frames leave the buffer.

use super::*;
use crate::command::{Code, Opaque};

const MINIMAL: &[u8] = br#"{"flag":1,"opaque":1}"#;

fn limits(max_frame_bytes: usize, max_header_bytes: usize) -> FrameLimits {
    FrameLimits { max_frame_bytes, max_header_bytes }
}

fn error(bytes: &[u8]) -> FrameError {
    let mut buffer = BytesMut::from(bytes);
    let capacity = buffer.capacity();
    let error = decode_frame(&mut buffer, &FrameLimits::default()).expect_err("the bytes are no frame");
    assert_eq!((buffer.len(), buffer.capacity()), (bytes.len(), capacity), "the buffer was changed");
    error
}

#[test]
fn a_command_is_a_small_value() {
    assert!(size_of::<Command>() <= 96, "{} bytes", size_of::<Command>());
    assert!(size_of::<FrameError>() <= 64, "{} bytes", size_of::<FrameError>());
}

#[test]
fn the_longest_frame_is_accepted_and_one_byte_more_is_refused() {
    let longest = 16_777_212_u32.to_be_bytes();
    assert!(decode_frame(&mut BytesMut::from(&longest[..]), &FrameLimits::default()).unwrap().is_none());
    assert_eq!(
        error(&16_777_213_u32.to_be_bytes()).to_string(),
        "frame of 16777217 bytes is over the limit of 16777216; it begins with 00 ff ff fd"
    );
    assert!(matches!(error(&[0xff; 4]), FrameError::TooLong { size: 4_294_967_299, .. }));
}

#[test]
fn a_whole_frame_of_exactly_the_limit_is_decoded() {
    let whole = frame(JSON, MINIMAL, &[7; 100]);
    let mut buffer = BytesMut::from(&whole[..]);
    let refused = decode_frame(&mut buffer, &limits(whole.len() - 1, 1000));
    assert!(matches!(refused, Err(FrameError::TooLong { size, .. }) if size == whole.len() as u64));
    let accepted = decode_frame(&mut buffer, &limits(whole.len(), 1000)).unwrap().unwrap();
    assert_eq!(accepted.body(), [7; 100]);
}

#[test]
fn a_header_of_exactly_the_limit_is_decoded() {
    let mut buffer = BytesMut::from(&frame(JSON, MINIMAL, b"")[..]);
    assert_eq!(
        decode_frame(&mut buffer, &limits(1000, MINIMAL.len() - 1)).unwrap_err(),
        FrameError::HeaderTooLong { size: 21, limit: 20 }
    );
    assert!(decode_frame(&mut buffer, &limits(1000, MINIMAL.len())).unwrap().is_some());
}

#[test]
fn lengths_are_refused_before_the_rest_has_come() {
    assert_eq!(error(&[0, 0, 0, 3]), FrameError::TooShort { announced: 3 });
    assert_eq!(error(&[0; 4]), FrameError::TooShort { announced: 0 });
    assert_eq!(error(&[0, 0, 0, 9, 0, 0, 0, 6]), FrameError::HeaderBeyondFrame { announced: 6, room: 5 });
    assert_eq!(
        error(&[0, 255, 255, 252, 1, 255, 0, 0]),
        FrameError::HeaderTooLong { size: 0xff_0000, limit: 1 << 20 }
    );
    assert!(matches!(error(&[0, 0, 1, 0, 0, 0, 0, 1]), FrameError::HeaderTooShort { least: 2, .. }));
    assert!(matches!(error(&[0, 0, 1, 0, 1, 0, 0, 20]), FrameError::HeaderTooShort { least: 21, .. }));
    assert!(matches!(error(&[0, 0, 1, 0, 2, 0, 0, 9]), FrameError::UnknownEncoding { byte: 2, .. }));
}

#[test]
fn an_announced_length_reserves_nothing() {
    let mut buffer = BytesMut::with_capacity(64);
    buffer.extend_from_slice(&[0, 255, 255, 252, 0, 0, 0, 100]);
    assert!(decode_frame(&mut buffer, &FrameLimits::default()).unwrap().is_none());
    assert_eq!((buffer.len(), buffer.capacity()), (8, 64));
}

#[test]
fn another_protocol_is_named_and_its_bytes_are_shown() {
    let cases: [(&[u8], &str); 9] = [
        (
            b"HTTP/1.1 400 Bad Request\r\n",
            "48 54 54 50 2f 31 2e 31 20 34 30 30 20 42 61 64 (looks like an HTTP/1",
        ),
        (
            b"PRI * HTTP/2.0\r\n",
            "50 52 49 20 2a 20 48 54 54 50 2f 32 2e 30 0d 0a (looks like the HTTP/2 preface)",
        ),
        (b"GET / HTTP/1.1\r\n", "(looks like an HTTP request)"),
        (&[0x15, 3, 3, 0, 2, 2, 0x28], "15 03 03 00 02 02 28 (looks like a TLS alert)"),
        (&[0x15, 3, 3, 0, 2, 2, 0x46], "15 03 03 00 02 02 46 (looks like a TLS alert)"),
        (&[0x16, 3, 1, 0], "16 03 01 00 (looks like a TLS handshake)"),
        (&[3, 0, 0, 0x2f], "03 00 00 2f (looks like an RDP connection)"),
        (&[0, 0, 0x12, 4, 0, 0, 0, 0, 0], "(looks like the settings of an HTTP/2 server, such as gRPC's)"),
        (b"SSH-2.0-OpenSSH", "(looks like SSH)"),
    ];
    for (bytes, shown) in cases {
        let text = error(bytes).to_string();
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn unknown_bytes_are_shown_without_a_guess() {
    assert!(error(&[0x7f, 1, 2, 3, 4]).to_string().ends_with("it begins with 7f 01 02 03 04"));
}

#[test]
fn an_incomplete_frame_waits_at_every_byte() {
    for (encoding, header) in [(JSON, MINIMAL), (BINARY, &[0; 21])] {
        let whole = frame(encoding, header, b"body");
        for len in 0..whole.len() {
            let mut buffer = BytesMut::from(&whole[..len]);
            assert!(decode_frame(&mut buffer, &FrameLimits::default()).unwrap().is_none());
            assert_eq!(buffer, whole[..len]);
        }
    }
}

#[test]
fn a_stream_decodes_alike_wherever_it_is_split() {
    let frames = [
        frame(JSON, br#"{"code":1,"extFields":{"a":"1"},"flag":1,"opaque":1}"#, b"first"),
        frame(BINARY, b"\0\x02\x0c\0\0\0\0\0\x02\0\0\0\x01\0\0\0\x02no\0\0\0\0", b""),
        frame(JSON, br#"{"code":3,"flag":1,"opaque":3}"#, b"third"),
    ];
    let stream = frames.concat();
    for split in 0..=stream.len() {
        let mut buffer = BytesMut::new();
        let mut seen = Vec::new();
        for part in [&stream[..split], &stream[split..]] {
            buffer.extend_from_slice(part);
            while let Some(command) = decode_frame(&mut buffer, &FrameLimits::default()).unwrap() {
                seen.push((command.code().0, command.opaque().0, command.body().to_vec()));
            }
        }
        assert_eq!(seen, [(1, 1, b"first".to_vec()), (2, 2, vec![]), (3, 3, b"third".to_vec())]);
        assert!(buffer.is_empty());
    }
}

#[test]
fn a_small_frame_is_copied_and_a_large_one_shares_the_buffer() {
    for (body_len, shares) in [(100, false), (MAX_COPIED, true)] {
        let mut buffer = BytesMut::from(&frame(JSON, MINIMAL, &vec![1; body_len])[..]);
        let start = buffer.as_ptr();
        let command = decode_frame(&mut buffer, &FrameLimits::default()).unwrap().unwrap();
        assert_eq!(command.body().as_ptr() == start.wrapping_add(PREFIX_LEN + MINIMAL.len()), shares);
        assert_eq!(command.body_bytes().as_ptr(), command.body().as_ptr());
    }
}

#[test]
fn small_frames_are_copied_together_and_keep_little_alive() {
    let small = frame(JSON, MINIMAL, b"small");
    let mut buffer = BytesMut::from(&small.repeat(2 * SHARED / small.len())[..]);
    let mut shared = BytesMut::new();
    let mut chunks = 0;
    let mut end = None;
    while let Some(command) = decode_frame_sharing(&mut buffer, &FrameLimits::default(), &mut shared).unwrap()
    {
        assert_eq!((command.body(), command.frame_len()), (&b"small"[..], small.len()));
        let body = command.body().as_ptr_range();
        chunks += usize::from(end != Some(body.end.wrapping_sub(small.len())));
        end = Some(body.end);
    }
    assert!(buffer.is_empty());
    assert!((2..=3).contains(&chunks), "{chunks}");

    let mut buffer = BytesMut::from(&frame(JSON, MINIMAL, &[1; MAX_SHARED])[..]);
    let left = shared.capacity();
    decode_frame_sharing(&mut buffer, &FrameLimits::default(), &mut shared).unwrap().unwrap();
    assert_eq!(shared.capacity(), left, "one that is not as small has memory of its own");
}

#[test]
fn the_flag_word_alone_tells_requests_from_responses() {
    for (flag, response, oneway) in [(0, false, false), (1, true, false), (2, false, true), (3, true, false)]
    {
        let header = format!(r#"{{"code":7,"flag":{flag},"opaque":9}}"#);
        let command = decode(&frame(JSON, header.as_bytes(), b"")).unwrap();
        assert_eq!((command.is_response(), command.is_oneway(), command.flag()), (response, oneway, flag));
        assert_eq!(
            (command.code(), command.opaque(), command.frame_len()),
            (Code(7), Opaque(9), 8 + header.len())
        );
    }
}

#[test]
fn debug_of_a_command_shows_no_value() {
    let header =
        br#"{"code":1,"extFields":{"AccessKey":"secret","k":"secret"},"flag":1,"opaque":2,"remark":"why"}"#;
    let shown = format!("{:?}", decode(&frame(JSON, header, b"secret")).unwrap());
    assert_eq!(
        shown,
        "Command { code: 1, opaque: 2, flag: 1, version: 0, encoding: Json, remark: Some(\"why\"), \
         fields: [\"AccessKey\", \"k\"], body_len: 6 }"
    );
}
