//! Reading back over the wire.

use super::*;
use crate::protocol::{
    offset::OffsetRequest,
    pull::PullRequest,
    query::{KeyKind, QueryMessage},
    stored::StoredRecord,
};

fn pull(queue_offset: i64) -> PullRequest<'static> {
    PullRequest {
        group: "readers".into(),
        topic: "t".into(),
        queue_id: 3,
        queue_offset,
        max_messages: 2,
        sys_flag: PullRequest::WITH_SUBSCRIPTION,
        subscription: "*".into(),
        expression_type: "TAG".into(),
    }
}

/// Status, remark, next offset and largest offset of a pull, and what it brought.
async fn pulled(link: &mut Link, pull: &PullRequest<'_>) -> (i32, String, [String; 2], Vec<StoredRecord>) {
    let response = link.ask(code::PULL_MESSAGE, pull, "").await;
    let field = |name| response.field(name).unwrap_or_default().into_owned();
    let remark = response.remark().unwrap_or_default().into_owned();
    let records = StoredRecord::decode_all(response.body_bytes()).collect::<Result<_, _>>().unwrap();
    (response.code().0, remark, [field("nextBeginOffset"), field("maxOffset")], records)
}

/// Expects a pull at `offset` to bring nothing, with this status, remark and next offset.
async fn check(link: &mut Link, offset: i64, expected: (i32, &str, &str)) {
    let (code, remark, [next, _], records) = pulled(link, &pull(offset)).await;
    assert_eq!((code, &*remark, &*next), expected, "{offset}");
    assert!(records.is_empty());
}

fn tagged(tag: &str) -> SendRequest<'static> {
    let properties = format!("UNIQ_KEY\u{1}key-{tag}\u{2}KEYS\u{1}k1 k2\u{2}TAGS\u{1}{tag}\u{2}");
    SendRequest { properties: properties.into(), ..message("t") }
}

#[tokio::test]
async fn what_was_sent_is_pulled_as_it_was_stored() {
    let (broker, _, mut link) = one_broker(EmbeddedBroker::builder().topic("t", 4)).await;
    for body in ["one", "two", "three"] {
        link.send(&message("t"), body).await;
    }
    let (code, remark, offsets, records) = pulled(&mut link, &pull(0)).await;
    assert_eq!((code, &*remark, offsets), (0, "FOUND", ["2".into(), "3".into()]));
    assert_eq!(records.len(), 2, "no more than asked for");
    let stored = broker.stored("t");
    for (record, stored) in records.iter().zip(&stored) {
        assert_eq!((&record.body, record.queue_offset), (&stored.body, stored.queue_offset));
        assert_eq!(record.offset_message_id(), stored.offset_message_id);
        assert_eq!((record.born_host, record.flag), (stored.born_host, stored.flag));
        assert_eq!(record.property("KEYS"), Some("k1 k2"));
        assert_eq!(
            (record.born_timestamp, record.store_timestamp),
            (stored.born_timestamp_ms, stored.store_timestamp_ms)
        );
    }
    let (_, _, offsets, records) = pulled(&mut link, &pull(2)).await;
    assert_eq!((offsets, &records[0].body[..]), (["3".into(), "3".into()], &b"three"[..]));
}

#[tokio::test]
async fn each_offset_without_a_message_has_its_own_answer_and_the_offset_to_go_on_at() {
    let (_broker, _, mut link) = one_broker(EmbeddedBroker::builder().topic("t", 4)).await;
    check(&mut link, 0, (19, "NO_MESSAGE_IN_QUEUE", "0")).await;
    check(&mut link, 7, (21, "NO_MESSAGE_IN_QUEUE", "0")).await;
    link.send(&message("t"), "one").await;
    check(&mut link, 1, (19, "OFFSET_OVERFLOW_ONE", "1")).await;
    check(&mut link, 2, (21, "OFFSET_OVERFLOW_BADLY", "1")).await;
    check(&mut link, i64::MAX, (21, "OFFSET_OVERFLOW_BADLY", "1")).await;
    check(&mut link, -1, (21, "OFFSET_TOO_SMALL", "0")).await;
    check(&mut link, i64::MIN, (21, "OFFSET_TOO_SMALL", "0")).await;
}

#[tokio::test]
async fn a_pull_by_tags_brings_those_that_have_one_and_passes_over_the_others() {
    let (_broker, _, mut link) = one_broker(EmbeddedBroker::builder().topic("t", 4)).await;
    for tag in ["a", "b", "c"] {
        link.send(&tagged(tag), "body").await;
    }
    let by = |subscription: &'static str| PullRequest {
        subscription: subscription.into(),
        max_messages: 32,
        ..pull(0)
    };
    let (_, _, [next, _], records) = pulled(&mut link, &by("a || c")).await;
    assert_eq!((records.len(), &*next), (2, "3"));
    let (code, remark, [next, _], _) = pulled(&mut link, &by("d")).await;
    assert_eq!((code, &*remark, &*next), (20, "NO_MATCHED_MESSAGE", "3"));
    let sql = PullRequest { expression_type: "SQL92".into(), ..by("a > 1") };
    let (code, remark, ..) = pulled(&mut link, &sql).await;
    assert_eq!(code, 1);
    assert!(remark.contains("SQL92"), "{remark}");
}

