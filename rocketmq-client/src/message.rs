//! A message to be sent.

pub(crate) mod properties;
mod unique_key;
pub(crate) mod validate;

use std::{fmt, sync::Arc};

use bytes::Bytes;

pub use self::validate::MessageError;
pub(crate) use self::{
    unique_key::{UniqueKey, UniqueKeys},
    validate::MessageLimits,
};

/// A message: topic, body, and what describes it. Cheap to clone as far as the body goes.
///
/// It is checked as a whole when it is sent, before anything leaves; only
/// [`with_property`](Self::with_property) is checked at once, since its names are chosen freely.
/// `Debug` shows neither the body nor any property.
///
/// # Examples
///
/// ```
/// use rocketmq_client::Message;
///
/// let message = Message::new("orders", "two apples")
///     .with_tag("fruit")
///     .with_keys(["order-17"])
///     .with_property("origin", "shop")?;
/// assert_eq!(message.property("origin"), Some("shop"));
/// # Ok::<(), rocketmq_client::MessageError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    topic: Arc<str>,
    body: Bytes,
    flag: i32,
    tag: Option<String>,
    keys: Vec<String>,
    properties: Vec<(String, String)>,
}

impl Message {
    /// A message of `body` for `topic`.
    ///
    /// A topic has 1 to 127 of the characters letter, digit, `%`, `|`, `_`, `-` (ASCII). A body has 1 byte to
    /// the producer's `max_message_size`.
    pub fn new(topic: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        Self {
            topic: topic.into(),
            body: body.into(),
            flag: 0,
            tag: None,
            keys: Vec::new(),
            properties: Vec::new(),
        }
    }

    /// Sets the tag, by which consumers filter. Not blank.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Sets the keys, by which the brokers index the message. None of them empty or with a blank in it.
    #[must_use]
    pub fn with_keys<K: Into<String>>(mut self, keys: impl IntoIterator<Item = K>) -> Self {
        self.keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the application's own flag, which brokers only hand on. Default 0.
    #[must_use]
    pub const fn with_flag(mut self, flag: i32) -> Self {
        self.flag = flag;
        self
    }

    /// Sets property `name` to `value`, in place of an earlier value.
    ///
    /// All properties of a message together, with tag and keys, take at most 32,255 bytes as they are
    /// written.
    ///
    /// # Errors
    ///
    /// Name or value is blank or holds one of the separators U+0001 and U+0002, or the name is one that
    /// brokers and clients use themselves.
    pub fn with_property(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<Self, MessageError> {
        let (name, value) = (name.into(), value.into());
        validate::property(&name, &value)?;
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.properties.push((name, value)),
        }
        Ok(self)
    }

    /// Checks the message as a producer with this `max_message_size` does before it sends anything.
    ///
    /// # Errors
    ///
    /// The first rule it breaks.
    pub fn check(&self, max_message_size: usize) -> Result<(), MessageError> {
        MessageLimits { max_body: max_message_size }.check(self)
    }

    /// The topic.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The body.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// The application's own flag.
    #[must_use]
    pub const fn flag(&self) -> i32 {
        self.flag
    }

    /// The tag.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The keys.
    #[must_use]
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The value of property `name`; tag and keys are not among the properties.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&str> {
        self.properties().find_map(|(known, value)| (known == name).then_some(value))
    }

    /// The properties in the order they were first set.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.properties.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The topic, to be kept.
    pub(crate) const fn shared_topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// All that goes into the property field of a send; `None` where that is the property of `unique_key` alone.
    pub(crate) fn encode_properties(&self, unique_key: &UniqueKey) -> Option<String> {
        if self.tag.is_none() && self.keys.is_empty() && self.properties.is_empty() {
            return None;
        }
        let mut text = String::with_capacity(self.properties_bound());
        text.push_str(unique_key.as_property());
        if let Some(tag) = &self.tag {
            properties::push(&mut text, properties::TAGS, [tag.as_str()]);
        }
        if !self.keys.is_empty() {
            properties::push(&mut text, properties::KEYS, self.keys.iter().map(String::as_str));
        }
        for (name, value) in &self.properties {
            properties::push(&mut text, name, [value.as_str()]);
        }
        Some(text)
    }

    /// The length of the property field in bytes, or a little more.
    fn properties_bound(&self) -> usize {
        let entry = |name: &str, value: usize| name.len() + value + properties::OVERHEAD;
        let tag = self.tag.as_ref().map_or(0, |tag| entry(properties::TAGS, tag.len()));
        let keys = self.keys.iter().map(|key| key.len() + properties::KEY_SEPARATOR.len()).sum();
        let keys = if self.keys.is_empty() { 0 } else { entry(properties::KEYS, keys) };
        let own: usize = self.properties.iter().map(|(name, value)| entry(name, value.len())).sum();
        entry(properties::UNIQ_KEY, UniqueKey::LENGTH) + tag + keys + own
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("topic", &self.topic)
            .field("bytes", &self.body.len())
            .field("flag", &self.flag)
            .field("properties", &self.properties.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn tag_keys_and_properties_are_written_with_the_unique_key_and_fit_their_bound() {
        let message = Message::new("t", "body")
            .with_tag("fruit")
            .with_keys(["a", "b"])
            .with_property("x", "1")
            .and_then(|message| message.with_property("ü", "ö"))
            .and_then(|message| message.with_property("x", "2"))
            .unwrap();
        let keys = UniqueKeys::new(Ipv4Addr::LOCALHOST.into(), 0, Duration::ZERO);
        let key = keys.next(Instant::now());
        let text = message.encode_properties(&key).unwrap();
        let pairs: Vec<_> = properties::decode(&text).collect();
        let expected =
            [("UNIQ_KEY", key.as_str()), ("TAGS", "fruit"), ("KEYS", "a b"), ("x", "2"), ("ü", "ö")];
        assert_eq!(pairs, expected);
        assert!(text.len() <= message.properties_bound());
    }

    #[test]
    fn without_tag_keys_and_properties_the_property_of_the_unique_key_is_all() {
        let keys = UniqueKeys::new(Ipv4Addr::LOCALHOST.into(), 0, Duration::ZERO);
        let key = keys.next(Instant::now());
        let message = Message::new("t", "body").with_keys(Vec::<String>::new());
        assert_eq!(message.encode_properties(&key), None);
        let pairs: Vec<_> = properties::decode(key.as_property()).collect();
        assert_eq!(pairs, [("UNIQ_KEY", key.as_str())]);
        assert_eq!(key.as_property().len(), message.properties_bound());
    }

    #[test]
    fn debug_shows_neither_body_nor_properties_nor_keys() {
        let message = Message::new("t", "secret-body").with_tag("secret-tag").with_keys(["secret-key"]);
        let message = message.with_property("name", "secret-value").unwrap();
        assert!(!format!("{message:?}").contains("secret"));
    }
}
