//! What one side writes the other reads, and no bytes do harm.

use bytes::Bytes;
use proptest::prelude::*;

use super::{BORN_HOST_V6, RecordError, STORE_HOST_V6, StoredRecord, offset_message_id};

/// An entry as Java writes it.
const JAVA: &str = "0000006adaa320a758932aac0000000300000001000000000000004d000000000000100000000000\
    0000018bcfe568000a0000090000c3500000018bcfe568050a00000100002a9f0000000000000000000000000000000268690654\
    6f7069634100075441475301\
    4102";

fn java() -> Bytes {
    let digits = JAVA.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn encoded(record: &StoredRecord) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode(&mut out);
    out
}

#[test]
fn an_entry_of_javas_is_read_and_written_byte_for_byte() {
    let record = StoredRecord::decode_all(java()).next().unwrap().unwrap();
    assert_eq!((record.queue_id, record.queue_offset, record.log_offset), (3, 77, 4_096));
    assert_eq!((record.flag, record.sys_flag, record.reconsume_times), (1, 0, 0));
    assert_eq!((record.born_timestamp, record.store_timestamp), (1_700_000_000_000, 1_700_000_000_005));
    assert_eq!(
        (record.born_host.to_string(), record.store_host.to_string()),
        ("10.0.0.9:50000".into(), "10.0.0.1:10911".into())
    );
    assert_eq!((&*record.topic, &*record.body, record.property("TAGS")), ("TopicA", &b"hi"[..], Some("A")));
    assert_eq!(record.offset_message_id(), "0A00000100002A9F0000000000001000");
    assert_eq!(encoded(&record), java());
}

#[test]
fn an_offset_message_id_has_the_form_of_its_host() {
    let id = offset_message_id(([0, 0, 0, 0, 0, 0, 0, 1], 10_911).into(), 4_096);
    assert_eq!(id, "0000000000000000000000000000000100002A9F0000000000001000");
}

#[test]
fn an_entry_that_is_corrupt_hides_no_other_unless_its_length_is() {
    let (good, length) = (java(), java().len());
    let mut bad = good.to_vec();
    bad[7] = 0;
    let body = [&good[..], &bad, &good].concat();
    let read: Vec<_> = StoredRecord::decode_all(body.into()).map(|record| record.map(|_| ())).collect();
    assert_eq!(read, [Ok(()), Err(RecordError::Magic(0xDAA3_2000)), Ok(())]);

    for (wrong, shown) in [(0, 0), (3, 3), (-1, -1), (i32::MAX, i64::from(i32::MAX))] {
        let mut bad = good.to_vec();
        bad[..4].copy_from_slice(&i32::to_be_bytes(wrong));
        let body = [&good[..], &bad, &good].concat();
        let read: Vec<_> = StoredRecord::decode_all(body.into()).map(|record| record.map(|_| ())).collect();
        assert_eq!(read, [Ok(()), Err(RecordError::Length { length: shown, left: 2 * length })]);
    }
}

#[test]
fn each_field_that_cannot_be_right_is_named() {
    for (at, bytes, expected) in [
        (12, [0xFF; 4].as_slice(), "queueId is -1"),
        (52, &[0, 1, 0, 0], "a host's port is 65536"),
        (84, &[0xFF; 4], "the body's length is -1"),
        (84, &[0, 0, 1, 0], "it ends within a field"),
        (90, &[0x80], "the topic's length is -128"),
        (91, &[0xFF], "bytes that are not UTF-8 in the topic"),
        (97, &[0x80, 0], "the properties' length is -32768"),
        (99, &[0xFF], "bytes that are not UTF-8 in the properties"),
    ] {
        let mut bad = java().to_vec();
        bad[at..at + bytes.len()].copy_from_slice(bytes);
        let error = StoredRecord::decode_all(bad.into()).next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), expected, "at {at}");
    }
}

prop_compose! {
    fn record()(
        [flag, sys_flag, reconsume_times] in any::<[i32; 3]>(),
        queue_id in 0..=i32::MAX as u32,
        [queue_offset, log_offset, born_timestamp, store_timestamp, prepared_offset] in any::<[i64; 5]>(),
        (born, store) in any::<(std::net::IpAddr, std::net::IpAddr)>(),
        ports in any::<[u16; 2]>(),
        body in prop::collection::vec(any::<u8>(), 0..300),
        topic in "[a-z]{1,300}",
        properties in "[ -~ä\u{1}\u{2}]{0,50}",
    ) -> StoredRecord {
        let hosts = if born.is_ipv6() { BORN_HOST_V6 } else { 0 } | if store.is_ipv6() { STORE_HOST_V6 } else { 0 };
        StoredRecord {
            queue_id, flag, queue_offset, log_offset, born_timestamp, store_timestamp, reconsume_times,
            prepared_offset, topic, properties,
            sys_flag: (sys_flag & !(BORN_HOST_V6 | STORE_HOST_V6)) | hosts,
            born_host: (born, ports[0]).into(),
            store_host: (store, ports[1]).into(),
            body: body.into(),
        }
    }
}

proptest! {
    #[test]
    fn records_are_read_as_they_were_written(records in prop::collection::vec(record(), 0..4)) {
        let body: Vec<u8> = records.iter().flat_map(encoded).collect();
        let read: Result<Vec<_>, _> = StoredRecord::decode_all(body.into()).collect();
        prop_assert_eq!(read, Ok(records));
    }

    #[test]
    fn no_bytes_make_the_reader_panic_or_go_on_for_ever(
        mut body in record().prop_map(|record| encoded(&record)),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        cut in any::<prop::sample::Index>(),
    ) {
        for (at, byte) in changes {
            let at = at.index(body.len());
            body[at] = byte;
        }
        body.truncate(cut.index(body.len() + 1));
        let length = body.len();
        prop_assert!(StoredRecord::decode_all(body.into()).count() <= length);
    }
}
