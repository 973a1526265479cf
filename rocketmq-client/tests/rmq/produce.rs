//! What is sent, and where it ends.

use std::{collections::BTreeMap, fs, net::TcpListener};

use rocketmq_client::{AutoCreateTopics, EmbeddedBroker, StoredMessage};
use rocketmq_transport::AclSigner;
use serde_json::Value;

use crate::{
    peer::Peer,
    run::{command, rmq, rmq_with_input},
};

fn bodies(stored: &[StoredMessage]) -> Vec<Vec<u8>> {
    let mut bodies: Vec<_> = stored.iter().map(|message| message.body.to_vec()).collect();
    bodies.sort_unstable();
    bodies
}

#[tokio::test]
async fn each_line_of_the_input_is_one_message_byte_for_byte_and_an_empty_one_fails() {
    let broker = EmbeddedBroker::start().await.unwrap();
    let line = format!("produce --namesrv {} --topic orders --file - --output json", broker.namesrv());
    let ended = rmq_with_input(&line, b"first\r\n\n\xff\x00\xfe\nlast").await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(bodies(&broker.stored("orders")), [&b"first\r"[..], b"last", b"\xff\x00\xfe"]);
    let (events, summary) = ended.events();
    let outcomes: Vec<_> = events.iter().map(|event| event["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["stored", "failed", "stored", "stored"]);
    let failed = &events[1];
    assert_eq!((&failed["stage"], &failed["certainty"]), (&Value::from("Route"), &Value::from("Refused")));
    assert_eq!((&failed["code_id"], &failed["attempts"]), (&Value::from("RMQ-C01"), &serde_json::json!([])));
    assert!(failed["message"].as_str().unwrap().contains("the body is empty"), "{failed}");
    assert_eq!(summary["stage"], serde_json::json!({ "Route": 1 }));
    assert_eq!(summary["certainty"], serde_json::json!({ "Refused": 1 }));
}

#[tokio::test]
async fn a_line_too_long_for_a_message_fails_and_the_lines_around_it_are_sent() {
    let broker = EmbeddedBroker::start().await.unwrap();
    let line = format!("produce --namesrv {} --topic t --file - --output json", broker.namesrv());
    let input = [&b"a\n"[..], &vec![b'x'; (4 << 20) + 1], b"\n", &vec![b'y'; 4 << 20], b"\nb\n"].concat();
    let ended = rmq_with_input(&line, &input).await;
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let lengths: Vec<_> = bodies(&broker.stored("t")).iter().map(Vec::len).collect();
    assert_eq!(lengths, [1, 1, 4 << 20]);
    let failed = &ended.events().0[1];
    assert!(failed["message"].as_str().unwrap().contains("4194305 bytes, at most 4194304"), "{failed}");
    assert_eq!(failed["code_id"], "RMQ-C01");
}

#[tokio::test]
async fn an_empty_input_sends_nothing_and_that_is_no_failure() {
    let ended = rmq_with_input("produce --embedded --file - --output json", b"").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.events().1["messages"], 0);
}

#[tokio::test]
async fn body_keys_and_tag_arrive_with_either_header_and_every_name_server_is_known() {
    let broker = EmbeddedBroker::builder().brokers(2).topic("t", 2).start().await.unwrap();
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for header in ["json", "binary"] {
        let line = format!(
            "produce --namesrv {dead};{} --topic t --body hällo --key k1 --key k2 --tag fruit --count 4 --header {header}",
            broker.namesrv()
        );
        let ended = rmq(&line).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let stored = broker.stored("t");
    assert_eq!(stored.len(), 8);
    let mut by_broker = BTreeMap::<_, usize>::new();
    for message in &stored {
        assert_eq!(message.body, "hällo".as_bytes());
        assert_eq!(
            (&message.keys[..], message.tag.as_deref()),
            (&["k1".into(), "k2".into()][..], Some("fruit"))
        );
        assert_eq!(message.unique_key.as_ref().map(String::len), Some(32));
        *by_broker.entry(message.queue.broker()).or_default() += 1;
    }
    assert_eq!(by_broker.into_values().collect::<Vec<_>>(), [4, 4]);
}

#[tokio::test]
async fn a_name_server_that_refuses_the_connection_fails_every_message_in_route() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let line = format!("produce --namesrv {dead} --topic t --count 3 --timeout 300 --output json");
    let ended = rmq(&line).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (events, summary) = ended.events();
    for event in &events {
        assert_eq!((&event["stage"], &event["certainty"]), (&Value::from("Route"), &Value::from("NotSent")));
        assert!(event["message"].as_str().unwrap().contains(&dead.to_string()), "{event}");
    }
    assert_eq!(summary["stage"], serde_json::json!({ "Route": 3 }));
    assert_eq!(summary["latency_us"], Value::Null);
}

#[tokio::test]
async fn a_name_server_that_never_answers_uses_up_the_budget_in_route() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let ended = rmq(&format!("produce --namesrv {address} --topic t --timeout 200 --output json")).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (events, _) = ended.events();
    assert_eq!(
        (&events[0]["stage"], &events[0]["certainty"]),
        (&Value::from("Route"), &Value::from("NotSent"))
    );
    assert_eq!(events[0]["budget_ms"], 200);
}

