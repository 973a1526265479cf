//! The JSON form of a header (`RemotingSerializable`).

mod cursor;
mod normalize;
mod text;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

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
use crate::command::{FLAG_RESPONSE, Sink};

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
            Some(Member::Code) => head.code = read_int(&mut cursor)?.unwrap_or(0),
            Some(Member::ExtFields) => head.ext = read_ext(&mut cursor)?,
            Some(Member::Flag) => head.flag = read_int(&mut cursor)?.unwrap_or(0),
            Some(Member::Language) => head.language = read_scalar(&mut cursor)?,
            Some(Member::Opaque) => opaque = read_int(&mut cursor)?,
            Some(Member::Remark) => head.remark = read_scalar(&mut cursor)?,
            Some(Member::Version) => head.version = read_int(&mut cursor)?.unwrap_or(0),
            None => cursor.skip_value()?,
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
    Code,
    ExtFields,
    Flag,
    Language,
    Opaque,
    Remark,
    Version,
}

/// The name of a member, and which one it is where we know it.
#[inline]
fn read_name(cursor: &mut Cursor<'_>) -> Result<Option<Member>, JsonError> {
    for (spelled, member) in MEMBERS {
        if cursor.pass(spelled) {
            return Ok(member);
        }
    }
    let name = text(cursor.name()?);
    let known = MEMBERS.iter().find(|(spelled, _)| spelled[1..spelled.len() - 2] == *name.as_bytes());
    Ok(known.and_then(|&(_, member)| member))
}

/// The last value in a checked object of scalars whose name is `name`.
pub(super) fn find<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    for (key, value) in Entries::new(object) {
        if is_text(key, name) {
            found = Some(value);
        }
    }
    found
}

/// Whether the text of `raw` is `expected`, without allocating unless `raw` has escapes.
#[inline]
fn is_text(raw: &[u8], expected: &str) -> bool {
    match raw {
        // An escape is longer than what it stands for.
        [b'"', inner @ .., b'"'] if inner.len() > expected.len() => {
            inner.contains(&b'\\') && text(raw) == expected
        }
        [b'"', inner @ .., b'"'] => inner == expected.as_bytes() && !inner.contains(&b'\\'),
        bare => bare == expected.as_bytes(),
    }
}

/// The members of a checked object of scalars, or of none where it is missing.
pub(super) struct Entries<'a> {
    cursor: Cursor<'a>,
    members: Option<Members>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(object: &'a [u8]) -> Self {
        let mut cursor = Cursor::of_checked(object);
        let members = cursor.object().ok();
        Self { cursor, members }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    /// Ends at the first error, of which a checked object has none.
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let Self { cursor, members } = self;
        if !members.as_mut()?.has_next(cursor).ok()? {
            return None;
        }
        Some((cursor.name().ok()?, cursor.scalar().ok()?))
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
#[inline]
fn read_int(cursor: &mut Cursor<'_>) -> Result<Option<i32>, JsonError> {
    match cursor.short_int() {
        Some(value) => Ok(Some(value)),
        None => read_any_int(cursor),
    }
}

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
fn read_scalar(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
    let start = cursor.peek_at();
    match cursor.scalar()? {
        b"null" => Ok(Span::default()),
        raw => Ok(Span::new(start, start + raw.len())),
    }
}

/// An object of scalars; an empty span for null.
fn read_ext(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
    let start = cursor.peek_at();
    if cursor.peek() != Some(b'{') {
        return match cursor.scalar()? {
            b"null" => Ok(Span::default()),
            _ => Err(cursor.error_at(start, "an object or null")),
        };
    }
    let mut members = cursor.object()?;
    while members.has_next(cursor)? {
        cursor.name()?;
        cursor.scalar()?;
    }
    Ok(Span::new(start, cursor.position()))
}

/// The members as brokers write their names, which are seen at a glance. The last one repeats the frame's byte.
const MEMBERS: [(&[u8], Option<Member>); 8] = [
    (b"\"code\":", Some(Member::Code)),
    (b"\"extFields\":", Some(Member::ExtFields)),
    (b"\"flag\":", Some(Member::Flag)),
    (b"\"language\":", Some(Member::Language)),
    (b"\"opaque\":", Some(Member::Opaque)),
    (b"\"remark\":", Some(Member::Remark)),
    (b"\"version\":", Some(Member::Version)),
    (b"\"serializeTypeCurrentRPC\":", None),
];
/// The shortest header: `{}`.
pub(super) const MIN_LEN: usize = 2;
/// An upper bound of the header without remark and fields: the members' names and the longest integers.
pub(super) const FIXED_BOUND: usize =
    br#"{"code":-2147483648,"extFields":{},"flag":-2147483648,"language":"RUST","opaque":-2147483648,"#.len()
        + br#""version":-32768}"#.len();
/// What is around a remark; in the binary form there is less.
pub(super) const REMARK_LEN: usize = br#","remark":"""#.len();
