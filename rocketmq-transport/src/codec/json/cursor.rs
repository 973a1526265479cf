//! A tokenizer for JSON and the dialect of the brokers' JSON library, in which an object may be keyed by bare
//! numbers and by objects: `{0:"a"}`, `{{"queueId":0}:1}`.

use crate::codec::{
    error::JsonError,
    is_ascii,
    word::{self, HIGHEST, ONES, Word},
};

/// A place in a text that is UTF-8. Everything it hands out is checked: numbers are JSON's, strings end and hold
/// no control character and no unknown escape.
///
/// What each member of a header passes through is inlined by force, and what is seldom needed is called
/// [on a copy](Self::aside), so that the cursor stays in registers: a call for each token, with its result
/// written to memory, took longer than the token.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The start of a text that is still to be checked.
    #[inline(always)]
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let cursor = Self::of_checked(bytes);
        if is_ascii(bytes) {
            return Ok(cursor);
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(cursor),
            Err(error) => Err(cursor.error_at(error.valid_up_to(), "UTF-8")),
        }
    }

    /// The start of a part of a text that was checked.
    #[inline(always)]
    pub(super) fn of_checked(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next byte that is not blank.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<u8> {
        match self.byte() {
            Some(b' ' | b'\t' | b'\n' | b'\r') => self.aside(Self::peek_behind_blanks),
            byte => byte,
        }
    }

    /// Does what is seldom needed on a copy of the cursor, and moves the cursor to where that has come.
    #[inline(always)]
    pub(super) fn aside<T>(&mut self, seldom: impl FnOnce(&mut Self) -> T) -> T {
        let mut copy = *self;
        let result = seldom(&mut copy);
        *self = copy;
        result
    }

    #[cold]
    #[inline(never)]
    fn peek_behind_blanks(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Where the next byte is that is not blank.
    #[inline(always)]
    pub(super) fn peek_at(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Where the last token ended.
    #[inline(always)]
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Enters an object.
    #[inline(always)]
    pub(super) fn object(&mut self) -> Result<Members, JsonError> {
        self.token(b'{', "an object")?;
        Ok(Members { before: Before::First })
    }

    /// A string, number, boolean or null, as it is in the text.
    pub(super) fn scalar(&mut self) -> Result<&'a [u8], JsonError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    /// Passes over an integer from 0 with a member or the end of the object behind it. It stays where it is where
    /// there is anything else.
    #[inline(always)]
    pub(super) fn short_int(&mut self) -> Option<i32> {
        let start = self.peek_at();
        let word = Word::first_of(&self.bytes[start..]).bits;
        // A digit becomes its value. The lowest of the high bits is exact, as it is in a plain run.
        let values = word ^ (ONES * u64::from(b'0'));
        let others = (values.wrapping_add(ONES * (0x80 - 10)) | values) & HIGHEST;
        let len = others.trailing_zeros() as usize / 8;
        // No digit follows a zero that is the first.
        if len == 0 || (len > 1 && values as u8 == 0) {
            return None;
        }
        if len == word::LEN {
            return self.aside(|cursor| cursor.long_int(start, number_of(values)));
        }
        let (b',' | b'}') = (word >> (8 * len)) as u8 else { return None };
        self.at = start + len;
        // What is not a digit goes, and zeros come before the first one.
        Some(number_of(values << (64 - 8 * len)) as i32)
    }

    /// Passes over an integer whose first eight digits were read, as [`short_int`](Self::short_int) does.
    #[inline(never)]
    fn long_int(&mut self, start: usize, mut value: u64) -> Option<i32> {
        for at in start + word::LEN..=start + MAX_DIGITS {
            match self.bytes.get(at)? {
                digit @ b'0'..=b'9' => value = 10 * value + u64::from(digit - b'0'),
                b',' | b'}' => {
                    let value = i32::try_from(value).ok()?;
                    self.at = at;
                    return Some(value);
                }
                _ => return None,
            }
        }
        None
    }

    /// Passes over a member whose name and value are plain strings without blanks between them, as brokers write
    /// fields: their insides. It stays where it is where there is anything else.
    #[inline(always)]
    pub(super) fn plain_member(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let mut cursor = *self;
        let name = cursor.plain_string()?;
        if !cursor.pass(b":") {
            return None;
        }
        let value = cursor.plain_string()?;
        *self = cursor;
        Some((name, value))
    }

    /// Passes over a string without escapes: its inside. It stays where it is where there is anything else.
    #[inline(always)]
    pub(super) fn plain_string(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?.strip_prefix(b"\"")?;
        let len = plain_run(rest);
        let (inner, behind) = rest.split_at_checked(len)?;
        if behind.first() != Some(&b'"') {
            return None;
        }
        self.at += 1 + len + 1;
        Some(inner)
    }

    /// Passes over a value of any type.
    pub(super) fn skip_value(&mut self) -> Result<(), JsonError> {
        self.value(MAX_DEPTH, &mut |_, _| ())
    }

    /// Passes over a value in which others may nest `depth` deep, and reports from where to where each key is
    /// that is not a string. Keys within keys are not reported.
    pub(super) fn value(
        &mut self,
        depth: usize,
        odd_key: &mut dyn FnMut(usize, usize),
    ) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'{' | b'[') if depth == 0 => Err(self.error("no deeper nesting")),
            Some(b'{') => self.pass_object(depth, odd_key),
            Some(b'[') => self.pass_list(depth, odd_key),
            _ => self.scalar().map(drop),
        }
    }

    fn pass_object(&mut self, depth: usize, odd_key: &mut dyn FnMut(usize, usize)) -> Result<(), JsonError> {
        let mut members = self.object()?;
        while members.has_next(self)? {
            let (start, end) = self.key(depth)?;
            if self.bytes[start] != b'"' {
                odd_key(start, end);
            }
            self.value(depth - 1, odd_key)?;
        }
        Ok(())
    }

    fn pass_list(&mut self, depth: usize, odd_key: &mut dyn FnMut(usize, usize)) -> Result<(), JsonError> {
        self.token(b'[', "a list")?;
        if self.peek() == Some(b']') {
            return self.token(b']', "the end of the list");
        }
        loop {
            self.value(depth - 1, odd_key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => return self.token(b']', "the end of the list"),
                _ => return Err(self.error("a comma or the end of the list")),
            }
        }
    }

    /// The end of the text.
    #[inline(always)]
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(_) => Err(self.error("the end of the text")),
            None => Ok(()),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn error_at(self, position: usize, expected: &'static str) -> JsonError {
        JsonError::new(position, expected, self.bytes.get(position).copied())
    }

    #[cold]
    #[inline(never)]
    fn error(self, expected: &'static str) -> JsonError {
        self.error_at(self.at, expected)
    }

    #[inline(always)]
    fn token(&mut self, byte: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.error(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// The name of a member, and its colon: a string, number or object as it is in the text.
    pub(super) fn name(&mut self) -> Result<&'a [u8], JsonError> {
        let (start, end) = self.key(MAX_DEPTH)?;
        Ok(&self.bytes[start..end])
    }

    /// From where to where a key is, in which values may nest less than `depth` deep. Its colon is passed too.
    fn key(&mut self, depth: usize) -> Result<(usize, usize), JsonError> {
        let start = self.peek_at();
        match self.byte() {
            Some(b'"') => self.string().map(drop)?,
            Some(b'-' | b'0'..=b'9') => self.number().map(drop)?,
            Some(b'{') if depth > 1 => self.value(depth - 2, &mut |_, _| ())?,
            _ => return Err(self.error("a name")),
        }
        let end = self.at;
        self.token(b':', "a colon")?;
        Ok((start, end))
    }

    /// The byte behind the next one.
    #[inline(always)]
    pub(super) fn second(&self) -> Option<u8> {
        self.bytes.get(self.at + 1).copied()
    }

    /// Passes `text` where it is next.
    #[inline(always)]
    pub(super) fn pass<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let found = self.bytes[self.at..].starts_with(text);
        if found {
            self.at += N;
        }
        found
    }

    fn word(&mut self) -> Result<&'a [u8], JsonError> {
        let rest = &self.bytes[self.at..];
        let Some(b't' | b'f' | b'n') = rest.first() else {
            return Err(self.error("a string, number, boolean or null"));
        };
        let word = [&b"true"[..], b"false", b"null"].into_iter().find(|word| rest.starts_with(word));
        let word = word.ok_or_else(|| self.error("true, false or null"))?;
        self.at += word.len();
        Ok(word)
    }

    fn number(&mut self) -> Result<&'a [u8], JsonError> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(&self.bytes[start..self.at])
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == start { Err(self.error("a digit")) } else { Ok(()) }
    }

    #[inline(always)]
    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// A string with its quotes.
    fn string(&mut self) -> Result<&'a [u8], JsonError> {
        let start = self.at;
        self.at += 1;
        loop {
            self.at += plain_run(&self.bytes[self.at..]);
            if self.byte() == Some(b'"') {
                self.at += 1;
                return Ok(&self.bytes[start..self.at]);
            }
            self.escape()?;
        }
    }

    /// Passes over an escape, where nothing else may be.
    fn escape(&mut self) -> Result<(), JsonError> {
        match self.byte() {
            Some(b'\\') => {}
            Some(_) => return Err(self.error("an escape in place of a control character")),
            None => return Err(self.error("the end of a string")),
        }
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
                if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(self.error("an escape with four hexadecimal digits"));
                }
                self.at += 6;
            }
            _ => return Err(self.error("a known escape")),
        }
        Ok(())
    }
}

