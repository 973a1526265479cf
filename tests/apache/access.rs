//! A broker that wants every request signed.

use std::sync::Arc;

use rocketmq_client::{Message, Producer, SendErrorKind, SendStatus};
use rocketmq_tests::apache::{BrokerSpec, Cluster};
use rocketmq_transport::{AclSigner, Certainty};

use crate::setup::{cluster_of, producer, started};

#[tokio::test]
async fn the_right_secret_is_stored_and_a_wrong_one_is_refused_by_the_first_broker_asked() {
    let cluster = cluster_of(guarded());
    let receipt = signed(&cluster, "rootsecret").await.send(message()).await.expect("root may do anything");
    assert_eq!(receipt.status(), SendStatus::Stored);

    let error = signed(&cluster, "guess").await.send(message()).await.expect_err("the secret is wrong");
    let SendErrorKind::Answer { code, remark } = error.kind() else { panic!("{error}") };
    assert_eq!((code.0, &**remark), (16, "check signature failed."));
    assert_eq!((error.certainty(), error.attempts().len()), (Certainty::Refused, 1));
    assert!(!format!("{error} {error:?}").contains("guess"));

    let error =
        started(producer(cluster.namesrv())).await.send(message()).await.expect_err("it is not signed");
    assert_eq!((error.certainty(), error.attempts().len()), (Certainty::Refused, 1));
}

async fn signed(cluster: &Cluster, secret: &str) -> Producer {
    let signer = AclSigner::new("root", secret).expect("neither is empty");
    started(producer(cluster.namesrv()).signer(Arc::new(signer))).await
}

fn message() -> Message {
    Message::new("guarded", "body").with_tag("标签").with_keys(["k1", "k2"])
}

fn guarded() -> BrokerSpec {
    let provider = "org.apache.rocketmq.auth.authentication.provider.LocalAuthenticationMetadataProvider";
    BrokerSpec::new("broker-a")
        .with("authenticationEnabled", "true")
        .with("authenticationMetadataProvider", provider)
        .with("initAuthenticationUser", r#"{"username":"root","password":"rootsecret"}"#)
        .with("innerClientAuthenticationCredentials", r#"{"accessKey":"inner","secretKey":"innersecret"}"#)
}
