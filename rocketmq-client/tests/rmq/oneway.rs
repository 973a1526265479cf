//! `rmq produce --oneway`.

use std::net::TcpListener;

use rocketmq_client::{EmbeddedBroker, FaultSite};
use serde_json::{Value, json};

use crate::run::rmq;

#[tokio::test]
async fn a_one_way_message_is_written_whatever_the_broker_makes_of_it() {
    let broker = EmbeddedBroker::builder().topic("t", 1).start().await.unwrap();
    for (fault, ignored) in [(None, 0), (Some("code=310,ignore".parse().unwrap()), 3)] {
        broker.set_faults(FaultSite::EveryBroker, fault).unwrap();
        let line = "--topic t --count 3 --size 10 --oneway --output json";
        let ended = rmq(&format!("produce --namesrv {} {line}", broker.namesrv())).await;
        assert_eq!((ended.code, &*ended.err), (Some(0), ""), "{ended:?}");
        let (events, summary) = ended.events();
        for event in &events {
            assert_eq!((&event["outcome"], &event["broker"]), (&"written".into(), &"broker-0".into()));
            assert_eq!(event["msg_id"].as_str().map(str::len), Some(32));
            assert_eq!(event.get("queue_offset"), None, "nobody has said it");
            assert_eq!(event["attempts"][0]["certainty"], Value::Null);
        }
        assert_eq!(summary["outcome"], json!({ "written": 3, "failed": 0 }));
        assert_eq!((&summary["written_bytes"], summary.get("stored_bytes")), (&30.into(), None));
        // The program has waited for the sockets, and not for the broker.
        while broker.stored_count("t") < 3 || broker.faults_struck(FaultSite::EveryBroker).unwrap() < ignored
        {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(broker.stored_count("t"), 3);
}

#[tokio::test]
async fn a_one_way_message_that_cannot_be_sent_fails_like_any_other() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let line = format!("produce --namesrv {dead} --topic t --oneway --timeout 300 --output json");
    let ended = rmq(&line).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (events, summary) = ended.events();
    assert_eq!((&events[0]["outcome"], &events[0]["stage"]), (&"failed".into(), &"Route".into()));
    assert_eq!(summary["outcome"], json!({ "written": 0, "failed": 1 }));
}

#[tokio::test]
async fn the_text_says_written() {
    let ended = rmq("produce --embedded --count 2 --size 10 --oneway").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.starts_with("2 of 2 messages written (20 bytes)"), "{ended:?}");
}
