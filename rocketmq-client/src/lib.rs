//! An Apache RocketMQ client whose every failure says where it stopped, where the time went, and whether the
//! broker may have the message.
//!
//! A [`Producer`] sends each [`Message`] under one budget, which covers the route lookup, all attempts and the
//! pauses between them. A send ends in a [`SendReceipt`], or in a [`SendError`] that says
//!
//! - how far it got: [`SendError::stage`];
//! - where its time went: [`SendError::stage_clock`];
//! - what may be assumed of the brokers: [`SendError::certainty`];
//! - whom it asked, and how each attempt ended: [`SendError::attempts`].
//!
//! # Examples
//!
//! ```no_run
//! use std::time::Duration;
//! use rocketmq_client::{Duplicates, Message, Producer, transport::Certainty};
//!
//! # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
//! let producer = Producer::builder("orders")
//!     .namesrv("10.0.0.1:9876;10.0.0.2:9876")
//!     .timeout(Duration::from_secs(2))
//!     .duplicates(Duplicates::Forbid)
//!     .build()?;
//! let message = Message::new("orders", "two apples").with_tag("fruit").with_keys(["order-17"]);
//! match producer.send(message).await {
//!     Ok(receipt) => println!("{} is at {}", receipt.message_id(), receipt.queue()),
//!     Err(error) if error.certainty() == Certainty::Unknown => println!("perhaps stored: {error}"),
//!     Err(error) => println!("not stored: {error}"),
//! }
//! producer.shutdown(Duration::from_secs(3)).await;
//! # Ok(())
//! # }
//! ```
//!
//! A send whose outcome is unknown can be settled: [`SendError::late_outcome`] waits for the answers that come late, and
//! [`Producer::resolve_unknown`] asks the brokers for the message.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `embedded-broker` | a name server and a broker in memory, for demos and for tests of applications |
//! | `cli` | the command line `rmq`; includes `embedded-broker` |
//!
//! # Logs
//!
//! Each send that fails leaves one `warn` line with the target `rocketmq::request`, and many that fail in the same second,
//! at the same peer and in the same way leave three, and one for all the others with their count and the last of them as a
//! sample. Bodies, properties, keys and secrets are in no log, no error and no `Debug` text.

mod attempt;
#[cfg(feature = "embedded-broker")]
mod embedded;
mod error;
mod failure_log;
mod heartbeat;
mod identity;
mod message;
mod producer;
mod protocol;
mod queue;
mod random;
mod retry;
mod routes;
mod tasks;

pub use attempt::Attempt;
#[cfg(feature = "embedded-broker")]
pub use embedded::{
    AutoCreateTopics, EmbeddedBroker, EmbeddedBrokerBuilder, EmbeddedBrokerError, FaultSite, KnownClient,
    StoredMessage, TopicError,
};
pub use error::{SendError, SendErrorKind};
pub use message::{Message, MessageError};
pub use producer::{
    BrokerError, BrokerFailure, BuildError, LateOutcome, MessagePlace, OnewayReceipt, Producer,
    ProducerBuilder, Resolution, ResolveError, ResolveErrorKind, SendOptions, SendReceipt, ShutdownReport,
    StartError, StoredCopy, UnknownMessage,
};
pub use protocol::send::SendStatus;
pub use queue::MessageQueue;
pub use retry::{AttemptPlan, Duplicates};
pub use routes::{NameServerError, NameServerFailure, RouteError, RouteErrorKind};

pub use rocketmq_transport as transport;
