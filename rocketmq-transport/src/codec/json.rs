//! The JSON form of a header (`RemotingSerializable`).

mod cursor;
mod normalize;
mod text;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range};

use self::cursor::{Cursor, Members};
pub use self::normalize::normalize_json;
pub(super) use self::text::add_extra;
use super::{
    FrameError,
    encode::Outgoing,
    error::JsonError,
    output::Output,
    received::{Head, Span},
};
use crate::command::{FLAG_RESPONSE, Sink, decimal_len};

/// Writes the header: one object without blanks, members in the order of their names as Java has them.
pub(super) fn write(outgoing: &Outgoing<'_>, out: &mut Output<'_>) {
    out.put(*b"{\"code\":");
    out.put_decimal(outgoing.code.0.into());
    let mut writer = Writer { out, has_fields: false };
    outgoing.write_fields(&mut writer);
    if writer.has_fields {
        out.put(*b"\"}");
    }
    out.put(*b",\"flag\":");
    out.put_decimal(outgoing.flag.into());
    out.put(*b",\"language\":\"RUST\",\"opaque\":");
    out.put_decimal(outgoing.opaque.0.into());
    if let Some(remark) = outgoing.remark {
        out.put(*b",\"remark\":\"");
        text::write_escaped(out, remark);
        out.put(*b"\"");
    }
    out.put(*b",\"version\":");
    out.put_decimal(outgoing.version.into());
    out.put(*b"}");
}

/// Where the opaque is in the head of `outgoing`, which has no remark.
pub(super) fn opaque_in(head: &[u8], outgoing: &Outgoing<'_>) -> Range<usize> {
    debug_assert!(outgoing.remark.is_none(), "requests have none");
    let version_len = br#","version":}"#.len() + decimal_len(outgoing.version.into());
    let end = head.len() - version_len;
    end - decimal_len(outgoing.opaque.0.into())..end
}

/// Reads the header in one pass and checks it to its end.
///
/// Members we do not know are skipped, of members that come twice the last one counts, and null is as good as
/// missing.
pub(super) fn read(header: &[u8]) -> Result<Head, FrameError> {
    let mut cursor = Cursor::new(header)?;
    let mut head = Head::default();
    let mut opaque = None;
    let mut members = cursor.object()?;
    while members.has_next(&mut cursor)? {
        match read_name(&mut cursor)? {
            Some(Member::Int(int)) => {
                let value = read_int(&mut cursor)?;
                match int {
                    Int::Code => head.code = value.unwrap_or(0),
                    Int::Flag => head.flag = value.unwrap_or(0),
                    Int::Opaque => opaque = value,
                    Int::Version => head.version = value.unwrap_or(0),
                }
            }
            Some(Member::Text(text)) => {
                let span = read_scalar(&mut cursor)?;
                match text {
                    Text::Language => head.language = span,
                    Text::Remark => head.remark = span,
                }
            }
            Some(Member::ExtFields) => head.ext = read_ext(&mut cursor)?,
            None => cursor.aside(Cursor::skip_value)?,
        }
    }
    cursor.end()?;
    match opaque {
        Some(opaque) => head.opaque = opaque,
        None if head.flag & FLAG_RESPONSE != 0 => return Err(FrameError::MissingOpaque),
        None => {}
    }
    Ok(head)
}

/// The text of a checked string, number, boolean or null, which is empty.
pub(super) fn text(raw: &[u8]) -> Cow<'_, str> {
    match raw {
        [b'"', inner @ .., b'"'] => text::unescape(inner),
        b"null" => "".into(),
        _ => text::checked(raw).into(),
    }
}

/// A member of the header that we know.
#[derive(Clone, Copy)]
enum Member {
    Int(Int),
    Text(Text),
    ExtFields,
}

/// One that is an integer.
#[derive(Clone, Copy)]
enum Int {
    Code,
    Flag,
    Opaque,
    Version,
}

/// One that is a text.
#[derive(Clone, Copy)]
enum Text {
    Language,
    Remark,
}