#[tokio::test]
async fn a_pull_brings_at_least_one_message_and_no_more_than_a_limit() {
    let (_broker, _, mut link) = one_broker(EmbeddedBroker::builder().topic("t", 4)).await;
    for _ in 0..3 {
        let large = "x".repeat(200 << 10);
        assert_eq!(link.ask(code::SEND_MESSAGE_V2, &message("t"), large).await.code(), Code::SUCCESS);
    }
    let (_, _, [next, _], records) = pulled(&mut link, &PullRequest { max_messages: 32, ..pull(0) }).await;
    assert_eq!((records.len(), &*next), (1, "1"));
}

#[tokio::test]
async fn a_pull_of_an_unknown_topic_or_queue_is_refused_by_name() {
    let (_broker, _, mut link) = one_broker(EmbeddedBroker::builder().topic("t", 4)).await;
    let (code, remark, ..) = pulled(&mut link, &PullRequest { topic: "u".into(), ..pull(0) }).await;
    assert_eq!((code, &*remark), (17, "topic[u] not exist, apply first please!"));
    for queue_id in [-1, 4] {
        let (code, remark, ..) = pulled(&mut link, &PullRequest { queue_id, ..pull(0) }).await;
        assert_eq!(code, code::INVALID_PARAMETER.0);
        assert!(remark.contains(&format!("queueId[{queue_id}]")), "{remark}");
    }
}

#[tokio::test]
async fn offsets_are_the_ends_of_the_queue_and_the_first_message_of_a_time() {
    let (broker, _, mut link) = one_broker(EmbeddedBroker::builder().topic("t", 4)).await;
    for body in ["one", "two"] {
        link.send(&message("t"), body).await;
    }
    let header =
        |queue_id, timestamp| OffsetRequest { topic: "t".into(), queue_id, timestamp, boundary: None };
    let mut ask = async |code, header: &OffsetRequest<'_>| {
        let response = link.ask(code, header, "").await;
        response.field("offset").map(|offset| offset.into_owned()).ok_or(response.code())
    };
    let offset = |offset: &str| Ok(offset.to_owned());
    assert_eq!(ask(code::GET_MAX_OFFSET, &header(3, None)).await, offset("2"));
    assert_eq!(ask(code::GET_MAX_OFFSET, &header(0, None)).await, offset("0"));
    assert_eq!(ask(code::GET_MAX_OFFSET, &header(-9, None)).await, offset("0"));
    assert_eq!(ask(code::GET_MIN_OFFSET, &header(3, None)).await, offset("0"));
    let last = broker.stored("t")[1].store_timestamp_ms;
    for (timestamp, expected) in [(0, "0"), (last + 1, "2"), (i64::MAX, "2")] {
        let found = ask(code::SEARCH_OFFSET_BY_TIMESTAMP, &header(3, Some(timestamp))).await;
        assert_eq!(found, offset(expected), "{timestamp}");
    }
    let upper = OffsetRequest { boundary: Some("UPPER".into()), ..header(3, Some(0)) };
    assert_eq!(ask(code::SEARCH_OFFSET_BY_TIMESTAMP, &upper).await, Err(code::INVALID_PARAMETER));
    assert_eq!(ask(code::SEARCH_OFFSET_BY_TIMESTAMP, &header(3, None)).await, Err(Code::SYSTEM_ERROR));
}

#[tokio::test]
async fn a_message_is_found_by_its_unique_key_at_the_broker_that_has_it() {
    let broker = EmbeddedBroker::builder().brokers(2).topic("t", 4).start().await.unwrap();
    let mut links = Vec::new();
    for (_, peer) in broker.brokers() {
        links.push(Link::to(peer).await);
    }
    links[1].send(&tagged("a"), "mine").await;
    links[1].send(&tagged("b"), "other").await;
    let query = |key: &'static str, said| QueryMessage {
        topic: "t".into(),
        key: key.into(),
        max: 32,
        begin: 0,
        end: i64::MAX,
        said,
    };
    let mut ask = async |link: usize, query: &QueryMessage<'_>| {
        let response = links[link].ask(code::QUERY_MESSAGE, query, "").await;
        let records = StoredRecord::decode_all(response.body_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
        (response.code(), records.into_iter().map(|record| record.body).collect::<Vec<_>>())
    };
    let none = (code::QUERY_NOT_FOUND, vec![]);
    for said in [KeyKind::Unique, KeyKind::Unsaid] {
        let query = query("key-a", said);
        assert_eq!(ask(1, &query).await, (Code::SUCCESS, vec!["mine".into()]));
        assert_eq!(ask(0, &query).await, none);
        assert_eq!(ask(1, &QueryMessage { end: 1, ..query }).await, none);
    }
    assert_eq!(ask(1, &query("key", KeyKind::Unique)).await, none, "a part of a key is none");
    assert_eq!(ask(1, &query("k2", KeyKind::Unique)).await, none, "a key of another kind");
    let newest_first = vec!["other".into(), "mine".into()];
    assert_eq!(ask(1, &query("k2", KeyKind::Unsaid)).await, (Code::SUCCESS, newest_first));
    assert_eq!(ask(1, &QueryMessage { topic: "u".into(), ..query("key-a", KeyKind::Unique) }).await, none);
}
