//! The JSON form of a header (`RemotingSerializable`).

mod cursor;
mod normalize;
mod text;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::cursor::{Cursor, Members};
pub use self::normalize::normalize_json;
pub(super) use self::text::extra;
use super::{
    FrameError,
    encode::Outgoing,
    error::JsonError,
    received::{Head, Span},
};
use crate::command::{FLAG_RESPONSE, Sink, write_decimal};

/// Writes the header: one object without blanks, members in the order of their names as Java has them.
pub(super) fn write(outgoing: &Outgoing<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"code\":");
    write_decimal(out, outgoing.code.0.into());
    write_ext(outgoing, out);
    out.extend_from_slice(b",\"flag\":");
    write_decimal(out, outgoing.flag.into());
    out.extend_from_slice(b",\"language\":\"RUST\",\"opaque\":");
    write_decimal(out, outgoing.opaque.0.into());
    if let Some(remark) = outgoing.remark {
        out.extend_from_slice(b",\"remark\":\"");
        text::write_escaped(out, remark);
        out.push(b'"');
    }
    out.extend_from_slice(b",\"version\":");
    write_decimal(out, outgoing.version.into());
    out.push(b'}');
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

/// `extFields`, or nothing where there are no fields.
fn write_ext(outgoing: &Outgoing<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(b",\"extFields\":{\"");
    let first_at = out.len();
    let mut writer = Writer { out, first_at };
    outgoing.write_fields(&mut writer);
    if out.len() == first_at {
        out.truncate(start);
    } else {
        out.extend_from_slice(b"\"}");
    }
}

/// Writes the members of an object, from behind the first quote to before the last one.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Where the first member begins.
    first_at: usize,
}

impl Writer<'_> {
    #[inline]
    fn begin(&mut self, name: &str) {
        if self.out.len() != self.first_at {
            self.out.extend_from_slice(b"\",\"");
        }
        text::write_escaped(self.out, name);
        self.out.extend_from_slice(b"\":\"");
    }
}

impl Sink for Writer<'_> {
    fn text(&mut self, name: &str, value: &str) {
        self.begin(name);
        text::write_escaped(self.out, value);
    }

    fn int(&mut self, name: &str, value: i64) {
        self.begin(name);
        write_decimal(self.out, value);
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
        + br#""remark":"","version":-32768}"#.len();
