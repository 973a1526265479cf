//! Servers that misbehave, each by its own script.

use std::io;

use super::*;

#[tokio::test]
async fn a_fault_strikes_where_it_is_set_and_nowhere_else() {
    let busy: Fault = "code=310,times=1,answer=2:busy".parse().unwrap();
    let builder = EmbeddedBroker::builder().brokers(2).topic("t", 4).fault(FaultSite::Broker(1), busy);
    let broker = builder.start().await.unwrap();
    let mut links = Vec::new();
    for (_, peer) in broker.brokers() {
        links.push(Link::to(peer).await);
    }
    let mut codes = Vec::new();
    for _ in 0..2 {
        for link in &mut links {
            codes.push(link.send(&message("t"), "b").await.code().0);
        }
    }
    assert_eq!(codes, [0, 2, 0, 0]);
    assert_eq!(broker.stored_count("t"), 3);
    let struck = |site| broker.faults_struck(site).unwrap();
    assert_eq!(
        (struck(FaultSite::EveryBroker), struck(FaultSite::Broker(0)), struck(FaultSite::Broker(1))),
        (1, 0, 1)
    );
}

#[tokio::test]
async fn every_broker_counts_for_itself_and_faults_can_be_changed_while_it_runs() {
    let broker = EmbeddedBroker::builder().brokers(2).topic("t", 4).start().await.unwrap();
    broker.set_faults(FaultSite::EveryBroker, ["times=1,answer=2".parse().unwrap()]).unwrap();
    for (_, peer) in broker.brokers() {
        let mut link = Link::to(peer).await;
        assert_eq!(link.send(&message("t"), "b").await.code(), code::SYSTEM_BUSY);
        assert_eq!(link.send(&message("t"), "b").await.code(), Code::SUCCESS);
    }
    broker.set_faults(FaultSite::NameServer, ["answer=2".parse().unwrap()]).unwrap();
    let mut names = Link::to(broker.namesrv()).await;
    assert_eq!(names.route("t").await.code(), code::SYSTEM_BUSY);
    broker.set_faults(FaultSite::NameServer, []).unwrap();
    assert_eq!(names.route("t").await.code(), Code::SUCCESS);
}

#[tokio::test]
async fn a_broker_that_refuses_connections_keeps_its_port_and_comes_back() {
    let broker = EmbeddedBroker::builder().topic("t", 1).start().await.unwrap();
    let peer = broker.brokers().next().unwrap().1.clone();
    let dial = async || TcpStream::connect(peer.as_str()).await.map_err(|error| error.kind()).err();
    broker.set_faults(FaultSite::EveryBroker, ["connect=refuse".parse().unwrap()]).unwrap();
    while dial().await != Some(io::ErrorKind::ConnectionRefused) {
        tokio::task::yield_now().await;
    }
    broker.set_faults(FaultSite::EveryBroker, []).unwrap();
    while dial().await.is_some() {
        tokio::task::yield_now().await;
    }
    broker.close().await;
}

#[tokio::test]
async fn a_fault_for_a_broker_that_there_is_not_is_refused_with_its_number() {
    let never: Fault = "never".parse().unwrap();
    let builder = EmbeddedBroker::builder().brokers(2).fault(FaultSite::Broker(2), never.clone());
    let error = builder.start().await.unwrap_err();
    assert!(matches!(error, EmbeddedBrokerError::NoSuchBroker { index: 2, brokers: 2 }), "{error:?}");
    let broker = EmbeddedBroker::start().await.unwrap();
    let error = broker.set_faults(FaultSite::Broker(7), [never]).unwrap_err();
    assert!(error.to_string().contains("no broker-7"), "{error}");
}
