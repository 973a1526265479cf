//! The one line of a failed send.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use rocketmq_client::Message;
use rocketmq_transport::AclSigner;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use crate::network::{MS, Network, ONE_BROKER, Reply, TWO_BROKERS, answer};

/// One line: its level and target, and its fields.
type Line = (Level, &'static str, BTreeMap<&'static str, String>);

/// Keeps every line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

impl Lines {
    /// The lines at `warn` and above that were written meanwhile.
    async fn of(work: impl Future<Output = ()>) -> Vec<Line> {
        let lines = Self::default();
        let guard = tracing::subscriber::set_default(lines.clone());
        work.await;
        drop(guard);
        lines
            .0
            .lock()
            .expect("no line panics")
            .iter()
            .filter(|(level, ..)| *level <= Level::WARN)
            .cloned()
            .collect()
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        let metadata = event.metadata();
        self.0.lock().expect("no line panics").push((*metadata.level(), metadata.target(), fields.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

/// A message in which everything that may not be logged says so.
fn secretive() -> Message {
    let message = Message::new("orders", "secret-body").with_tag("secret-tag").with_keys(["secret-key"]);
    message.with_property("secret-name", "secret-value").expect("a property like any other")
}

fn check(line: &Line, expected: &[(&str, &str)]) {
    let (level, target, fields) = line;
    assert_eq!((*level, *target), (Level::WARN, "rocketmq::request"));
    for (name, value) in expected {
        assert_eq!(fields.get(name).map(String::as_str), Some(*value), "{name} in {fields:?}");
    }
    assert!(!format!("{fields:?}").contains("secret"), "{fields:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_send_is_one_line_with_all_that_is_known_of_it() {
    let network = Network::default();
    network.name_server(TWO_BROKERS);
    network.brokers([Reply::Silence]);
    let signer = Arc::new(AclSigner::new("access", "secret-of-the-signer").unwrap());
    let producer = network.producer().timeout(900 * MS).attempts(2).signer(signer).build().unwrap();
    let lines = Lines::of(async {
        let error = producer.send(secretive()).await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    })
    .await;
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    check(
        line,
        &[
            ("code_id", "RMQ-T01"),
            ("stage", "AwaitingResponse"),
            ("certainty", "Unknown"),
            ("request", "310"),
            ("budget_ms", "900"),
            ("elapsed_ms", "900"),
            ("route_ms", "0"),
            ("admission_ms", "0"),
            ("connect_ms", "0"),
            ("signing_ms", "0"),
            ("before_write_ms", "0"),
            ("writing_ms", "0"),
            ("awaiting_response_ms", "900"),
            ("topic", "orders"),
            ("queue_id", "0"),
            ("attempt", "2"),
        ],
    );
    let fields = &line.2;
    assert!(["peer", "broker", "generation", "opaque", "bytes"].iter().all(|name| fields.contains_key(name)));
    assert!(!fields.contains_key("pause_ms"), "a stage that was not passed has no field");
}

#[tokio::test(start_paused = true)]
async fn a_send_that_asked_nobody_is_logged_too_and_knows_no_peer() {
    let network = Network::default();
    network.always("ns:1", answer(17, "no route"));
    let producer = network.producer().timeout(Duration::MAX).build().unwrap();
    let lines = Lines::of(async { assert!(producer.send(secretive()).await.is_err()) }).await;
    let [line] = &lines[..] else { panic!("one line, not {lines:?}") };
    check(line, &[("code_id", "RMQ-C03"), ("stage", "Route"), ("certainty", "NotSent"), ("bytes", "11")]);
    assert!(["peer", "generation", "broker", "budget_ms"].iter().all(|name| !line.2.contains_key(name)));
}

#[tokio::test(start_paused = true)]
async fn a_send_that_succeeds_in_the_end_leaves_no_line() {
    let network = Network::default();
    network.name_server(ONE_BROKER);
    network.peer("a:1", |_, number| if number == 0 { answer(2, "busy") } else { Reply::Stored(MS, 0) });
    let producer = network.producer().build().unwrap();
    let lines = Lines::of(async { assert!(producer.send(secretive()).await.is_ok()) }).await;
    assert_eq!(lines.len(), 0, "{lines:?}");
}
