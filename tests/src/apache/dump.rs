//! Reading a topic back with Apache's own consumer.

use std::{collections::BTreeMap, net::SocketAddr, path::Path, time::Duration};

use serde::Deserialize;

use super::{
    distribution::Distribution,
    error::HarnessError,
    jvm,
    process::{run, watched},
};

/// A stored message as Apache's Java consumer saw it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Dumped {
    /// The topic.
    pub topic: String,
    /// The name of the broker that holds it.
    pub broker: String,
    /// The queue there.
    pub queue_id: i32,
    /// Its place in that queue.
    pub queue_offset: i64,
    /// The unique key that the producer gave it.
    pub msg_id: String,
    /// The keys, joined by spaces.
    pub keys: Option<String>,
    /// The tag.
    pub tags: Option<String>,
    /// The application's flag.
    pub flag: i32,
    /// The length of the body in bytes.
    pub body_len: usize,
    /// The digest of the body, as lower-case hexadecimal digits.
    pub body_sha256: String,
    /// All properties, those included that client and broker added.
    pub properties: BTreeMap<String, String>,
}

/// Reads all of `topic`, in the order of brokers, queues and offsets; the consumer's files go below `folder`.
pub(crate) fn dump(
    distribution: &Distribution,
    folder: &Path,
    name_server: SocketAddr,
    topic: &str,
) -> Result<Vec<Dumped>, HarnessError> {
    let home = folder.join(format!("dump-{topic}"));
    let machine = jvm::arguments(&home, &distribution.class_path());
    let mut java = watched("java");
    java.arg("-Xmx256m").args(machine.map_err(HarnessError::io(|| format!("write to {home:?}")))?);
    java.args(["Dump", &name_server.to_string(), topic]);
    let lines = run("java", java, &home, LIMIT)?;
    let parse = |line| {
        serde_json::from_slice(line).map_err(|source| HarnessError::Json {
            what: "a line of Dump",
            text: String::from_utf8_lossy(line).into_owned(),
            source,
        })
    };
    let mut messages: Vec<Dumped> = lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(parse)
        .collect::<Result<_, _>>()?;
    messages.sort_by(|a, b| {
        (&a.broker, a.queue_id, a.queue_offset).cmp(&(&b.broker, b.queue_id, b.queue_offset))
    });
    Ok(messages)
}

const LIMIT: Duration = Duration::from_secs(300);