#[tokio::test]
async fn an_unknown_topic_fails_in_route_with_its_name() {
    let broker = EmbeddedBroker::builder().auto_create_topics(AutoCreateTopics::Off).start().await.unwrap();
    let line = format!("produce --namesrv {} --topic nosuch --timeout 300 --output json", broker.namesrv());
    let ended = rmq(&line).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (events, _) = ended.events();
    assert_eq!(events[0]["stage"], "Route");
    assert!(events[0]["message"].as_str().unwrap().contains("nosuch"), "{}", events[0]);
}

#[tokio::test]
async fn a_broker_that_never_answers_leaves_it_unknown_whether_the_message_is_stored() {
    let (server, peer) = Peer::start(None).await;
    let address = server.local_addr();
    let line = format!("produce --namesrv {address} --topic t --timeout 500 --attempts 1 --output json");
    let ended = rmq(&line).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let (events, summary) = ended.events();
    let (event, attempt) = (&events[0], &events[0]["attempts"][0]);
    for ended in [event, attempt] {
        assert_eq!((&ended["stage"], &ended["certainty"]), (&"AwaitingResponse".into(), &"Unknown".into()));
    }
    assert_eq!((&attempt["broker"], &attempt["peer"]), (&"peer".into(), &address.to_string().into()));
    assert_eq!(summary["certainty"], serde_json::json!({ "Unknown": 1 }));
    assert_eq!(peer.arrived.available_permits(), 1);
}

#[tokio::test]
async fn requests_are_signed_with_the_secret_key_from_a_file_or_from_the_environment_and_it_is_never_shown() {
    let signer = AclSigner::new("me", "hush").unwrap();
    let (server, peer) = Peer::start(Some(signer)).await;
    peer.allowed.add_permits(100);
    let path = format!("{}/secret", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&path, "hush\n").unwrap();
    let line = format!("-vvv produce --namesrv {} --topic t --count 3 --access-key me", server.local_addr());
    for output in ["text", "json"] {
        let command = || command(line.split(' ').chain(["--output", output]));
        let from_file = command().args(["--secret-key-file", &path]).output().await.unwrap();
        let from_variable = command().env("RMQ_SECRET_KEY", "hush").output().await.unwrap();
        for ended in [from_file, from_variable] {
            let shown = [ended.stdout, ended.stderr].concat();
            let shown = String::from_utf8_lossy(&shown);
            assert_eq!(ended.status.code(), Some(0), "{shown}");
            assert!(!shown.contains("hush"), "{shown}");
        }
    }
    let wrong = command(line.split(' ')).env("RMQ_SECRET_KEY", "wrong").output().await.unwrap();
    assert_eq!(wrong.status.code(), Some(1));
}
