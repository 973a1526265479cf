//! JSON strings: escaping and unescaping, run by run.

use std::borrow::Cow;

/// Writes `text` with everything escaped that the brokers' JSON library escapes: quotes, backslashes, control
/// characters and U+007F. All else is written as it is.
pub(super) fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_run(rest));
        out.extend_from_slice(plain);
        let Some((&byte, behind)) = special.split_first() else { return };
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            }
        }
        rest = behind;
    }
}

/// How many bytes [`write_escaped`] adds to those of `text` at most.
pub(in crate::codec) fn extra(text: &str) -> usize {
    // A sum per block of 255 fits a byte, so that the count runs over many bytes at a time.
    let special =
        |block: &[u8]| usize::from(block.iter().map(|&byte| u8::from(is_special(byte))).sum::<u8>());
    MAX_ADDED * text.as_bytes().chunks(255).map(special).sum::<usize>()
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

/// The length of the run of bytes at the start of `bytes` that neither reading nor writing a string stops at.
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&word) = bytes[at..].first_chunk() {
        let marks = special_marks(u64::from_le_bytes(word));
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += size_of::<u64>();
    }
    at + bytes[at..].iter().take_while(|&&byte| !is_special(byte)).count()
}

/// Marks the high bit of each byte of `word` that is special; bytes above the lowest mark may be marked though
/// they are not.
const fn special_marks(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const fn below(word: u64, bound: u8) -> u64 {
        word.wrapping_sub(ONES * bound as u64) & !word
    }
    const fn equal(word: u64, byte: u8) -> u64 {
        below(word ^ (ONES * byte as u64), 1)
    }
    (below(word, 0x20) | equal(word, b'"') | equal(word, b'\\') | equal(word, 0x7f)) & (ONES << 7)
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte == 0x7f
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

const HEX: &[u8; 16] = b"0123456789ABCDEF";
/// The longest escape has six bytes.
const MAX_ADDED: usize = 5;
