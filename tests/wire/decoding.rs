//! We read whatever Java writes.

use std::collections::BTreeMap;

use bytes::BytesMut;
use rocketmq_transport::{Command, FrameLimits, HeaderEncoding, Opaque, decode_frame, normalize_json};
use serde_json::{Value, json};

use crate::{
    samples::{Sample, sample},
    vectors::{self, Path, Vector},
};

pub(crate) fn decode(frame: &[u8]) -> Command {
    let mut buffer = BytesMut::from(frame);
    let command = decode_frame(&mut buffer, &FrameLimits::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .expect("the frame is whole");
    assert!(buffer.is_empty());
    command
}

/// The fields that have a value, each with the last one.
pub(crate) fn fields(command: &Command) -> BTreeMap<String, String> {
    let all = command.fields().map(|(name, value)| (name.into_owned(), value.into_owned()));
    all.collect::<BTreeMap<_, _>>().into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

fn expected_fields(sample: &Sample) -> BTreeMap<String, String> {
    let all = sample.fields.0.iter().map(|(name, value)| ((*name).to_owned(), value.text()));
    all.filter(|(_, value)| !value.is_empty()).collect()
}

/// Java's binary header keeps 16 bits of a code.
fn expected_code(vector: &Vector, sample: &Sample) -> i32 {
    match vector.encoding {
        HeaderEncoding::Json => sample.code,
        HeaderEncoding::Binary => i32::from(sample.code as i16),
    }
}

#[test]
fn every_frame_that_java_writes_reads_as_it_was_meant() {
    let vectors = vectors::all();
    assert_eq!(vectors.len(), 168, "vectors are missing");
    for vector in vectors {
        let label = vector.label();
        let sample = sample(vector.name, vector.release);
        let command = decode(&vector.frame);

        assert_eq!(command.encoding(), vector.encoding, "{label}");
        assert_eq!(command.code().0, expected_code(&vector, &sample), "{label}");
        assert_eq!(command.flag(), sample.flag, "{label}");
        assert_eq!(command.opaque(), Opaque(sample.opaque), "{label}");
        assert_eq!(command.version(), i32::from(vector.release.version()), "{label}");
        assert_eq!(command.language().as_deref(), Some("JAVA"), "{label}");
        assert_eq!(command.remark().as_deref(), sample.remark, "{label}");
        assert_eq!(command.body(), sample.body.as_bytes(), "{label}");

        let expected = expected_fields(&sample);
        assert_eq!(fields(&command), expected, "{label}");
        for (name, value) in &expected {
            assert_eq!(command.field(name).as_deref(), Some(value.as_str()), "{label}");
        }
    }
}

#[test]
fn every_frame_that_java_writes_is_incomplete_until_its_last_byte() {
    for vector in vectors::all() {
        for len in 0..vector.frame.len() {
            let mut buffer = BytesMut::from(&vector.frame[..len]);
            let command = decode_frame(&mut buffer, &FrameLimits::default());
            assert!(matches!(command, Ok(None)), "{} cut at {len}: {command:?}", vector.label());
        }
    }
}

#[test]
fn a_signed_send_has_its_fields_twice_in_the_binary_form() {
    for vector in vectors::all().into_iter().filter(|vector| vector.name == "signed") {
        let twice = vector.encoding == HeaderEncoding::Binary && vector.path == Path::Wire;
        let command = decode(&vector.frame);
        assert_eq!(command.fields().count(), if twice { 26 } else { 14 }, "{}", vector.label());
        assert_eq!(fields(&command).len(), 14, "{}", vector.label());
    }
}

#[test]
fn a_route_with_bare_number_keys_parses_once_it_is_normal() {
    for vector in vectors::all().into_iter().filter(|vector| vector.name == "response_body") {
        let command = decode(&vector.frame);
        assert!(serde_json::from_slice::<Value>(command.body()).is_err(), "the body is standard already");
        let normal = normalize_json(command.body()).expect("Java's dialect");
        let route = serde_json::from_slice::<Value>(&normal).expect("standard JSON");
        assert_eq!(route, json!({"brokerDatas": [{"brokerAddrs": {"0": "127.0.0.1:10911"}}]}));
    }
}