/// The name of a member, and which one it is where we know it.
#[inline(always)]
fn read_name(cursor: &mut Cursor<'_>) -> Result<Option<Member>, JsonError> {
    // As brokers write it, which is seen at a glance.
    let member = match cursor.second() {
        Some(b'c') if cursor.pass(b"\"code\":") => Member::Int(Int::Code),
        Some(b'e') if cursor.pass(b"\"extFields\":") => Member::ExtFields,
        Some(b'f') if cursor.pass(b"\"flag\":") => Member::Int(Int::Flag),
        Some(b'l') if cursor.pass(b"\"language\":") => Member::Text(Text::Language),
        Some(b'o') if cursor.pass(b"\"opaque\":") => Member::Int(Int::Opaque),
        Some(b'r') if cursor.pass(b"\"remark\":") => Member::Text(Text::Remark),
        Some(b'v') if cursor.pass(b"\"version\":") => Member::Int(Int::Version),
        _ => return cursor.aside(read_any_name),
    };
    Ok(Some(member))
}

#[inline(never)]
fn read_any_name(cursor: &mut Cursor<'_>) -> Result<Option<Member>, JsonError> {
    let member = match &*text(cursor.name()?) {
        "code" => Member::Int(Int::Code),
        "extFields" => Member::ExtFields,
        "flag" => Member::Int(Int::Flag),
        "language" => Member::Text(Text::Language),
        "opaque" => Member::Int(Int::Opaque),
        "remark" => Member::Text(Text::Remark),
        "version" => Member::Int(Int::Version),
        _ => return Ok(None),
    };
    Ok(Some(member))
}

/// For each of `names` the last value in a checked object of scalars that has it.
pub(super) fn find<'a, const N: usize>(object: &'a [u8], names: [&str; N]) -> [Option<Part<'a>>; N] {
    let mut found = [None; N];
    for (name, value) in Entries::new(object) {
        for (expected, found) in names.iter().zip(&mut found) {
            if name.is(expected) {
                *found = Some(value);
            }
        }
    }
    found
}

/// A name or a value in a checked object.
#[derive(Clone, Copy)]
pub(super) enum Part<'a> {
    /// The inside of a string without escapes.
    Plain(&'a [u8]),
    /// Another one, as it is in the object.
    Any(&'a [u8]),
}

impl<'a> Part<'a> {
    #[inline(always)]
    fn is(self, expected: &str) -> bool {
        match self {
            Self::Plain(inner) => inner == expected.as_bytes(),
            Self::Any(raw) => text(raw) == expected,
        }
    }

    pub(super) fn text(self) -> Cow<'a, str> {
        match self {
            Self::Plain(inner) => text::checked(inner).into(),
            Self::Any(raw) => text(raw),
        }
    }
}

/// The members of a checked object of scalars, or of none where it is missing.
pub(super) struct Entries<'a> {
    cursor: Cursor<'a>,
    members: Option<Members>,
}

impl<'a> Entries<'a> {
    #[inline(always)]
    pub(super) fn new(object: &'a [u8]) -> Self {
        let mut cursor = Cursor::of_checked(object);
        let members = cursor.object().ok();
        Self { cursor, members }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (Part<'a>, Part<'a>);

    /// Ends at the first error, of which a checked object has none.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let Self { cursor, members } = self;
        if !members.as_mut()?.has_next(cursor).ok()? {
            return None;
        }
        if let Some((name, value)) = cursor.plain_member() {
            return Some((Part::Plain(name), Part::Plain(value)));
        }
        let (name, value) = cursor.aside(read_any_member).ok()?;
        Some((Part::Any(name), Part::Any(value)))
    }
}

/// Writes `extFields`, where there are fields, up to the last quote in it.
struct Writer<'w, 'a> {
    out: &'w mut Output<'a>,
    has_fields: bool,
}

