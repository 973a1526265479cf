//! The room that a header is written into, a word at a time.

use super::word::{self, Word};

/// What is left of the room for a header.
///
/// A few bytes, as most fields have them, are written as a whole word of which only the first bytes count, and
/// what follows covers the others. That takes a comparison and a store, where a copy of just as many bytes takes
/// a call. So there must be room for [`SLACK`] bytes more than are written.
///
/// What does not fit is left out, and with it all that follows: [`finish`](Self::finish) tells.
pub(super) struct Output<'a> {
    rest: &'a mut [u8],
    has_fit: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(room: &'a mut [u8]) -> Self {
        Self { rest: room, has_fit: true }
    }

    /// How many bytes are left, or nothing where they were too few.
    pub(super) fn finish(self) -> Option<usize> {
        self.has_fit.then_some(self.rest.len())
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// All that is left, to be written elsewhere and to be put back.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Self {
        Self { rest: std::mem::take(&mut self.rest), has_fit: self.has_fit }
    }

    /// Keeps the next bytes to be filled in later.
    pub(super) fn keep<const N: usize>(&mut self) -> Option<&'a mut [u8; N]> {
        let (kept, rest) = std::mem::take(&mut self.rest).split_first_chunk_mut().unzip();
        self.has_fit &= kept.is_some();
        self.rest = rest.unwrap_or_default();
        kept
    }

    /// Writes the bytes.
    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.put_first(bytes, N);
    }

    /// Writes the first `len` of the bytes.
    #[inline(always)]
    pub(super) fn put_first<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        if self.rest.len() < N {
            return self.overflow();
        }
        let rest = std::mem::take(&mut self.rest);
        if let Some(first) = rest.first_chunk_mut() {
            *first = bytes;
        }
        self.rest = rest.get_mut(len..).unwrap_or_default();
    }

    /// Nothing more is written.
    #[cold]
    fn overflow(&mut self) {
        *self = Output { rest: &mut [], has_fit: false };
    }

    /// Writes a short text, or a long one.
    #[inline]
    pub(super) fn put_text(&mut self, text: &str) {
        let text = text.as_bytes();
        if text.len() < word::LEN {
            let word = Word::short(text);
            return self.put_first(word.bits.to_le_bytes(), word.len);
        }
        match std::mem::take(&mut self.rest).split_at_mut_checked(text.len()) {
            Some((first, rest)) => {
                first.copy_from_slice(text);
                self.rest = rest;
            }
            None => self.overflow(),
        }
    }

    /// Writes `value` in decimal. Most fields that are numbers have one digit.
    #[inline]
    pub(super) fn put_decimal(&mut self, value: i64) {
        if let 0..=9 = value {
            return self.put([b'0' + value as u8]);
        }
        if value < 0 {
            self.put(*b"-");
        }
        self.put_digits(value.unsigned_abs());
    }

    fn put_digits(&mut self, value: u64) {
        if value >= TEN_TO_8 {
            self.put_digits(value / TEN_TO_8);
            return self.put((eight_digits(value % TEN_TO_8) | DIGITS).to_le_bytes());
        }
        let digits = eight_digits(value);
        // The last digit is written also where it is zero.
        let zeros = (digits | 1 << 56).trailing_zeros() / 8;
        self.put_first(((digits | DIGITS) >> (8 * zeros)).to_le_bytes(), 8 - zeros as usize);
    }
}

/// The eight digits of a number below 10^8, a byte each, the first one lowest.
///
/// Each step splits all the numbers that it finds in two at once: their quotient goes low, their remainder high.
/// A product with 10,486 over 2^20 is a hundredth of what is below 10,000, one with 103 over 2^10 a tenth of
/// what is below 100; the masks keep out what the shift brings down from the number above.
#[inline]
fn eight_digits(value: u64) -> u64 {
    let by_four = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((by_four * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let by_two = hundreds | ((by_four - 100 * hundreds) << 16);
    let tens = ((by_two * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((by_two - 10 * tens) << 8)
}

/// How many bytes more than are written there must be room for.
pub(super) const SLACK: usize = word::LEN;
const TEN_TO_8: u64 = 100_000_000;
/// Eight zeros as text: a digit has its value in the low half of its byte.
const DIGITS: u64 = u64::from_le_bytes(*b"00000000");

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written into room that is long enough.
    fn written(write: impl Fn(&mut Output<'_>)) -> String {
        let mut room = [b'.'; 100];
        let mut output = Output::new(&mut room);
        write(&mut output);
        let len = 100 - output.finish().unwrap();
        String::from_utf8(room[..len].to_vec()).unwrap()
    }

    #[test]
    fn integers_are_written_as_the_standard_library_has_them() {
        let powers =
            (0..19).map(|power| 10_i64.pow(power)).flat_map(|power| [power - 1, power, -power, 1 - power]);
        let small = (0..100_000).map(|value| value * 1_000 + value % 1_000);
        for value in powers.chain(small).chain([1_700_000_000_000, i64::MAX, i64::MIN, i64::MIN + 1]) {
            assert_eq!(written(|output| output.put_decimal(value)), value.to_string());
        }
    }

    #[test]
    fn texts_of_any_length_are_written_to_their_end() {
        let text = "abcdefghijklmnopqrst";
        for len in 0..=text.len() {
            let expected = format!("<{}>", &text[..len]);
            let both = written(|output| {
                output.put(*b"<");
                output.put_text(&text[..len]);
                output.put(*b">");
            });
            assert_eq!(both, expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_told_and_so_is_all_behind_it() {
        let mut room = [0; 10];
        let mut output = Output::new(&mut room);
        output.put_text("eleven byte");
        output.put(*b"x");
        assert_eq!(output.finish(), None);
        let mut output = Output::new(&mut room);
        assert!(output.keep::<10>().is_some());
        assert!(output.keep::<1>().is_none());
        assert_eq!(output.finish(), None);
    }
}
