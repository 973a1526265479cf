//! The embedded broker as clients see it: frames over loopback sockets.

mod access;
mod faults;
mod reads;

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use rocketmq_transport::{
    Code, Command, EncodeOptions, Fields, FrameLimits, Header, HeaderEncoding, Opaque, Peer, Request,
    decode_frame,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;
use crate::protocol::{
    code,
    heartbeat::{Heartbeat, ProducerData, Unregister},
    route::{RouteRequest, TopicRoute},
    send::{SendRequest, SendResponse},
    topic::CreateTopic,
};

/// A connection to a name server or broker, one request at a time.
struct Link {
    stream: TcpStream,
    input: BytesMut,
    options: EncodeOptions,
}

impl Link {
    async fn to(peer: &Peer) -> Self {
        let stream = TcpStream::connect(peer.as_str()).await.unwrap();
        let options = EncodeOptions { encoding: HeaderEncoding::Json, version: 479 };
        Self { stream, input: BytesMut::new(), options }
    }

    async fn ask(&mut self, code: Code, header: &dyn Header, body: impl Into<Bytes>) -> Command {
        let request = Request { code, header, body: body.into() };
        let frame = request.encode(Opaque(7), self.options, &FrameLimits::default()).unwrap();
        self.stream.write_all(&frame).await.unwrap();
        loop {
            if let Some(response) = decode_frame(&mut self.input, &FrameLimits::default()).unwrap() {
                assert!(response.is_response() && response.opaque() == Opaque(7));
                return response;
            }
            assert_ne!(self.stream.read_buf(&mut self.input).await.unwrap(), 0, "closed without a response");
        }
    }

    async fn route(&mut self, topic: &str) -> Command {
        self.ask(code::GET_ROUTEINFO_BY_TOPIC, &RouteRequest { topic: topic.into() }, "").await
    }

    async fn send(&mut self, message: &SendRequest<'_>, body: &'static str) -> Command {
        self.ask(code::SEND_MESSAGE_V2, message, body).await
    }
}

fn message(topic: &'static str) -> SendRequest<'static> {
    SendRequest {
        group: "group".into(),
        topic: topic.into(),
        default_topic: "TBW102".into(),
        default_topic_queue_nums: 4,
        queue_id: 3,
        sys_flag: 0,
        born_timestamp: 1_700_000_000_000,
        flag: 9,
        properties: "UNIQ_KEY\u{1}0A\u{2}KEYS\u{1}k1 k2\u{2}TAGS\u{1}apfel ö\u{2}x\u{1}1\u{2}".into(),
        reconsume_times: 0,
        batch: false,
        broker: "broker-0".into(),
    }
}

async fn one_broker(builder: EmbeddedBrokerBuilder) -> (EmbeddedBroker, Link, Link) {
    let broker = builder.start().await.unwrap();
    let names = Link::to(broker.namesrv()).await;
    let link = Link::to(broker.brokers().next().unwrap().1).await;
    (broker, names, link)
}

#[tokio::test]
async fn the_first_send_to_a_topic_creates_it_and_what_arrived_can_be_read_back() {
    let (broker, mut names, mut link) = one_broker(EmbeddedBroker::builder()).await;
    assert_eq!(names.route("orders").await.code(), code::TOPIC_NOT_EXIST);
    let default = TopicRoute::parse(names.route("TBW102").await.body()).unwrap();
    assert_eq!((default.queue_datas[0].perm, default.queue_datas[0].write_queue_nums), (7, 8));

    let response = link.send(&message("orders"), "a body").await;
    let stored = SendResponse::decode(&response).unwrap();
    assert_eq!(response.code(), Code::SUCCESS);
    assert_eq!((stored.queue_id, stored.queue_offset), (3, 0));
    assert_eq!(response.field("transactionId").as_deref(), Some("0A"));
    assert_eq!(response.field("MSG_REGION").as_deref(), Some("DefaultRegion"));
    assert_eq!(response.field("TRACE_ON").as_deref(), Some("true"));

    let route = TopicRoute::parse(names.route("orders").await.body()).unwrap();
    assert_eq!((route.queue_datas[0].perm, route.queue_datas[0].write_queue_nums), (6, 4));
    assert_eq!(route.broker_datas[0].master(), Some(broker.brokers().next().unwrap().1.as_str()));

    let [read] = &broker.stored("orders")[..] else { panic!("one message") };
    assert_eq!(read.queue, MessageQueue::new("orders", "broker-0", 3));
    assert_eq!((read.queue_offset, read.body.as_ref()), (0, &b"a body"[..]));
    assert_eq!(read.offset_message_id, stored.offset_message_id);
    assert_eq!((read.unique_key.as_deref(), read.tag.as_deref()), (Some("0A"), Some("apfel ö")));
    assert_eq!(read.keys, ["k1", "k2"]);
    assert_eq!(read.properties["x"], "1");
    assert_eq!((read.flag, read.born_timestamp_ms, &*read.producer_group), (9, 1_700_000_000_000, "group"));
    assert_eq!(read.born_host, link.stream.local_addr().unwrap());
    assert!(read.store_timestamp_ms > read.born_timestamp_ms);
    broker.close().await;
}

#[tokio::test]
async fn both_layouts_and_both_header_encodings_store_the_same() {
    /// The long names of `SEND_MESSAGE`.
    struct LongNames;

    impl Header for LongNames {
        fn write(&self, fields: &mut Fields<'_>) {
            for (name, value) in [("producerGroup", "group"), ("topic", "orders"), ("defaultTopic", "TBW102")]
            {
                fields.str(name, value);
            }
            for (name, value) in [("defaultTopicQueueNums", 4), ("queueId", 3), ("sysFlag", 0), ("flag", 9)] {
                fields.int(name, value);
            }
            fields.int("bornTimestamp", 1_700_000_000_000);
            fields.str("properties", &message("orders").properties);
        }
    }

    let (broker, _, mut link) = one_broker(EmbeddedBroker::builder()).await;
    for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
        link.options.encoding = encoding;
        assert_eq!(link.send(&message("orders"), "body").await.code(), Code::SUCCESS);
        assert_eq!(link.ask(code::SEND_MESSAGE, &LongNames, "body").await.code(), Code::SUCCESS);
    }
    let stored = broker.stored("orders");
    assert_eq!(stored.iter().map(|it| it.queue_offset).collect::<Vec<_>>(), [0, 1, 2, 3]);
    for one in &stored {
        assert_eq!(
            (&one.properties, &one.body, &one.queue),
            (&stored[0].properties, &stored[0].body, &stored[0].queue)
        );
    }
}

#[tokio::test]
async fn each_send_that_breaks_a_rule_is_refused_with_the_code_of_a_real_broker_and_stores_nothing() {
    let (broker, _, mut link) =
        one_broker(EmbeddedBroker::builder().topic("t", 2).max_message_bytes(4)).await;
    let good = SendRequest { queue_id: 0, ..message("t") };
    let long = format!("x\u{1}{}\u{2}", "v".repeat(32_767));
    for (bad, body, code, reason) in [
        (good.clone(), "", 1, "no body"),
        (good.clone(), "12345", 13, "msg body length limit 4B"),
        (SendRequest { queue_id: 2, ..good.clone() }, "b", 29, "queueId[2] is illegal"),
        (SendRequest { topic: "a.b".into(), ..good.clone() }, "b", 29, "holds '.'"),
        (SendRequest { topic: "TBW102".into(), ..good.clone() }, "b", 29, "belongs to the brokers"),
        (
            SendRequest { topic: "u".into(), default_topic: "t".into(), ..good.clone() },
            "b",
            17,
            "topic[u] not exist",
        ),
        (
            SendRequest { topic: "u".into(), default_topic_queue_nums: 0, ..good.clone() },
            "b",
            29,
            "is 0, not between",
        ),
        (SendRequest { properties: long.into(), ..good.clone() }, "b", 13, "properties length limit"),
        (SendRequest { batch: true, ..good.clone() }, "b", 13, "batches"),
        (
            SendRequest { properties: "TRAN_MSG\u{1}true\u{2}".into(), ..good.clone() },
            "b",
            16,
            "is forbidden",
        ),
        (SendRequest { topic: Cow::Borrowed(""), ..good.clone() }, "b", 1, "field b is missing"),
    ] {
        let response = link.send(&bad, body).await;
        let remark = response.remark().unwrap_or_default().into_owned();
        assert_eq!(response.code(), Code(code), "{bad:?}: {remark}");
        assert!(remark.contains(reason), "{bad:?}: {remark}");
    }
    assert_eq!((broker.stored_count("t"), broker.stored_count("u")), (0, 0));
    assert_eq!(link.send(&good, "1234").await.code(), Code::SUCCESS);
}

#[tokio::test]
async fn the_largest_and_smallest_numbers_are_taken_or_refused_like_any_other() {
    let (broker, _, mut link) = one_broker(EmbeddedBroker::builder()).await;
    let all = |number: i32| SendRequest {
        queue_id: number,
        default_topic_queue_nums: i32::MAX,
        sys_flag: number,
        born_timestamp: i64::from(number) << 32,
        flag: number,
        reconsume_times: number,
        ..message("t")
    };
    assert_eq!(link.send(&all(i32::MIN), "b").await.code(), Code::SUCCESS);
    assert_eq!(link.send(&all(i32::MAX), "b").await.code(), code::INVALID_PARAMETER);
    let [stored] = &broker.stored("t")[..] else { panic!("one message") };
    assert_eq!((stored.flag, stored.sys_flag, stored.born_timestamp_ms), (i32::MIN, i32::MIN, i64::MIN));
    assert!(stored.queue.id() < 8);
}

#[tokio::test]
async fn without_automatic_topics_the_default_topic_is_unknown_and_so_is_every_other() {
    let builder = EmbeddedBroker::builder().auto_create_topics(AutoCreateTopics::Off);
    let (broker, mut names, mut link) = one_broker(builder).await;
    assert_eq!(names.route("TBW102").await.code(), code::TOPIC_NOT_EXIST);
    assert_eq!(link.send(&message("orders"), "b").await.code(), code::TOPIC_NOT_EXIST);
    broker.create_topic("orders", 4).unwrap();
    assert_eq!(link.send(&message("orders"), "b").await.code(), Code::SUCCESS);
}

#[tokio::test]
async fn a_topic_created_by_request_exists_at_that_broker_only() {
    let broker = EmbeddedBroker::builder().brokers(2).start().await.unwrap();
    let (mut names, second) = (Link::to(broker.namesrv()).await, broker.brokers().nth(1).unwrap().1.clone());
    let mut link = Link::to(&second).await;
    let mut create = CreateTopic {
        topic: "orders".into(),
        default_topic: "TBW102".into(),
        read_queue_nums: 3,
        write_queue_nums: 2,
        perm: 4,
        sys_flag: 0,
        order: false,
    };
    assert_eq!(link.ask(code::UPDATE_AND_CREATE_TOPIC, &create, "").await.code(), Code::SUCCESS);
    let route = TopicRoute::parse(names.route("orders").await.body()).unwrap();
    let [queues] = &route.queue_datas[..] else { panic!("{route:?}") };
    assert_eq!((&*queues.broker_name, queues.read_queue_nums, queues.write_queue_nums), ("broker-1", 3, 2));
    assert_eq!((queues.perm, route.broker_datas[0].master()), (4, Some(second.as_str())));
    create.write_queue_nums = -1;
    let refused = link.ask(code::UPDATE_AND_CREATE_TOPIC, &create, "").await;
    assert!(refused.remark().unwrap_or_default().contains("writeQueueNums is -1"), "{refused:?}");
}

#[tokio::test]
async fn old_clients_get_number_keys_without_quotes_unless_they_ask_for_standard_json() {
    struct Plain;

    impl Header for Plain {
        fn write(&self, fields: &mut Fields<'_>) {
            fields.str("topic", "t");
        }
    }

    let (_broker, mut names, _) = one_broker(EmbeddedBroker::builder().topic("t", 1)).await;
    names.options.version = 400;
    let bare = names.ask(code::GET_ROUTEINFO_BY_TOPIC, &Plain, "").await;
    assert!(String::from_utf8_lossy(bare.body()).contains(r#""brokerAddrs":{0:"#));
    let asked = names.route("t").await;
    assert!(String::from_utf8_lossy(asked.body()).contains(r#""brokerAddrs":{"0":"#));
    names.options.version = 401;
    let new = names.ask(code::GET_ROUTEINFO_BY_TOPIC, &Plain, "").await;
    assert_eq!(new.body(), asked.body());
    let cluster = names.ask(code::GET_BROKER_CLUSTER_INFO, &(), "").await;
    assert!(String::from_utf8_lossy(cluster.body()).contains(r#""brokerAddrs":{0:"#));
}

#[tokio::test]
async fn a_client_is_known_from_its_heartbeat_to_the_end_of_its_connection() {
    let (broker, _, mut link) = one_broker(EmbeddedBroker::builder()).await;
    let groups = ["b", "a"].map(|group| ProducerData { group_name: group.into() });
    let heartbeat = Heartbeat { client_id: "me".into(), producer_data_set: groups.into() };
    assert_eq!(link.ask(code::HEART_BEAT, &(), heartbeat.to_json()).await.code(), Code::SUCCESS);
    let known = KnownClient {
        client_id: "me".into(),
        broker: "broker-0".into(),
        remote: link.stream.local_addr().unwrap(),
        producer_groups: vec!["a".into(), "b".into()],
    };
    assert_eq!(broker.clients(), [known]);
    let unregister = Unregister { client_id: "me".into(), producer_group: "a".into() };
    assert_eq!(link.ask(code::UNREGISTER_CLIENT, &unregister, "").await.code(), Code::SUCCESS);
    assert_eq!(broker.clients()[0].producer_groups, ["b"]);
    let bad = link.ask(code::HEART_BEAT, &(), "{").await;
    assert!(bad.remark().unwrap_or_default().contains("cannot be read"), "{bad:?}");
    drop(link);
    while !broker.clients().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn other_operations_are_not_supported_and_the_connection_goes_on() {
    let (_broker, mut names, mut link) = one_broker(EmbeddedBroker::builder().topic("t", 1)).await;
    for link in [&mut names, &mut link] {
        for code in [0, 361, 320, 3_000, 200_050] {
            let response = link.ask(Code(code), &(), "").await;
            assert_eq!(response.code(), Code::REQUEST_CODE_NOT_SUPPORTED);
            assert!(response.remark().unwrap_or_default().contains(&code.to_string()));
        }
    }
    assert_eq!(names.route("t").await.code(), Code::SUCCESS);
    assert_eq!(link.send(&SendRequest { queue_id: -1, ..message("t") }, "b").await.code(), Code::SUCCESS);
}

#[tokio::test]
async fn a_full_broker_refuses_and_keeps_what_it_has() {
    let (broker, _, mut link) = one_broker(EmbeddedBroker::builder().max_retained_messages(1)).await;
    assert_eq!(link.send(&message("t"), "b").await.code(), Code::SUCCESS);
    assert_eq!(link.send(&message("t"), "b").await.code(), code::SERVICE_NOT_AVAILABLE);
    assert_eq!(broker.stored_count("t"), 1);
}

#[tokio::test]
async fn closing_and_dropping_both_end_the_connections_and_free_the_port() {
    let first = EmbeddedBroker::start().await.unwrap();
    let port = first.namesrv().port();
    let taken = EmbeddedBroker::builder().port(port).start().await.unwrap_err();
    assert!(matches!(taken, EmbeddedBrokerError::Listen { .. }), "{taken:?}");
    let mut link = Link::to(first.namesrv()).await;
    link.route("t").await;
    first.close().await;
    assert_eq!(link.stream.read_buf(&mut link.input).await.unwrap(), 0);
    let again = EmbeddedBroker::builder().port(port).start().await.unwrap();
    let mut link = Link::to(again.namesrv()).await;
    link.route("t").await;
    drop(again);
    assert_eq!(link.stream.read_buf(&mut link.input).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn settings_out_of_range_are_refused_by_name() {
    for (builder, named) in [
        (EmbeddedBroker::builder().brokers(0), "brokers"),
        (EmbeddedBroker::builder().brokers(65), "brokers"),
        (EmbeddedBroker::builder().max_message_bytes(0), "max_message_bytes"),
        (EmbeddedBroker::builder().max_message_bytes(16 << 20), "max_message_bytes"),
        (EmbeddedBroker::builder().topic("a.b", 1), "a.b"),
        (EmbeddedBroker::builder().topic("t", 0), "\"t\""),
        (EmbeddedBroker::builder().topic("t", u32::MAX), "\"t\""),
    ] {
        let error = builder.start().await.unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
}