/// The members of an object whose brace was passed.
pub(super) struct Members {
    before: Before,
}

enum Before {
    First,
    Later,
}

impl Members {
    /// Whether there is a member more, whose name is next then; else the object has been passed. Name, colon
    /// and value must be passed before the next call.
    #[inline(always)]
    pub(super) fn has_next(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, JsonError> {
        match (cursor.peek(), &self.before) {
            (Some(b'}'), _) => {
                cursor.at += 1;
                return Ok(false);
            }
            (Some(b','), Before::Later) => cursor.at += 1,
            (_, Before::Later) => return Err(cursor.error("a comma or the end of the object")),
            (_, Before::First) => self.before = Before::Later,
        }
        Ok(true)
    }
}

/// The length of the run at the start of `bytes` without a quote, a backslash or a control character.
///
/// It looks at a word at a time. The lowest high bit of a difference is exact: what is borrowed comes from
/// above it.
#[inline(always)]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*word);
        // 0x02 swaps the quote with the blank, so that all below 0x21 end the run.
        let below_blank = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
        let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
        let ends = (below_blank | backslash) & !word & HIGHEST;
        if ends != 0 {
            return bytes.len() - rest.len() + ends.trailing_zeros() as usize / 8;
        }
        rest = behind;
    }
    let ends = |&byte: &u8| byte < b' ' || byte == b'"' || byte == b'\\';
    bytes.len() - rest.len() + rest.iter().position(ends).unwrap_or(rest.len())
}

/// The number of eight digits, which are bytes with their values, the first one lowest: tens and ones are put
/// together in all places at once, then hundreds, then tens of thousands.
#[inline(always)]
fn number_of(digits: u64) -> u64 {
    let by_two = (10 * digits + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let by_four = (100 * by_two + (by_two >> 16)) & 0x0000_ffff_0000_ffff;
    (10_000 * by_four + (by_four >> 32)) & 0xffff_ffff
}

/// The digits of the largest integer of 32 bits.
const MAX_DIGITS: usize = 10;
/// How deep values may nest; no peer nests deeper than eight.
pub(super) const MAX_DEPTH: usize = 64;
