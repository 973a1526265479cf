//! Each header is read by the one side as the other has written it.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use rocketmq_transport::{
    Code, Command, EncodeOptions, Fields, FrameLimits, Header, HeaderEncoding, Opaque, Request, decode_frame,
};

use super::{
    code,
    heartbeat::Unregister,
    query::{KeyKind, QueryMessage},
    route::RouteRequest,
    send,
    send::SendRequest,
    topic::CreateTopic,
};
use crate::protocol::send::SendResponse;

const ENCODINGS: [HeaderEncoding; 2] = [HeaderEncoding::Json, HeaderEncoding::Binary];

/// What the peer reads of `header`.
fn received(code: Code, header: &dyn Header, encoding: HeaderEncoding) -> Command {
    let request = Request { code, header, body: Bytes::new() };
    let limits = FrameLimits::default();
    let options = EncodeOptions { encoding, ..EncodeOptions::default() };
    let frame = request.encode(Opaque(1), options, &limits).unwrap();
    decode_frame(&mut BytesMut::from(&*frame), &limits).unwrap().expect("a whole frame")
}

/// The same fields under the long names.
struct LongNames<'a>(&'a SendRequest<'a>);

impl Header for LongNames<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        self.0.write_as(&send::V1, fields);
    }
}

/// Text as headers carry it; an empty one is left out.
fn text() -> impl Strategy<Value = Cow<'static, str>> {
    "[ -~ä-ü\u{1}\u{2}\u{1F980}]{1,20}".prop_map(Cow::Owned)
}

prop_compose! {
    fn send_request()(
        [group, topic, default_topic, broker] in [text(), text(), text(), text()],
        properties in prop_oneof![Just(Cow::Borrowed("")), text()],
        [default_topic_queue_nums, queue_id, sys_flag, flag, reconsume_times] in any::<[i32; 5]>(),
        born_timestamp in any::<i64>(),
        batch in any::<bool>(),
    ) -> SendRequest<'static> {
        SendRequest {
            group, topic, default_topic, default_topic_queue_nums, queue_id, sys_flag, born_timestamp, flag,
            properties, reconsume_times, batch, broker,
        }
    }
}

proptest! {
    #[test]
    fn a_send_is_read_as_it_was_written_in_both_layouts_and_encodings(request in send_request()) {
        for encoding in ENCODINGS {
            let short = received(code::SEND_MESSAGE_V2, &request, encoding);
            prop_assert_eq!(&SendRequest::decode(&short).unwrap(), &request);
            let long = received(code::SEND_MESSAGE, &LongNames(&request), encoding);
            prop_assert_eq!(&SendRequest::decode(&long).unwrap(), &request);
        }
    }
}

#[test]
fn the_other_headers_are_read_as_they_were_written() {
    for encoding in ENCODINGS {
        let stored = SendResponse { offset_message_id: "0A".into(), queue_id: 3, queue_offset: i64::MAX };
        let read = SendResponse::decode(&received(Code::SUCCESS, &stored, encoding));
        assert_eq!(read, Ok(stored));

        let route = RouteRequest { topic: "orders".into() };
        let command = received(code::GET_ROUTEINFO_BY_TOPIC, &route, encoding);
        assert_eq!(command.field("acceptStandardJsonOnly").as_deref(), Some("true"));
        assert_eq!(RouteRequest::decode(&command), Ok(route));

        let unregister = Unregister { client_id: "1@2".into(), producer_group: "orders".into() };
        let read = Unregister::decode(&received(code::UNREGISTER_CLIENT, &unregister, encoding));
        assert_eq!(read, Ok(unregister));

        for said in [KeyKind::Unique, KeyKind::Unsaid] {
            let query = QueryMessage {
                topic: "orders".into(),
                key: "0A".into(),
                max: 32,
                begin: 0,
                end: i64::MAX,
                said,
            };
            let read = QueryMessage::decode(&received(code::QUERY_MESSAGE, &query, encoding));
            assert_eq!(read, Ok(query));
        }

        let topic = CreateTopic {
            topic: "orders".into(),
            default_topic: "TBW102".into(),
            read_queue_nums: 4,
            write_queue_nums: 8,
            perm: 6,
            sys_flag: 0,
            order: true,
        };
        let read = CreateTopic::decode(&received(code::UPDATE_AND_CREATE_TOPIC, &topic, encoding));
        assert_eq!(read, Ok(topic));
    }
}

#[test]
fn a_field_that_is_missing_or_no_number_is_named() {
    struct Bad(&'static str);
    impl Header for Bad {
        fn write(&self, fields: &mut Fields<'_>) {
            fields.str("msgId", "0A");
            fields.str("queueId", self.0);
            fields.int("queueOffset", 1);
        }
    }
    for bad in ["", "abc", "-1", "99999999999", "1.5", " 7"] {
        let error =
            SendResponse::decode(&received(Code::SUCCESS, &Bad(bad), HeaderEncoding::Json)).unwrap_err();
        assert!(error.to_string().contains("queueId"), "{error}");
    }
    let error = SendRequest::decode(&received(code::SEND_MESSAGE_V2, &(), HeaderEncoding::Json)).unwrap_err();
    assert!(error.to_string().contains('a'), "{error}");
}