impl Writer<'_, '_> {
    /// Writes what is before the value, where the name is a letter and not the first one.
    #[inline(always)]
    fn letter(&mut self, name: &str) -> bool {
        match text::one_letter(name.as_bytes()) {
            Some(letter) if self.has_fields => {
                self.out.put_first([b'"', b',', b'"', letter, b'"', b':', b'"', 0], 7);
                true
            }
            _ => false,
        }
    }

    fn name(&mut self, name: &str) {
        if self.has_fields {
            self.out.put(*b"\",\"");
        } else {
            self.out.put(*b",\"extFields\":{\"");
            self.has_fields = true;
        }
        text::write_escaped(self.out, name);
        self.out.put(*b"\":\"");
    }

    #[inline(never)]
    fn any_text(&mut self, name: &str, value: &str) {
        self.name(name);
        text::write_escaped(self.out, value);
    }

    #[inline(never)]
    fn any_int(&mut self, name: &str, value: i64) {
        self.name(name);
        self.out.put_decimal(value);
    }
}

/// Each call ends with a call, so that nothing has to be saved on the way to it.
impl Sink for Writer<'_, '_> {
    fn text(&mut self, name: &str, value: &str) {
        if self.letter(name) { text::write_escaped(self.out, value) } else { self.any_text(name, value) }
    }

    fn int(&mut self, name: &str, value: i64) {
        if self.letter(name) { self.out.put_decimal(value) } else { self.any_int(name, value) }
    }
}

/// An integer of 32 bits; `None` for null.
#[inline(always)]
fn read_int(cursor: &mut Cursor<'_>) -> Result<Option<i32>, JsonError> {
    match cursor.short_int() {
        Some(value) => Ok(Some(value)),
        None => cursor.aside(read_any_int),
    }
}

#[inline(never)]
fn read_any_int(cursor: &mut Cursor<'_>) -> Result<Option<i32>, JsonError> {
    let start = cursor.peek_at();
    match cursor.scalar()? {
        b"null" => Ok(None),
        raw => match std::str::from_utf8(raw).ok().and_then(|digits| digits.parse().ok()) {
            Some(value) => Ok(Some(value)),
            None => Err(cursor.error_at(start, "an integer of 32 bits")),
        },
    }
}

/// A string, number or boolean; an empty span for null.
#[inline(always)]
fn read_scalar(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
    let start = cursor.position();
    match cursor.plain_string() {
        Some(_) => Ok(Span::new(start, cursor.position())),
        None => cursor.aside(read_any_scalar),
    }
}

#[inline(never)]
fn read_any_scalar(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
    let start = cursor.peek_at();
    match cursor.scalar()? {
        b"null" => Ok(Span::default()),
        raw => Ok(Span::new(start, start + raw.len())),
    }
}

/// An object of scalars; an empty span for null.
#[inline(always)]
fn read_ext(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
    let start = cursor.peek_at();
    if cursor.peek() != Some(b'{') {
        return cursor.aside(read_no_object);
    }
    let mut members = cursor.object()?;
    while members.has_next(cursor)? {
        if cursor.plain_member().is_none() {
            cursor.aside(read_any_member)?;
        }
    }
    Ok(Span::new(start, cursor.position()))
}

#[inline(never)]
fn read_no_object(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
    let start = cursor.peek_at();
    match cursor.scalar()? {
        b"null" => Ok(Span::default()),
        _ => Err(cursor.error_at(start, "an object or null")),
    }
}

/// A name and a scalar, as they are in the text.
#[inline(never)]
fn read_any_member<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a [u8], &'a [u8]), JsonError> {
    Ok((cursor.name()?, cursor.scalar()?))
}

/// The shortest header: `{}`.
pub(super) const MIN_LEN: usize = 2;
/// An upper bound of the header without remark and fields: the members' names and the longest integers.
pub(super) const FIXED_BOUND: usize =
    br#"{"code":-2147483648,"extFields":{},"flag":-2147483648,"language":"RUST","opaque":-2147483648,"#.len()
        + br#""version":-32768}"#.len();
/// What is around a remark; in the binary form there is less.
pub(super) const REMARK_LEN: usize = br#","remark":"""#.len();
