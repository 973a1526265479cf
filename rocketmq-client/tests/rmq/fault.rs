//! `rmq broker --fault`.

use crate::run::{Running, rmq};

/// A broker with these arguments, and the address of its name server.
async fn broker(args: &str) -> (Running, String) {
    let mut broker = Running::start(&format!("broker {args}"));
    let address = broker.out.next_line().await.expect("a line").expect("the address");
    (broker, address)
}

#[tokio::test]
async fn messages_go_around_the_one_broker_that_has_a_fault() {
    let (broker, address) =
        broker("--brokers 2 --topic t:1 --fault at=broker-1,code=310,answer=2:busy").await;
    let sent = rmq(&format!("produce --namesrv {address} --topic t --count 4 --output json")).await;
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let (events, _) = sent.events();
    assert!(events.iter().all(|event| event["broker"] == "broker-0"), "{events:?}");
    let refused = |event: &serde_json::Value| event["attempts"][0]["certainty"] == "Refused";
    assert!(events.iter().any(refused), "nobody has asked broker-1: {events:?}");
    broker.signal("INT").await;
    assert_eq!(broker.end().await.0, Some(0));
}

#[tokio::test]
async fn several_faults_strike_one_after_the_other_and_the_report_names_each() {
    let faults = "--fault code=310,times=1,answer=16:no --fault code=310,times=1,never";
    let (_broker, address) = broker(&format!("--topic t:1 {faults}")).await;
    let line = "--topic t --count 3 --concurrency 1 --attempts 1 --timeout 300 --output json";
    let sent = rmq(&format!("produce --namesrv {address} {line}")).await;
    assert_eq!(sent.code, Some(1), "{sent:?}");
    let (events, summary) = sent.events();
    assert_eq!(summary["outcome"], serde_json::json!({ "stored": 1, "failed": 2 }));
    assert_eq!((&events[0]["certainty"], &events[1]["certainty"]), (&"Refused".into(), &"Unknown".into()));
    assert!(events[0]["message"].as_str().unwrap().contains("no"), "{}", events[0]);
}

#[tokio::test]
async fn the_help_shows_every_fault() {
    let help = rmq("broker --help").await.out;
    for form in [
        "delay=MS",
        "never",
        "ignore",
        "twice",
        "opaque=unknown",
        "opaque=foreign",
        "answer=CODE[:REMARK]",
        "garbage[=BYTES]",
        "connect=slow:MS",
        "connect=refuse",
        "stop-reading[=BYTES]",
        "cut=in:BYTES:HOW",
        "cut=out:BYTES:HOW",
    ] {
        assert!(help.contains(&format!("\n            {form} ")), "{form}: {help}");
    }
}
