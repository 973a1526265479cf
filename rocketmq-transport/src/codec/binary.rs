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
    received::{Head, Span},
};
use crate::command::Sink;

/// Writes the header of a command whose code fits 16 bits.
pub(super) fn write(outgoing: &Outgoing<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let remark = outgoing.remark.unwrap_or_default();
    out.extend_from_slice(&(outgoing.code.0 as i16).to_be_bytes());
    out.push(RUST);
    out.extend_from_slice(&outgoing.version.to_be_bytes());
    out.extend_from_slice(&outgoing.opaque.0.to_be_bytes());
    out.extend_from_slice(&outgoing.flag.to_be_bytes());
    out.extend_from_slice(&length(remark.len()));
    out.extend_from_slice(remark.as_bytes());
    let length_at = out.len();
    out.extend_from_slice(&length(0));
    let fields_at = out.len();
    let mut writer = Writer { out, fault: None };
    outgoing.write_fields(&mut writer);
    if let Some(fault) = writer.fault {
        return Err(fault);
    }
    let fields_len = length(out.len() - fields_at);
    out[length_at..fields_at].copy_from_slice(&fields_len);
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

/// The last value in the checked list of fields whose name is `name`.
pub(super) fn find<'a>(fields: &'a [u8], name: &str) -> Option<&'a [u8]> {
    Entries::new(fields).filter(|(key, _)| *key == name.as_bytes()).last().map(|(_, value)| value)
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
    fn entry(&mut self) -> Result<(&'a [u8], &'a [u8]), FrameError> {
        let name_len = i16::from_be_bytes(self.array("length of a name")?);
        let name = self.text("name of a field", name_len.into())?;
        let value_len = i32::from_be_bytes(self.array("length of a value")?);
        let value = self.text("value of a field", value_len.into())?;
        Ok((name, value))
    }

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
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    fault: Option<EncodeError>,
}

impl Sink for Writer<'_> {
    fn text(&mut self, name: &str, value: &str) {
        let size = name.len();
        // A name without a byte would be read as null.
        if !(1..=MAX_NAME_LEN).contains(&size) {
            self.fault = Some(EncodeError::NameLength { size });
        }
        self.out.extend_from_slice(&(size as u16).to_be_bytes());
        append(self.out, name.as_bytes());
        self.out.extend_from_slice(&length(value.len()));
        append(self.out, value.as_bytes());
    }
}

/// Appends `bytes`: a few, as of most names, one by one, which is faster than a call for them.
#[inline]
fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() > FEW {
        return out.extend_from_slice(bytes);
    }
    for &byte in bytes {
        out.push(byte);
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
const LANGUAGE_AT: usize = 2;
/// The length of the language.
const LANGUAGE_LEN: usize = 1;
/// Where the remark is, behind its length word.
const REMARK_AT: usize = 17;
/// How many bytes are a few.
const FEW: usize = 4;
/// The longest name that its length word can announce.
const MAX_NAME_LEN: usize = i16::MAX as usize;
/// The header without remark and fields.
pub(super) const FIXED_LEN: usize = 21;
