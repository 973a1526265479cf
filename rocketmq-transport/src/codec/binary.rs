//! The compact binary form of a header (`RocketMQSerializable`):
//!
//! ```text
//! code i16 | language u8 | version i16 | opaque i32 | flag i32 | remark: i32 length, bytes
//!          | fields: i32 length, then back to back (name: i16 length, bytes | value: i32 length, bytes)
//! ```

#[cfg(test)]
mod tests;

use super::{
    FrameError,
    encode::{EncodeError, Outgoing},
    is_ascii,
    output::Output,
    received::{Head, Span},
};
use crate::command::Sink;

/// Writes the header of a command whose code fits 16 bits.
pub(super) fn write(outgoing: &Outgoing<'_>, out: &mut Output<'_>) -> Result<(), EncodeError> {
    let remark = outgoing.remark.unwrap_or_default();
    out.put((outgoing.code.0 as i16).to_be_bytes());
    out.put([RUST]);
    out.put(outgoing.version.to_be_bytes());
    out.put(outgoing.opaque.0.to_be_bytes());
    out.put(outgoing.flag.to_be_bytes());
    out.put(length(remark.len()));
    out.put_text(remark);
    let fields_len = out.keep();
    let left = out.left();
    let mut writer = Writer { out, fault: None };
    outgoing.write_fields(&mut writer);
    if let Some(fault) = writer.fault {
        return Err(fault);
    }
    if let Some(fields_len) = fields_len {
        *fields_len = length(left - out.left());
    }
    Ok(())
}

/// Reads the header in one pass and checks it to its last byte.
///
/// A negative length of the fields counts as no fields, as brokers have it. Bytes that are left over are an
/// error: brokers take them for the start of the body, and nobody writes them on purpose.
pub(super) fn read(header: &[u8]) -> Result<Head, FrameError> {
    let mut reader = Reader { rest: header, utf8: false };
    let code = i16::from_be_bytes(reader.array("code")?).into();
    reader.array::<LANGUAGE_LEN>("language")?;
    let version = i16::from_be_bytes(reader.array("version")?).into();
    let opaque = i32::from_be_bytes(reader.array("opaque")?);
    let flag = i32::from_be_bytes(reader.array("flag")?);
    let remark_len = i32::from_be_bytes(reader.array("length of the remark")?);
    let remark = reader.text("remark", remark_len.into())?;
    let fields_len = i32::from_be_bytes(reader.array("length of the fields")?).max(0);
    let fields = reader.bytes("list of fields", fields_len.into())?;
    if !reader.rest.is_empty() {
        return Err(FrameError::LeftOver { left: reader.rest.len() });
    }
    // Names, values and short lengths are ASCII mostly, which is seen of all together.
    let mut entries = Reader { rest: fields, utf8: is_ascii(fields) };
    while !entries.rest.is_empty() {
        entries.entry()?;
    }
    Ok(Head {
        code,
        opaque,
        flag,
        version,
        language: Span::new(LANGUAGE_AT, LANGUAGE_AT + LANGUAGE_LEN),
        remark: Span::new(REMARK_AT, REMARK_AT + remark.len()),
        ext: Span::new(header.len() - fields.len(), header.len()),
    })
}

/// The text of bytes that [`read`] has passed.
pub(super) fn text(raw: &[u8]) -> &str {
    std::str::from_utf8(raw).expect("a header is read only if its texts are UTF-8")
}

/// For each of `names` the last value in the checked list of fields that has it.
pub(super) fn find<'a, const N: usize>(fields: &'a [u8], names: [&str; N]) -> [Option<&'a [u8]>; N] {
    let mut found = [None; N];
    for (name, value) in Entries::new(fields) {
        for (expected, found) in names.iter().zip(&mut found) {
            if name == expected.as_bytes() {
                *found = Some(value);
            }
        }
    }
    found
}

/// The entries of a checked list of fields.
pub(super) struct Entries<'a>(Reader<'a>);

impl<'a> Entries<'a> {
    pub(super) fn new(fields: &'a [u8]) -> Self {
        Self(Reader { rest: fields, utf8: true })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a [u8], &'a [u8]);

    /// Ends at the first error, of which a checked list has none but its end.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.entry().ok()
    }
}

/// What is left of a header.
struct Reader<'a> {
    rest: &'a [u8],
    /// Whether its texts are known to be UTF-8.
    utf8: bool,
}

impl<'a> Reader<'a> {
    #[inline(always)]
    fn entry(&mut self) -> Result<(&'a [u8], &'a [u8]), FrameError> {
        let name_len = i16::from_be_bytes(self.array("length of a name")?);
        let name = self.text("name of a field", name_len.into())?;
        let value_len = i32::from_be_bytes(self.array("length of a value")?);
        let value = self.text("value of a field", value_len.into())?;
        Ok((name, value))
    }

    #[inline]
    fn text(&mut self, part: &'static str, len: i64) -> Result<&'a [u8], FrameError> {
        let bytes = self.bytes(part, len)?;
        if self.utf8 || std::str::from_utf8(bytes).is_ok() {
            Ok(bytes)
        } else {
            Err(FrameError::NotUtf8 { part })
        }
    }

    fn bytes(&mut self, part: &'static str, len: i64) -> Result<&'a [u8], FrameError> {
        let taken = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let (bytes, rest) =
            taken.ok_or(FrameError::Overrun { part, announced: len, room: self.rest.len() })?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], FrameError> {
        let taken = self.rest.split_first_chunk();
        let (&bytes, rest) =
            taken.ok_or(FrameError::Overrun { part, announced: N as i64, room: self.rest.len() })?;
        self.rest = rest;
        Ok(bytes)
    }
}

/// Writes fields back to back.
struct Writer<'w, 'a> {
    out: &'w mut Output<'a>,
    fault: Option<EncodeError>,
}

impl Writer<'_, '_> {
    #[inline]
    fn name(&mut self, name: &str) {
        let size = name.len();
        // A name without a byte would be read as null.
        if !(1..=MAX_NAME_LEN).contains(&size) {
            self.fault = Some(EncodeError::NameLength { size });
        }
        self.out.put((size as u16).to_be_bytes());
        self.out.put_text(name);
    }
}

impl Sink for Writer<'_, '_> {
    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.out.put(length(value.len()));
        self.out.put_text(value);
    }

    fn int(&mut self, name: &str, value: i64) {
        self.name(name);
        let Some(len) = self.out.keep() else { return };
        let left = self.out.left();
        self.out.put_decimal(value);
        *len = length(left - self.out.left());
    }
}

/// A length word. One that does not fit belongs to a header far over its limit of 24 bits, which is refused as
/// soon as it is whole.
fn length(len: usize) -> [u8; 4] {
    (len as u32).to_be_bytes()
}

/// The number of our language (`LanguageCode.RUST`).
const RUST: u8 = 12;
/// Where the language is, behind the code.
/// Where the opaque is in a header.
pub(super) const OPAQUE: std::ops::Range<usize> = 5..9;
const LANGUAGE_AT: usize = 2;
/// The length of the language.
const LANGUAGE_LEN: usize = 1;
/// Where the remark is, behind its length word.
const REMARK_AT: usize = 17;
/// The longest name that its length word can announce.
const MAX_NAME_LEN: usize = i16::MAX as usize;
/// The header without remark and fields.
pub(super) const FIXED_LEN: usize = 21;
