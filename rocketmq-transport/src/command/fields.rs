//! The typed fields of a header: what writes them, what they are written into, and what a bad one is.

use std::{borrow::Cow, error::Error, fmt};

/// The typed fields of a request or response, written straight into the frame.
pub trait Header: Send + Sync {
    /// Writes each field that is set. It must write the same fields each time it is asked: the header is
    /// written several times, to measure it, to sign it and to send it.
    ///
    /// The names `@type` and `$ref` do not reach a broker: its JSON reader takes them for its own.
    fn write(&self, fields: &mut Fields<'_>);
}

/// No fields.
impl Header for () {
    fn write(&self, _: &mut Fields<'_>) {}
}

/// The sink that a [`Header`] writes its fields into.
pub struct Fields<'a>(&'a mut dyn Sink);

impl<'a> Fields<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink) -> Self {
        Self(sink)
    }

    /// A text field. An empty value is left out: the binary form cannot carry it, and a broker that checks
    /// signatures would sign something else than we did.
    #[inline]
    pub fn str(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.text(name, value);
        }
    }

    /// An integer field, in decimal.
    #[inline]
    pub fn int(&mut self, name: &str, value: i64) {
        self.0.int(name, value);
    }

    /// A boolean field, `true` or `false`.
    #[inline]
    pub fn bool(&mut self, name: &str, value: bool) {
        self.0.bool(name, value);
    }

    /// A text field that may be missing.
    #[inline]
    pub fn opt_str(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.str(name, value);
        }
    }

    /// An integer field that may be missing.
    #[inline]
    pub fn opt_int(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.int(name, value);
        }
    }

    /// A boolean field that may be missing.
    #[inline]
    pub fn opt_bool(&mut self, name: &str, value: Option<bool>) {
        if let Some(value) = value {
            self.bool(name, value);
        }
    }
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").finish_non_exhaustive()
    }
}

/// Where fields go: into one of the encodings, a measure of them, or a list.
pub(crate) trait Sink {
    /// A field with any text, never empty.
    fn text(&mut self, name: &str, value: &str);

    /// A field whose text is an integer in decimal.
    fn int(&mut self, name: &str, value: i64);

    /// A field whose text is `true` or `false`.
    fn bool(&mut self, name: &str, value: bool) {
        self.text(name, if value { "true" } else { "false" });
    }
}

/// A field of a received header that is missing or does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    name: &'static str,
    value: Option<Box<str>>,
    expected: &'static str,
}

impl FieldError {
    /// An error that says what `name` held (`None` where it was missing, null or empty) and what was expected
    /// of it, such as `i64` or `LOWER or UPPER`. Of a long value only the first 64 characters are kept.
    #[must_use]
    pub fn new(name: &'static str, value: Option<&str>, expected: &'static str) -> Self {
        Self { name, value: value.map(|value| shorten(value).into()), expected }
    }

    /// The field's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its value, shortened; `None` where it was missing, null or empty.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// What it should have held.
    #[must_use]
    pub fn expected(&self) -> &'static str {
        self.expected
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "field {} is {value:?}, expected {}", self.name, self.expected),
            None => write!(f, "field {} is missing, expected {}", self.name, self.expected),
        }
    }
}

impl Error for FieldError {}

/// The fields of `header` in the order in which brokers sign them, each name once with its last value.
pub(super) fn sorted(header: &dyn Header) -> Vec<(String, String)> {
    let mut list = List(Vec::new());
    header.write(&mut Fields::new(&mut list));
    let List(mut fields) = list;
    // The last of equal names comes first after the reversal, stays there in a stable sort, and is the one
    // that is kept.
    fields.reverse();
    fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    fields.dedup_by(|later, first| later.0 == first.0);
    fields
}

/// The names of the fields of `header` in the order they are written.
pub(super) fn names(header: &dyn Header) -> Vec<String> {
    let mut list = List(Vec::new());
    header.write(&mut Fields::new(&mut list));
    list.0.into_iter().map(|(name, _)| name).collect()
}

/// Text of a peer as it is shown in errors and logs: the first 64 characters.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

struct List(Vec<(String, String)>);

impl Sink for List {
    fn text(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    fn int(&mut self, name: &str, value: i64) {
        self.0.push((name.to_owned(), value.to_string()));
    }
}

/// How many bytes `value` has in decimal.
#[inline]
pub(crate) fn decimal_len(value: i64) -> usize {
    if let 0..=9 = value {
        return 1;
    }
    let digits = 1 + value.unsigned_abs().checked_ilog10().unwrap_or(0) as usize;
    digits + usize::from(value < 0)
}

/// How many characters of a peer's text are shown.
const MAX_SHOWN: usize = 64;
