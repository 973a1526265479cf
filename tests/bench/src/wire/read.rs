//! Answers, read in one pass.

use std::ops::Range;

use memchr::memmem;

use super::decimal;
use crate::Outcome;

/// The length of the whole frame at the start of `bytes`; `None` while it is not there to its last byte.
#[inline]
pub(crate) fn frame_len(bytes: &[u8]) -> Option<usize> {
    let len = 4 + u32::from_be_bytes(*bytes.first_chunk()?) as usize;
    (bytes.len() >= len).then_some(len)
}

/// The length of the header of a whole frame.
#[inline]
pub(crate) fn header_len(frame: &[u8]) -> Option<usize> {
    let &[_, high, middle, low] = frame.get(4..)?.first_chunk()?;
    Some(u32::from_be_bytes([0, high, middle, low]) as usize)
}

/// The opaque of a frame with a JSON header, found by its name alone.
#[inline]
pub(crate) fn opaque(frame: &[u8], finder: &memmem::Finder<'_>) -> Option<u32> {
    let header = frame.get(8..8 + header_len(frame)?)?;
    let digits = finder.find(header)? + OPAQUE.len();
    decimal::read(&header[digits..]).and_then(|(opaque, _)| u32::try_from(opaque).ok())
}

/// How the opaque is named in a JSON header.
pub(crate) const OPAQUE: &[u8] = b"\"opaque\":";

/// What one pass over a JSON header gives; texts are the ranges of their insides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) code: i32,
    pub(crate) flag: i32,
    pub(crate) opaque: u32,
    pub(crate) version: i32,
    pub(crate) language: Range<u32>,
    pub(crate) remark: Range<u32>,
}

/// Reads a JSON header to its end in one pass, and hands each field to `field`: name and value, without quotes and as
/// they are written.
#[inline]
pub(crate) fn head<'a>(header: &'a [u8], mut field: impl FnMut(&'a [u8], &'a [u8])) -> Outcome<Head> {
    std::str::from_utf8(header)?;
    let mut pass = Pass { bytes: header, at: 0 };
    let mut head = Head::default();
    pass.token(b'{')?;
    loop {
        let name = pass.string()?;
        pass.token(b':')?;
        match &header[name] {
            b"code" => head.code = pass.int()?,
            b"flag" => head.flag = pass.int()?,
            b"opaque" => head.opaque = pass.int()?,
            b"version" => head.version = pass.int()?,
            b"language" => head.language = span(pass.string()?),
            b"remark" => head.remark = span(pass.string()?),
            b"extFields" => pass.fields(&mut field)?,
            _ => {
                pass.string()?;
            }
        }
        if pass.closes()? {
            break;
        }
    }
    if pass.at == header.len() { Ok(head) } else { Err("bytes behind the header".into()) }
}

fn span(range: Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}

struct Pass<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Pass<'a> {
    #[inline]
    fn token(&mut self, byte: u8) -> Outcome<()> {
        if self.next() != Some(byte) {
            return Err(format!("no {:?} at byte {}", char::from(byte), self.at).into());
        }
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn string(&mut self) -> Outcome<Range<usize>> {
        self.token(b'"')?;
        let start = self.at;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err("a string without an end".into()),
            }
        }
        self.at += 1;
        Ok(start..self.at - 1)
    }

    #[inline]
    fn int<T: TryFrom<i64>>(&mut self) -> Outcome<T> {
        self.next();
        let (value, len) = decimal::read(&self.bytes[self.at..]).ok_or("no number where one is due")?;
        self.at += len;
        T::try_from(value).map_err(|_| "a number out of its range".into())
    }

    #[inline]
    fn fields(&mut self, field: &mut impl FnMut(&'a [u8], &'a [u8])) -> Outcome<()> {
        self.token(b'{')?;
        if self.next() == Some(b'}') {
            return self.token(b'}');
        }
        loop {
            let name = self.string()?;
            self.token(b':')?;
            let value = self.string()?;
            field(&self.bytes[name], &self.bytes[value]);
            if self.closes()? {
                return Ok(());
            }
        }
    }

    /// Whether the object ends here; otherwise passes the comma.
    #[inline]
    fn closes(&mut self) -> Outcome<bool> {
        let closes = match self.next() {
            Some(b'}') => true,
            Some(b',') => false,
            _ => return Err("neither a comma nor the end of an object".into()),
        };
        self.at += 1;
        Ok(closes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{SEND, SendHeader, write};

    #[test]
    fn a_header_is_read_to_its_end() {
        let mut frame = Vec::new();
        write::send(&mut frame, SEND.0, &SendHeader::numbered(3), 1_000_000_007, 0);
        assert_eq!(frame_len(&frame), Some(frame.len()));
        assert_eq!(frame_len(&frame[..frame.len() - 1]), None);
        assert_eq!(opaque(&frame, &memmem::Finder::new(OPAQUE)), Some(1_000_000_007));

        let header = &frame[8..];
        let mut fields = Vec::new();
        let head = head(header, |name, value| fields.push((name, value))).expect("a header");
        assert_eq!((head.code, head.opaque, head.flag, head.version), (310, 1_000_000_007, 0, 479));
        assert_eq!(&header[head.language.start as usize..head.language.end as usize], b"RUST");
        assert_eq!(fields.len(), 11);
        assert_eq!(fields[4], (&b"e"[..], &b"3"[..]));
    }

    #[test]
    fn a_header_cut_short_is_refused() {
        let header = br#"{"code":0,"extFields":{"a":"\"b"},"flag":1,"opaque":7}"#;
        assert!(head(header, |_, _| ()).is_ok());
        for len in 0..header.len() {
            assert!(head(&header[..len], |_, _| ()).is_err(), "{len}");
        }
    }
}
