//! A received command: a view on its frame.

use std::{array, borrow::Cow, fmt, str::FromStr};

use bytes::Bytes;

use super::{PREFIX_LEN, binary, field::Field, json};
use crate::command::{Code, FLAG_ONEWAY, FLAG_RESPONSE, FieldError, HeaderEncoding, Opaque, shorten};

/// A received request or response: a view on its frame, decoded as far as it is asked for.
///
/// Its header was checked to the end when it was received, so nothing here fails for the bytes' sake. Texts
/// are borrowed from the frame unless they hold escapes. Its `Debug` shows the names of the fields, the length
/// of the body and the remark, shortened; never a value.
#[derive(Clone)]
pub struct Command {
    frame: Bytes,
    head: Head,
    body_at: u32,
    encoding: HeaderEncoding,
}

impl Command {
    pub(super) fn new(frame: Bytes, head: Head, body_at: usize, encoding: HeaderEncoding) -> Self {
        Self { frame, head, body_at: body_at as u32, encoding }
    }

    /// The operation of a request, or the status of a response.
    #[must_use]
    pub fn code(&self) -> Code {
        Code(self.head.code)
    }

    /// The number that ties a response to its request.
    #[must_use]
    pub fn opaque(&self) -> Opaque {
        Opaque(self.head.opaque)
    }

    /// The flag word as it was sent.
    #[must_use]
    pub fn flag(&self) -> i32 {
        self.head.flag
    }

    /// Whether it is a response: bit 0 of the flag word, and nothing else, tells it from a request.
    #[must_use]
    pub fn is_response(&self) -> bool {
        self.head.flag & FLAG_RESPONSE != 0
    }

    /// Whether it is a request that wants no response.
    #[must_use]
    pub fn is_oneway(&self) -> bool {
        !self.is_response() && self.head.flag & FLAG_ONEWAY != 0
    }

    /// The sender's version (`MQVersion`), 0 where it was not said.
    #[must_use]
    pub fn version(&self) -> i32 {
        self.head.version
    }

