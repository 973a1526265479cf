//! JSON strings: escaping and unescaping, run by run.

use std::borrow::Cow;

use crate::codec::{
    output::{Output, SLACK},
    word::{self, HIGHEST, ONES, Word},
};

/// Writes `text` with everything escaped that the brokers' JSON library escapes: quotes, backslashes, control
/// characters and U+007F. All else is written as it is.
#[inline(always)]
pub(super) fn write_escaped(out: &mut Output<'_>, text: &str) {
    let text = text.as_bytes();
    if text.len() < word::LEN { write_short(out, text) } else { write_long(out, text) }
}

#[inline(never)]
fn write_short(out: &mut Output<'_>, text: &[u8]) {
    write_word(out, Word::short(text));
}

fn write_long(out: &mut Output<'_>, text: &[u8]) {
    // Kept in registers meanwhile.
    let mut room = out.take();
    let (words, rest) = text.as_chunks();
    for word in words {
        write_word(&mut room, Word::whole(*word));
    }
    if !rest.is_empty() {
        write_word(&mut room, Word::end_of(text, rest.len()));
    }
    *out = room;
}

#[inline(always)]
fn write_word(out: &mut Output<'_>, word: Word) {
    match specials(word.bits) {
        0 => out.put_first(word.bits.to_le_bytes(), word.len),
        special => write_specials(out, word, special),
    }
}

/// Writes the bytes that are escaped, and those between them.
#[inline]
fn write_specials(out: &mut Output<'_>, word: Word, mut special: u64) {
    let Word { mut bits, mut len } = word;
    while special != 0 {
        let plain = special.trailing_zeros() as usize / 8;
        out.put_first(bits.to_le_bytes(), plain);
        bits >>= 8 * plain;
        let escape = ESCAPES[bits as usize % ESCAPES.len()];
        out.put_first(escape.to_le_bytes(), (escape >> 56) as usize % word::LEN);
        // Two shifts, since all eight bytes may be behind it now.
        bits >>= 8;
        special = special >> (8 * plain) >> 8;
        len -= plain + 1;
    }
    out.put_first(bits.to_le_bytes(), len % word::LEN);
}

/// Appends what [`write_escaped`] writes.
pub(super) fn append_escaped(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    let mut end = start + text.len() + SLACK;
    add_extra(&mut end, text);
    out.resize(end, 0);
    let mut room = Output::new(&mut out[start..]);
    write_escaped(&mut room, text);
    let left = room.left();
    out.truncate(out.len() - left);
}

/// Adds to `bound` how many bytes more than `text` has [`write_escaped`] writes at most.
#[inline(always)]
pub(in crate::codec) fn add_extra(bound: &mut usize, text: &str) {
    let text = text.as_bytes();
    if text.len() >= word::LEN {
        add_long(bound, text);
    } else if one_letter(text).is_none() {
        add_short(bound, text);
    }
}

#[inline(never)]
fn add_short(bound: &mut usize, text: &[u8]) {
    add_special(bound, Word::short(text));
}

#[inline(never)]
fn add_long(bound: &mut usize, text: &[u8]) {
    let (words, rest) = text.as_chunks();
    for word in words {
        add_special(bound, Word::whole(*word));
    }
    if !rest.is_empty() {
        add_special(bound, Word::end_of(text, rest.len()));
    }
}

#[inline(always)]
fn add_special(bound: &mut usize, word: Word) {
    let special = specials(word.bits) >> 7;
    if special != 0 {
        // The highest byte of the product is the sum of all bytes.
        *bound += MAX_ADDED * (special.wrapping_mul(ONES) >> 56) as usize;
    }
}

/// The letter that is the whole text, as most names are.
#[inline(always)]
pub(super) fn one_letter(text: &[u8]) -> Option<u8> {
    match *text {
        [letter] if letter.is_ascii_alphabetic() => Some(letter),
        _ => None,
    }
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

/// The highest bit of each byte that is escaped: control characters, quotes, backslashes and U+007F.
///
/// No byte carries into the next one, so each bit is exact.
#[inline(always)]
fn specials(word: u64) -> u64 {
    let low = word & !HIGHEST;
    // 0x02 swaps the quote with the blank, so that it is below 0x21 what is escaped.
    let above_blank = (low ^ (ONES * 0x02)) + ONES * (0x80 - 0x21);
    let no_backslash = (low ^ (ONES * 0x5c)) + ONES * 0x7f;
    let delete = low + ONES;
    (!(above_blank & no_backslash) | delete) & !word & HIGHEST
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

/// What is written for a byte, where that is not the byte itself, and how long it is in the highest byte.
static ESCAPES: [u64; 128] = {
    let mut escapes = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        let (high, low) = (HEX[byte >> 4], HEX[byte & 15]);
        let escape = match byte as u8 {
            letter @ (b'"' | b'\\') => [b'\\', letter, 0, 0, 0, 0, 0, 2],
            b'\n' => *b"\\n\0\0\0\0\0\x02",
            b'\r' => *b"\\r\0\0\0\0\0\x02",
            b'\t' => *b"\\t\0\0\0\0\0\x02",
            _ => [b'\\', b'u', b'0', b'0', high, low, 0, 6],
        };
        escapes[byte] = u64::from_le_bytes(escape);
        byte += 1;
    }
    escapes
};
const HEX: &[u8; 16] = b"0123456789ABCDEF";
/// The longest escape has six bytes.
pub(super) const MAX_ADDED: usize = 5;
