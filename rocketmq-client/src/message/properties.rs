//! The text form of properties (`MessageDecoder`): `name U+0001 value U+0002`, repeated.

/// Ends a name.
pub(crate) const NAME_END: char = '\u{1}';
/// Ends a value.
pub(crate) const VALUE_END: char = '\u{2}';
/// What an entry takes beside its name and value.
pub(crate) const OVERHEAD: usize = 2;
/// Stands between two keys.
pub(crate) const KEY_SEPARATOR: &str = " ";

/// The keys by which a message is indexed (`MessageConst`).
pub(crate) const KEYS: &str = "KEYS";
/// The tag by which consumers filter.
pub(crate) const TAGS: &str = "TAGS";
/// The id the client gives a message.
pub(crate) const UNIQ_KEY: &str = "UNIQ_KEY";

/// Writes one entry, of several values with [`KEY_SEPARATOR`] between them. The last entry ends with the separator
/// too, as brokers write it since 5.2.0.
pub(crate) fn push<'v>(text: &mut String, name: &str, values: impl IntoIterator<Item = &'v str>) {
    text.push_str(name);
    text.push(NAME_END);
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            text.push_str(KEY_SEPARATOR);
        }
        text.push_str(value);
    }
    text.push(VALUE_END);
}

/// Reads the entries that have a name and a value; like every reader, it passes over the others.
pub(crate) fn decode(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(VALUE_END)
        .filter_map(|entry| entry.split_once(NAME_END))
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reading_is_lenient() {
        for (text, expected) in [
            ("", vec![]),
            ("a\u{1}b", vec![("a", "b")]),
            ("a\u{1}b\u{2}", vec![("a", "b")]),
            ("\u{2}a\u{1}b\u{2}\u{2}c\u{1}d", vec![("a", "b"), ("c", "d")]),
            ("\u{1}b\u{2}a\u{1}\u{2}ab\u{2}", vec![]),
            ("a\u{1}b\u{1}c\u{2}", vec![("a", "b\u{1}c")]),
        ] {
            assert_eq!(decode(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            pairs in prop::collection::vec(("[^\u{1}\u{2}]+", "[^\u{1}\u{2}]+"), 0..20),
        ) {
            let mut text = String::new();
            for (name, value) in &pairs {
                push(&mut text, name, [value.as_str()]);
            }
            let read: Vec<_> = decode(&text).collect();
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| (&**name, &**value)).collect();
            prop_assert_eq!(read, pairs);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".*") {
            prop_assert!(decode(&text).count() <= text.len());
        }
    }
}
