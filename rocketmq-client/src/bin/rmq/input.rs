//! Where the bodies come from: one body again and again, or the lines of a file, read no faster than they are sent.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
    thread,
};

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;

use crate::{
    Failure,
    args::{ContentArgs, MAX_BODY_BYTES},
};

/// Bodies in the order they are sent.
#[derive(Debug)]
pub(crate) enum Input {
    Repeat { body: Bytes, left: u64 },
    Lines(mpsc::Receiver<io::Result<Line>>),
}

/// One line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Whole(Bytes),
    /// A line longer than any body may be; only its length is kept.
    TooLong {
        bytes: u64,
    },
}

impl Input {
    /// What the arguments ask for. A file is opened here, so that one that cannot be read is found before
    /// anything is sent.
    pub(crate) fn open(content: ContentArgs, count: Option<u64>) -> Result<Self, Failure> {
        let left = count.unwrap_or(1);
        if let Some(path) = content.file {
            return lines_of(&path);
        }
        let body = match content.body {
            Some(text) => Bytes::from(text),
            None => pattern(content.size.unwrap_or(DEFAULT_SIZE)),
        };
        Ok(Self::Repeat { body, left })
    }

    /// The next body; none at the end. After an error there is nothing more.
    ///
    /// Cancel safe: a body is taken out only when it is returned.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Line>> {
        match self {
            Self::Repeat { body, left } => {
                *left = left.checked_sub(1)?;
                Some(Ok(Line::Whole(body.clone())))
            }
            Self::Lines(lines) => lines.recv().await,
        }
    }

    /// How many bodies are left, where that is known.
    pub(crate) const fn left(&self) -> Option<u64> {
        match self {
            Self::Repeat { left, .. } => Some(*left),
            Self::Lines(_) => None,
        }
    }
}

fn lines_of(path: &Path) -> Result<Input, Failure> {
    let (sender, lines) = mpsc::channel(LINES_AHEAD);
    let reading = if path.as_os_str() == "-" {
        thread::Builder::new().name("rmq-input".into()).spawn(move || read_lines(io::stdin().lock(), &sender))
    } else {
        let unreadable = |error| Failure::usage(format_args!("{} cannot be read: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(Failure::usage(format_args!("{} is a directory", path.display())));
        }
        let reader = BufReader::with_capacity(READ_BYTES, file);
        thread::Builder::new().name("rmq-input".into()).spawn(move || read_lines(reader, &sender))
    };
    match reading {
        // It ends with its input, or with the receiver; at the exit of the process it is simply left behind,
        // since nothing can end a read from a terminal.
        Ok(_) => Ok(Input::Lines(lines)),
        Err(error) => Err(Failure::run(format_args!("no thread to read the input: {error}"))),
    }
}

fn read_lines(mut reader: impl BufRead, lines: &mpsc::Sender<io::Result<Line>>) {
    while let Some(line) = read_line(&mut reader).transpose() {
        let failed = line.is_err();
        if lines.blocking_send(line).is_err() || failed {
            return;
        }
    }
}

/// Reads up to a line feed or the end; none at the end. Never holds more than the longest body.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<Line>> {
    let mut line = BytesMut::new();
    let mut length = 0_u64;
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() && length == 0 {
            return Ok(None);
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        length += part.len() as u64;
        if length <= LONGEST {
            line.extend_from_slice(part);
        }
        let ended = end.is_some() || available.is_empty();
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if ended {
            let whole = length <= LONGEST;
            return Ok(Some(if whole {
                Line::Whole(line.freeze())
            } else {
                Line::TooLong { bytes: length }
            }));
        }
    }
}

/// A body of that size that is easy on the eye.
fn pattern(size: u32) -> Bytes {
    (b'a'..=b'z').cycle().take(size as usize).collect()
}

/// A body that says little and is long enough to be typical.
const DEFAULT_SIZE: u32 = 1_024;
const LONGEST: u64 = MAX_BODY_BYTES as u64;
/// Lines read ahead of the sends; each holds at most the longest body.
const LINES_AHEAD: usize = 8;
const READ_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], capacity: usize) -> Vec<Line> {
        let mut reader = BufReader::with_capacity(capacity, bytes);
        std::iter::from_fn(|| read_line(&mut reader).unwrap()).collect()
    }

    fn whole(bytes: &'static [u8]) -> Line {
        Line::Whole(Bytes::from_static(bytes))
    }

    #[test]
    fn every_byte_but_the_line_feed_is_kept_however_the_reads_fall() {
        let bytes = b"a\r\n\n\xff\xfe\x00\nlast";
        for capacity in 1..=bytes.len() + 1 {
            assert_eq!(
                lines(bytes, capacity),
                [whole(b"a\r"), whole(b""), whole(b"\xff\xfe\x00"), whole(b"last")]
            );
        }
        assert_eq!(lines(b"", 8), []);
        assert_eq!(lines(b"\n", 8), [whole(b"")]);
        assert_eq!(lines(b"a\n", 1), [whole(b"a")]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_counted_and_not_kept_and_the_next_one_is_read() {
        let longest = LONGEST as usize;
        let mut bytes = vec![b'x'; longest];
        bytes.extend_from_slice(b"\nok\n");
        assert_eq!(lines(&bytes, 64 << 10)[1], whole(b"ok"));
        assert!(matches!(&lines(&bytes, 64 << 10)[0], Line::Whole(line) if line.len() == longest));
        bytes.insert(0, b'x');
        assert_eq!(lines(&bytes, 64 << 10), [Line::TooLong { bytes: LONGEST + 1 }, whole(b"ok")]);
    }

    #[tokio::test]
    async fn a_repeated_body_comes_as_often_as_it_was_asked_for() {
        let mut input = Input::Repeat { body: pattern(30), left: 2 };
        for left in [1, 0] {
            assert!(matches!(input.next().await, Some(Ok(Line::Whole(body))) if body.ends_with(b"zabcd")));
            assert_eq!(input.left(), Some(left));
        }
        assert!(input.next().await.is_none());
        assert!(input.next().await.is_none());
    }
}
