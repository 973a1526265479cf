//! Command lines that cannot be followed: exit code 2, the reason on standard error, nothing sent.

use std::{fs, net::TcpListener};

use crate::run::{command, rmq};

#[tokio::test]
async fn each_impossible_command_line_ends_with_code_2_and_the_reason() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    for (line, reason) in [
        ("", "Usage: rmq"),
        ("produce", "--namesrv"),
        ("produce --namesrv nowhere --topic t", "the port is missing"),
        ("produce --namesrv a:1;b:x --topic t", "the port is not a number"),
        ("produce --embedded --count 0", "--count"),
        ("produce --embedded --size 4194305", "--size"),
        ("produce --embedded --size 1 --body x", "cannot be used with"),
        ("produce --embedded --count 1 --file -", "cannot be used with"),
        ("produce --embedded --namesrv a:1", "cannot be used with"),
        ("produce --embedded --topic a.b", "the topic holds '.'"),
        ("produce --embedded --topic SELF_TEST_TOPIC", "belongs to the brokers"),
        ("produce --embedded --tag \u{1}", "the tag holds a separator"),
        ("produce --embedded --file /does/not/exist", "/does/not/exist cannot be read: No such file"),
        (&format!("produce --embedded --file {folder}"), "is a directory"),
        ("produce --embedded --access-key me", "--secret-key-file or RMQ_SECRET_KEY"),
        (
            "produce --embedded --access-key me --secret-key-file /does/not/exist",
            "/does/not/exist cannot be read",
        ),
        ("produce --embedded --secret-key x", "unexpected argument"),
        ("broker --port 70000", "--port"),
        ("broker --topic a.b", "the topic holds '.'"),
        ("broker --topic t:0", "is 0, not between 1 and"),
        ("broker --brokers 0", "brokers must be between 1 and 64"),
        ("broker --fault explode", "\"explode\" is no fault"),
        ("broker --fault code=310,times=many,never", "times is \"many\", expected a number"),
        ("broker --fault at=broker-1,never", "there is no broker-1"),
        ("broker --fault at=nowhere,never", "at is \"nowhere\", expected namesrv"),
        ("produce --embedded --oneway --duplicates forbid", "cannot be used with"),
        ("broker --topic t:x", "\"x\" is not a number"),
    ] {
        let ended = rmq(line).await;
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.err.contains(reason), "{line}: {ended:?}");
        assert_eq!(ended.out, "", "{line}");
    }
    let key_with_blank = command(["produce", "--embedded", "--key", "a b"]).output().await.unwrap();
    assert_eq!(key_with_blank.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&key_with_blank.stderr).contains("key 0"));
}

#[tokio::test]
async fn a_secret_that_is_no_text_or_empty_is_refused_without_being_shown() {
    for (name, secret, reason) in
        [("empty", &b"\n"[..], "the secret key is empty"), ("binary", b"hush\xff", "does not hold UTF-8")]
    {
        let path = format!("{}/secret-{name}", env!("CARGO_TARGET_TMPDIR"));
        fs::write(&path, secret).unwrap();
        let ended = rmq(&format!("produce --embedded --access-key me --secret-key-file {path}")).await;
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(reason) && !ended.err.contains("hush"), "{ended:?}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_ends_the_broker_with_code_1_and_its_address() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let held = TcpListener::bind(taken).unwrap();
    let ended = rmq(&format!("broker --port {}", taken.port())).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains(&format!("cannot listen on {taken}: Address already in use")), "{ended:?}");
    drop(held);
}

#[tokio::test]
async fn help_and_version_are_no_errors() {
    for line in ["--help", "--version", "produce --help", "broker --help"] {
        let ended = rmq(line).await;
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{line}");
        assert!(ended.out.contains("rmq"), "{line}: {ended:?}");
    }
}
