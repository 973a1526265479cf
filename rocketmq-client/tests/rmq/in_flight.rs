//! What is in flight: on request, and what is left at the end.

use serde_json::Value;

use crate::{
    peer::Peer,
    run::{Running, rmq},
};

#[tokio::test]
async fn a_signal_lists_what_is_in_flight_and_changes_nothing() {
    let (server, peer) = Peer::start(None).await;
    let line = format!("produce --namesrv {} --topic t --timeout 60000 --output json", server.local_addr());
    let mut running = Running::start(&line);
    peer.arrived.acquire().await.expect("it is never closed").forget();
    for _ in 0..2 {
        running.signal("USR1").await;
        running.until_told("in flight: ").await;
        running.until_told("request 310 opaque").await;
    }
    peer.allowed.add_permits(1);
    assert_eq!(running.event().await["outcome"], "stored");
    assert_eq!(running.event().await.get("in_flight"), None, "nothing is left");
    assert_eq!(running.end().await, (Some(0), String::new()));
}

#[tokio::test]
async fn the_report_has_the_messages_whose_answers_may_still_come() {
    let (server, _peer) = Peer::start(None).await;
    let address = server.local_addr();
    let line = format!("produce --namesrv {address} --topic t --count 2 --timeout 300 --attempts 1");
    let ended = rmq(&format!("{line} --output json")).await;
    let (_, summary) = ended.events();
    let left = &summary["in_flight"];
    assert_eq!(left["omitted"], 0);
    let requests = left["requests"].as_array().expect("a list");
    assert_eq!(requests.len(), 2, "{left}");
    for request in requests {
        assert_eq!((&request["request"], &request["stage"]), (&310.into(), &Value::Null), "{left}");
        assert_eq!(request["peer"], address.to_string(), "{left}");
        assert!(request["age_ms"].as_u64() >= Some(300), "{left}");
    }
    let ended = rmq(&line).await;
    assert!(ended.out.contains("\nin flight: 2\n  request 310 opaque "), "{ended:?}");
}