    /// The sender's language (`LanguageCode`): a name, also one this crate does not know, or the number that
    /// stands for none; `None` where it was not said.
    #[must_use]
    pub fn language(&self) -> Option<Cow<'_, str>> {
        let raw = self.part(self.head.language)?;
        let text = match self.encoding {
            HeaderEncoding::Json => json::text(raw),
            HeaderEncoding::Binary => raw[0].to_string().into(),
        };
        Some(language_name(text)).filter(|name| !name.is_empty())
    }

    /// Text for people; `None` where it is missing, null or empty.
    #[must_use]
    pub fn remark(&self) -> Option<Cow<'_, str>> {
        let raw = self.part(self.head.remark)?;
        Some(self.text(raw)).filter(|remark| !remark.is_empty())
    }

    /// The form the header came in, which is not always the form of the request it answers.
    #[must_use]
    pub fn encoding(&self) -> HeaderEncoding {
        self.encoding
    }

    /// The value of field `name`: the last one where it was sent twice; `None` where it is missing, null or
    /// empty.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        let [value] = self.find([name], |_, value| value);
        value
    }

    /// Several fields, in the order of `names`, each with the value that [`field`](Self::field) has for it.
    ///
    /// The header is walked through once for all of them, where each call of `field`, [`parse`](Self::parse) or
    /// [`require`](Self::require) walks through it again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rocketmq_transport::{Command, FieldError};
    /// fn range(response: &Command) -> Result<(u64, Option<u64>), FieldError> {
    ///     let [min, max] = response.select(["minOffset", "maxOffset"]);
    ///     Ok((min.require()?, max.parse()?))
    /// }
    /// ```
    #[must_use]
    pub fn select<const N: usize>(&self, names: [&'static str; N]) -> [Field<'_>; N] {
        self.find(names, |at, value| Field::new(names[at], value))
    }

    /// Field `name` as a `T`; `None` where it is missing, null or empty.
    ///
    /// # Errors
    ///
    /// The value is not a `T`. The frame around it is sound, so this is no reason to give up the connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rocketmq_transport::{Command, FieldError};
    /// fn max_offset(response: &Command) -> Result<Option<u64>, FieldError> {
    ///     response.parse("offset")
    /// }
    /// ```
    pub fn parse<T: FromStr>(&self, name: &'static str) -> Result<Option<T>, FieldError> {
        Field::new(name, self.field(name)).parse()
    }

    /// Field `name` as a `T`, where the command makes no sense without it.
    ///
    /// # Errors
    ///
    /// The field is missing, null or empty, or is not a `T`. The frame around it is sound, so this is no
    /// reason to give up the connection.
    pub fn require<T: FromStr>(&self, name: &'static str) -> Result<T, FieldError> {
        Field::new(name, self.field(name)).require()
    }

    /// All fields, name and value, in the order they were sent, duplicates included; a null value is an empty
    /// text here.
    pub fn fields(&self) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> + '_ {
        let fields = self.part(self.head.ext).unwrap_or_default();
        match self.encoding {
            HeaderEncoding::Json => Entries::Json(json::Entries::new(fields)),
            HeaderEncoding::Binary => Entries::Binary(binary::Entries::new(fields)),
        }
    }

    /// The body, empty where there is none.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.frame[self.body_at as usize..]
    }

    /// The body as a handle that keeps the whole frame alive.
    #[must_use]
    pub fn body_bytes(&self) -> Bytes {
        self.frame.slice(self.body_at as usize..)
    }

    /// The length of the whole frame in bytes.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        self.frame.len()
    }

    fn part(&self, span: Span) -> Option<&[u8]> {
        let raw = &self.frame[PREFIX_LEN..][span.start as usize..span.end as usize];
        if raw.is_empty() { None } else { Some(raw) }
    }

    /// What `make` makes of each name's place and its value, which is not empty.
    fn find<'a, T, const N: usize>(
        &'a self,
        names: [&str; N],
        make: impl Fn(usize, Option<Cow<'a, str>>) -> T,
    ) -> [T; N] {
        let fields = self.part(self.head.ext).unwrap_or_default();
        let make = |at, value: Option<Cow<'a, str>>| make(at, value.filter(|value| !value.is_empty()));
        match self.encoding {
            HeaderEncoding::Json => {
                let found = json::find(fields, names);
                array::from_fn(|at| make(at, found[at].map(json::Part::text)))
            }
            HeaderEncoding::Binary => {
                let found = binary::find(fields, names);
                array::from_fn(|at| make(at, found[at].map(|raw| binary::text(raw).into())))
            }
        }
    }

    fn text<'a>(&self, raw: &'a [u8]) -> Cow<'a, str> {
        match self.encoding {
            HeaderEncoding::Json => json::text(raw),
            HeaderEncoding::Binary => binary::text(raw).into(),
        }
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.fields().map(|(name, _)| shorten(&name).into_owned()).collect::<Vec<_>>();
        f.debug_struct("Command")
            .field("code", &self.head.code)
            .field("opaque", &self.head.opaque)
            .field("flag", &self.head.flag)
            .field("version", &self.head.version)
            .field("encoding", &self.encoding)
            .field("remark", &self.remark().as_deref().map(shorten))
            .field("fields", &names)
            .field("body_len", &self.body().len())
            .finish()
    }
}

/// What one pass over a header finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) code: i32,
    pub(super) opaque: i32,
    pub(super) flag: i32,
    pub(super) version: i32,
    pub(super) language: Span,
    pub(super) remark: Span,
    pub(super) ext: Span,
}

/// A range of the header; empty where the part is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// A header has at most 24 bits of length, so no bound is lost.
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }
}

/// The fields in either encoding.
enum Entries<'a> {
    Json(json::Entries<'a>),
    Binary(binary::Entries<'a>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Cow<'a, str>, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Json(entries) => entries.next().map(|(name, value)| (name.text(), value.text())),
            Self::Binary(entries) => {
                entries.next().map(|(name, value)| (binary::text(name).into(), binary::text(value).into()))
            }
        }
    }
}

/// The name for the number of a language; any other text is left as it is.
fn language_name(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.parse().ok().and_then(|number: usize| LANGUAGES.get(number)) {
        Some(&name) => name.into(),
        None => text,
    }
}

/// The languages by their numbers (`LanguageCode`).
const LANGUAGES: [&str; 14] = [
    "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS",
    "RUST", "NODE_JS",
];
