//! A message as it is read back.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use bytes::Bytes;

/// A message that an [`EmbeddedBroker`](crate::EmbeddedBroker) has stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredMessage {
    /// The topic it was sent to.
    pub topic: String,
    /// The name of the broker that stored it.
    pub broker: Arc<str>,
    /// The queue it is in.
    pub queue_id: i32,
    /// Its place in that queue, from 0.
    pub queue_offset: i64,
    /// The id that the broker gave it, as in the response to the send: the broker's address and the offset in
    /// its log, in hexadecimal digits.
    pub msg_id: String,
    /// The id that the producer gave it (`UNIQ_KEY`); the same for all copies of one send.
    pub unique_key: Option<String>,
    /// Its keys for look-ups (`KEYS`).
    pub keys: Vec<String>,
    /// Its tag for filters (`TAGS`).
    pub tag: Option<String>,
    /// Every property as it was sent, those of the fields above included.
    pub properties: BTreeMap<String, String>,
    /// The body as it was sent, compressed or not.
    pub body: Bytes,
    /// The application's own number.
    pub flag: i32,
    /// What the protocol says of the body: bit 0 is set where it is compressed.
    pub sys_flag: i32,
    /// The group of its producer.
    pub producer_group: String,
    /// When the producer says it made the message, in milliseconds since the Unix epoch.
    pub born_timestamp_ms: i64,
    /// The address it came from.
    pub born_host: SocketAddr,
    /// When the broker stored it, in milliseconds since the Unix epoch.
    pub store_timestamp_ms: i64,
}

/// Reads a properties string as brokers do (`MessageDecoder.string2messageProperties`): what has no separator,
/// no name or no value is skipped, and of two values of one name the last one counts.
pub(super) fn parse_properties(text: &str) -> BTreeMap<String, String> {
    let entries = text.split(PROPERTY_END).filter_map(|entry| entry.split_once(NAME_END));
    let whole = entries.filter(|(name, value)| !name.is_empty() && !value.is_empty());
    whole.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Ends the name of a property (`MessageDecoder.NAME_VALUE_SEPARATOR`).
const NAME_END: char = '\u{1}';
/// Ends a property (`MessageDecoder.PROPERTY_SEPARATOR`).
const PROPERTY_END: char = '\u{2}';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_with_and_without_a_last_separator_and_malformed_ones_are_skipped() {
        let expected =
            BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x\u{1}y".to_owned())]);
        for text in [
            "a\u{1}1\u{2}b\u{1}x\u{1}y\u{2}",
            "a\u{1}0\u{2}a\u{1}1\u{2}b\u{1}x\u{1}y",
            "\u{1}v\u{2}a\u{1}1\u{2}n\u{1}\u{2}\u{2}junk\u{2}b\u{1}x\u{1}y",
        ] {
            assert_eq!(parse_properties(text), expected, "{text:?}");
        }
        assert!(parse_properties("").is_empty());
    }
}
