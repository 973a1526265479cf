//! Brokers that want every request signed by somebody who may make it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_client::{Message, Producer, SendErrorKind};
use rocketmq_tests::apache::{BrokerSpec, Cluster, ClusterSpec};
use rocketmq_transport::{
    AclSigner, CallOptions, Certainty, Code, Fields, Header, Request, RequestDeadline, Transport,
    TransportConfig,
};

use crate::setup::{BUDGET, producer, start, started, wait_until_idle};

#[tokio::test(flavor = "multi_thread")]
async fn version_five_says_at_once_who_may_not_send() {
    let cluster = start(ClusterSpec { brokers: guarded(version_five), ..ClusterSpec::default() });
    for broker in cluster.brokers() {
        let user =
            r#"{"username":"alice","password":"alicesecret","userType":"Normal","userStatus":"enable"}"#;
        ask_as_root(broker, CREATE_USER, ("username", "alice"), user).await;
        let acl = r#"{"subject":"User:alice","policies":[{"policyType":"CUSTOM","entries":[
            {"resource":"Topic:open","actions":["PUB"],"decision":"ALLOW"}]}]}"#;
        ask_as_root(broker, CREATE_ACL, ("subject", "User:alice"), acl).await;
    }
    assert_stored(&cluster, ("root", "rootsecret"), "closed").await;
    assert_stored(&cluster, ("alice", "alicesecret"), "open").await;
    for (who, topic, remark) in [
        (Some(("root", "guess")), "closed", "check signature failed."),
        (Some(("alice", "guess")), "open", "check signature failed."),
        (Some(("nobody", "secret")), "open", "User:nobody is not found."),
        (Some(("alice", "alicesecret")), "closed", "User:alice has no permission to access Topic:closed"),
        (None, "open", "username cannot be null."),
    ] {
        assert_refused(&cluster, who, topic, (16, remark)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn version_four_says_at_once_who_may_not_send() {
    let brokers = guarded(version_four);
    let cluster = start(ClusterSpec { version: "4.9.7".to_owned(), brokers, ..ClusterSpec::default() });
    assert_stored(&cluster, ("rootuser", "rootsecret"), "closed").await;
    assert_stored(&cluster, ("alice01", "alicesecret"), "open").await;
    for (who, topic, remark) in [
        (Some(("alice01", "guess")), "open", "Check signature failed for accessKey=alice01"),
        (Some(("nobody01", "secret")), "open", "No acl config for nobody01"),
        (Some(("alice01", "alicesecret")), "closed", "No default permission for topic:closed"),
        (None, "open", "No accessKey is configured"),
    ] {
        let remark = format!("org.apache.rocketmq.acl.common.AclException: {remark}");
        assert_refused(&cluster, who, topic, (1, &remark)).await;
    }
}

/// A name and a secret.
type Credentials<'a> = (&'a str, &'a str);

/// Sends until either broker has stored a message.
async fn assert_stored(cluster: &Cluster, who: Credentials<'_>, topic: &str) {
    let producer = producer_of(cluster, Some(who)).await;
    let mut brokers = Vec::new();
    for _ in 0..8 {
        let receipt =
            producer.send(Message::new(topic, "body")).await.unwrap_or_else(|error| panic!("{error}"));
        brokers.push(receipt.broker().to_owned());
    }
    brokers.sort();
    brokers.dedup();
    assert_eq!(brokers, ["broker-a", "broker-b"]);
}

/// Sends once, and wants the answer of the first broker asked to be the end of it.
async fn assert_refused(
    cluster: &Cluster,
    who: Option<Credentials<'_>>,
    topic: &str,
    (status, text): (i32, &str),
) {
    let producer = producer_of(cluster, who).await;
    let message = Message::new(topic, "body").with_tag("标签").with_keys(["k1", "k2"]);
    let error = producer.send(message).await.expect_err(text);
    let SendErrorKind::Answer { code, remark } = error.kind() else { panic!("{error}") };
    assert!(code.0 == status && remark.starts_with(text), "{error}");
    let [attempt] = error.attempts() else { panic!("{error}") };
    assert_eq!((error.certainty(), attempt.certainty()), (Certainty::Refused, Some(Certainty::Refused)));
    let (_, secret) = who.unwrap_or(("", "no secret"));
    assert!(!format!("{error} {error:?}").contains(secret));
    wait_until_idle(&producer);
}

async fn producer_of(cluster: &Cluster, who: Option<Credentials<'_>>) -> Producer {
    let mut builder = producer(cluster.namesrv());
    if let Some((name, secret)) = who {
        builder = builder.signer(Arc::new(AclSigner::new(name, secret).expect("neither is empty")));
    }
    started(builder).await
}

/// Has the broker carry out an administrative request, signed as any other.
async fn ask_as_root(broker: SocketAddr, code: Code, field: (&str, &str), body: &'static str) {
    let signer = AclSigner::new("root", "rootsecret").expect("neither is empty");
    let transport = Transport::builder(TransportConfig::default()).signer(Arc::new(signer));
    let transport = transport.build().expect("the settings are valid");
    let request =
        Request { code, header: &Field(field.0, field.1), body: Bytes::from_static(body.as_bytes()) };
    let options = CallOptions::from(RequestDeadline::after(BUDGET));
    let answer = transport.call(&broker.into(), request, options).await.expect("the broker runs").response;
    assert_eq!(answer.code(), Code::SUCCESS, "{:?}", answer.remark());
    transport.close(Duration::ZERO).await;
}

/// A header of one field.
struct Field<'a>(&'a str, &'a str);

impl Header for Field<'_> {
    fn write(&self, fields: &mut Fields<'_>) {
        fields.str(self.0, self.1);
    }
}

fn guarded(settings: fn(BrokerSpec) -> BrokerSpec) -> Vec<BrokerSpec> {
    ["broker-a", "broker-b"].map(|name| settings(BrokerSpec::new(name))).into()
}

fn version_five(broker: BrokerSpec) -> BrokerSpec {
    let provider = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider";
    let policies = "org.apache.rocketmq.auth.authorization.provider.LocalAuthorizationMetadataProvider";
    broker
        .with("authenticationEnabled", "true")
        .with("authenticationMetadataProvider", provider)
        .with("initAuthenticationUser", r#"{"username":"root","password":"rootsecret"}"#)
        .with("innerClientAuthenticationCredentials", r#"{"accessKey":"inner","secretKey":"innersecret"}"#)
        .with("authorizationEnabled", "true")
        .with("authorizationMetadataProvider", policies)
}

fn version_four(broker: BrokerSpec) -> BrokerSpec {
    broker.with("aclEnable", "true").with_file("conf/plain_acl.yml", ACCOUNTS)
}

const ACCOUNTS: &str = "globalWhiteRemoteAddresses:
accounts:
  - accessKey: rootuser
    secretKey: rootsecret
    whiteRemoteAddress:
    admin: true
  - accessKey: alice01
    secretKey: alicesecret
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - open=PUB
";

// The names are those of Apache's `RequestCode`.
const CREATE_USER: Code = Code(3001);
const CREATE_ACL: Code = Code(3006);
