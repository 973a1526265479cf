//! A tokenizer for JSON and the dialect of the brokers' JSON library, in which an object may be keyed by bare
//! numbers and by objects: `{0:"a"}`, `{{"queueId":0}:1}`.

use super::text::plain_run;
use crate::codec::error::JsonError;

/// A place in a text that is UTF-8. Everything it hands out is checked: numbers are JSON's, strings end and hold
/// no control character and no unknown escape.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The start of a text that is still to be checked.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let cursor = Self::of_checked(bytes);
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(cursor),
            Err(error) => Err(cursor.error_at(error.valid_up_to(), "UTF-8")),
        }
    }

    /// The start of a part of a text that was checked.
    pub(super) fn of_checked(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next byte that is not blank.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// Where the next byte is that is not blank.
    pub(super) fn peek_at(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Where the last token ended.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Enters an object.
    pub(super) fn object(&mut self) -> Result<Members, JsonError> {
        self.token(b'{', "an object")?;
        Ok(Members { before: Before::First })
    }

    /// A string, number, boolean or null, as it is in the text.
    #[inline]
    pub(super) fn scalar(&mut self) -> Result<&'a [u8], JsonError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            _ => Err(self.error("a string, number, boolean or null")),
        }
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
        while let Some((start, end)) = members.next_span(self, depth)? {
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
    pub(super) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(_) => Err(self.error("the end of the text")),
            None => Ok(()),
        }
    }

    #[cold]
    pub(super) fn error_at(&self, position: usize, expected: &'static str) -> JsonError {
        JsonError::new(position, expected, self.bytes.get(position).copied())
    }

    #[cold]
    fn error(&self, expected: &'static str) -> JsonError {
        self.error_at(self.at, expected)
    }

    #[inline]
    fn token(&mut self, byte: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.error(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// A key, which may hold values `depth` deep.
    #[inline]
    fn key(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            Some(b'{') if depth > 0 => self.value(depth - 1, &mut |_, _| ()),
            _ => Err(self.error("a name")),
        }
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<&'a [u8], JsonError> {
        let found = self.bytes[self.at..].get(..word.len()).filter(|&found| found == word);
        let found = found.ok_or_else(|| self.error("true, false or null"))?;
        self.at += word.len();
        Ok(found)
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

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// A string with its quotes.
    #[inline]
    fn string(&mut self) -> Result<&'a [u8], JsonError> {
        let start = self.at;
        self.at += 1;
        loop {
            self.at += plain_run(&self.bytes[self.at..]);
            match self.byte() {
                Some(b'"') => break self.at += 1,
                Some(b'\\') => self.escape()?,
                Some(0x7f) => self.at += 1,
                Some(_) => return Err(self.error("an escape in place of a control character")),
                None => return Err(self.error("the end of a string")),
            }
        }
        Ok(&self.bytes[start..self.at])
    }

    fn escape(&mut self) -> Result<(), JsonError> {
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
    /// Passes the name of the next member and its colon, and gives the name back as it is in the text: a
    /// string, a number or an object. The value must be passed before the next call. `None` is the end of the
    /// object.
    pub(super) fn next<'a>(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, JsonError> {
        let span = self.next_span(cursor, MAX_DEPTH)?;
        Ok(span.map(|(start, end)| &cursor.bytes[start..end]))
    }

    #[inline]
    fn next_span(
        &mut self,
        cursor: &mut Cursor<'_>,
        depth: usize,
    ) -> Result<Option<(usize, usize)>, JsonError> {
        match (cursor.peek(), &self.before) {
            (Some(b'}'), _) => {
                cursor.at += 1;
                return Ok(None);
            }
            (Some(b','), Before::Later) => cursor.at += 1,
            (_, Before::Later) => return Err(cursor.error("a comma or the end of the object")),
            (_, Before::First) => self.before = Before::Later,
        }
        let start = cursor.peek_at();
        cursor.key(depth - 1)?;
        let end = cursor.at;
        cursor.token(b':', "a colon")?;
        Ok(Some((start, end)))
    }
}

/// How deep values may nest; no peer nests deeper than eight.
pub(super) const MAX_DEPTH: usize = 64;
