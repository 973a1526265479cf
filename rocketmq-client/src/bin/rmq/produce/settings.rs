//! From arguments to a producer and the pattern of its messages. Whatever is wrong is found before anything is sent.

use std::{env, fs, path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use rocketmq_client::{Duplicates, EmbeddedBroker, Message, Producer};
use rocketmq_transport::{AclSigner, HeaderEncoding, Peer};

use crate::{
    Failure,
    args::{AccessArgs, DuplicatesArg, HeaderArg, MAX_BODY_BYTES, ProduceArgs},
    outcome::chain,
    tally::Goal,
};

/// What the arguments ask of the producer.
pub(super) struct Settings {
    namesrv: Vec<Peer>,
    pub(super) pattern: Pattern,
    pub(super) budget: Duration,
    pub(super) goal: Goal,
    attempts: u32,
    duplicates: Duplicates,
    header: HeaderEncoding,
    signer: Option<Arc<AclSigner>>,
}

impl Settings {
    pub(super) fn new(args: &ProduceArgs) -> Result<Self, Failure> {
        let pattern = Pattern {
            topic: args.topic.as_deref().unwrap_or(EMBEDDED_TOPIC).into(),
            keys: args.keys.clone(),
            tag: args.tag.clone(),
        };
        pattern.message(Bytes::from_static(b"any")).check(MAX_BODY_BYTES).map_err(Failure::usage)?;
        Ok(Self {
            namesrv: args.namesrv.iter().flat_map(|addresses| &addresses.0).cloned().collect(),
            pattern,
            budget: Duration::from_millis(args.sending.timeout),
            goal: if args.sending.oneway { Goal::Written } else { Goal::Stored },
            attempts: args.sending.attempts,
            duplicates: match args.sending.duplicates {
                DuplicatesArg::Allow => Duplicates::Allow,
                DuplicatesArg::Forbid => Duplicates::Forbid,
            },
            header: match args.sending.header {
                HeaderArg::Json => HeaderEncoding::Json,
                HeaderArg::Binary => HeaderEncoding::Binary,
            },
            signer: signer(&args.access)?.map(Arc::new),
        })
    }

    /// A producer that has not been started.
    pub(super) fn producer(&self, embedded: Option<&EmbeddedBroker>) -> Result<Producer, Failure> {
        let namesrv = embedded.map(|embedded| embedded.namesrv().clone());
        let builder = Producer::builder(GROUP)
            .name_servers(self.namesrv.iter().cloned().chain(namesrv))
            .timeout(self.budget)
            .attempts(self.attempts)
            .duplicates(self.duplicates)
            .header_encoding(self.header);
        let builder = match &self.signer {
            Some(signer) => builder.signer(signer.clone()),
            None => builder,
        };
        builder.build().map_err(|error| Failure::usage(chain(&error)))
    }
}

/// What every message has but its body.
pub(super) struct Pattern {
    topic: Arc<str>,
    keys: Vec<String>,
    tag: Option<String>,
}

impl Pattern {
    pub(super) fn message(&self, body: Bytes) -> Message {
        let message = Message::new(Arc::clone(&self.topic), body).with_keys(self.keys.iter().cloned());
        match &self.tag {
            Some(tag) => message.with_tag(tag),
            None => message,
        }
    }
}

fn signer(access: &AccessArgs) -> Result<Option<AclSigner>, Failure> {
    let Some(access_key) = &access.access_key else { return Ok(None) };
    let secret = match &access.secret_key_file {
        Some(path) => secret_in(path)?,
        None => env::var(SECRET_KEY_VARIABLE).map_err(|error| match error {
            env::VarError::NotPresent => {
                Failure::usage(format_args!("--access-key needs --secret-key-file or {SECRET_KEY_VARIABLE}"))
            }
            // The error would show the value.
            env::VarError::NotUnicode(_) => {
                Failure::usage(format_args!("{SECRET_KEY_VARIABLE} is not UTF-8"))
            }
        })?,
    };
    AclSigner::new(access_key, &secret).map(Some).map_err(Failure::usage)
}

/// The secret key in the file, without the line feed at its end.
fn secret_in(path: &Path) -> Result<String, Failure> {
    let unreadable = |error| Failure::usage(format_args!("{} cannot be read: {error}", path.display()));
    let text = fs::read(path).map_err(unreadable)?;
    let mut text = String::from_utf8(text)
        .map_err(|_| Failure::usage(format_args!("{} does not hold UTF-8", path.display())))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// The producer group that the brokers see.
const GROUP: &str = "rmq-produce";
/// Where messages go if no topic is named, to a broker of our own.
const EMBEDDED_TOPIC: &str = "demo";
/// What holds the secret key if no file is named.
const SECRET_KEY_VARIABLE: &str = "RMQ_SECRET_KEY";
