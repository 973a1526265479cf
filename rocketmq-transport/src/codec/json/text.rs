//! JSON strings: escaping and unescaping, run by run.

use std::borrow::Cow;

/// Writes `text` with everything escaped that the brokers' JSON library escapes: quotes, backslashes, control
/// characters and U+007F. All else is written as it is.
#[inline]
pub(super) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    if text.len() > SHORT {
        return write_runs(out, text.as_bytes());
    }
    for byte in text.bytes() {
        if is_special(byte) { write_escape(out, byte) } else { out.push(byte) }
    }
}

fn write_runs(out: &mut Vec<u8>, mut text: &[u8]) {
    loop {
        let (plain, special) = text.split_at(plain_run(text));
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = special.split_first() else { return };
        write_escape(out, byte);
        text = behind;
    }
}

/// How many bytes [`write_escaped`] adds to those of `text` at most.
#[inline]
pub(in crate::codec) fn extra(text: &str) -> usize {
    MAX_ADDED * text.bytes().map(|byte| usize::from(is_special(byte))).sum::<usize>()
}

/// The text of the inside of a checked string.
pub(super) fn unescape(inner: &[u8]) -> Cow<'_, str> {
    let text = checked(inner);
    if !inner.contains(&b'\\') {
        return text.into();
    }
    let mut unescaped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        unescaped.push_str(plain);
        let (character, len) = read_escape(escape);
        unescaped.push(character);
        rest = &escape[len..];
    }
    unescaped.push_str(rest);
    unescaped.into()
}

/// The text of bytes that the cursor has passed.
pub(super) fn checked(raw: &[u8]) -> &str {
    std::str::from_utf8(raw).expect("the cursor passes only UTF-8")
}

/// The length of the run at the start of `bytes` that is written as it is.
#[inline]
fn plain_run(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| is_special(byte)).unwrap_or(bytes.len())
}

#[inline]
fn is_special(byte: u8) -> bool {
    SPECIAL[usize::from(byte)]
}

fn write_escape(out: &mut Vec<u8>, special: u8) {
    match special {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', special]),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            let (high, low) = (usize::from(special >> 4), usize::from(special & 15));
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
        }
    }
}

/// The character of the checked escape that follows a backslash, and the length of the escape.
fn read_escape(escape: &str) -> (char, usize) {
    let character = match escape.as_bytes().first() {
        Some(b'u') => return read_unicode(escape),
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(&byte) => byte.into(),
        None => return (char::REPLACEMENT_CHARACTER, 0),
    };
    (character, 1)
}

/// `uXXXX`, and with it the other half of a surrogate pair; a half alone is replaced by U+FFFD.
fn read_unicode(escape: &str) -> (char, usize) {
    let unit = |at: usize| escape.get(at..at + 4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let low = if escape.get(5..7) == Some("\\u") { unit(7) } else { None };
    let units = [unit(1), low];
    let first = char::decode_utf16(units.into_iter().flatten()).next();
    let character = first.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER);
    (character, if character.len_utf16() == 2 { 11 } else { 5 })
}

/// Control characters, quotes, backslashes and U+007F.
static SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        special[byte] = true;
        byte += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special[0x7f] = true;
    special
};
const HEX: &[u8; 16] = b"0123456789ABCDEF";
/// The longest escape has six bytes.
const MAX_ADDED: usize = 5;
/// Up to this length, as most names have it, a text is faster copied byte by byte than by a call.
const SHORT: usize = 4;
