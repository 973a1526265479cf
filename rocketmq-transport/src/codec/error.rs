//! What can be wrong with received bytes.

use std::fmt::{self, Write as _};

/// Bytes that are not a frame of the protocol. Cheap to clone: none of it is on the heap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is longer than the limit; so are most bytes of another protocol, read as a frame.
    #[error("frame of {size} bytes is over the limit of {limit}; it begins with {first}")]
    TooLong {
        /// The frame's length, its four length bytes included.
        size: u64,
        /// The limit that it exceeds.
        limit: usize,
        /// The bytes it begins with.
        first: FirstBytes,
    },
    /// The frame is too short for the length of its own header.
    #[error("frame announces {announced} bytes after its length word, at least 4 are needed")]
    TooShort {
        /// The bytes that are said to follow the length word.
        announced: u32,
    },
    /// The byte that says how the header is written has no meaning.
    #[error(
        "header encoding {byte} is unknown, 0 (JSON) or 1 (binary) expected; the frame begins with {first}"
    )]
    UnknownEncoding {
        /// The byte.
        byte: u8,
        /// The bytes the frame begins with.
        first: FirstBytes,
    },
    /// The header is longer than the frame that holds it.
    #[error("header of {announced} bytes does not fit the {room} bytes of its frame")]
    HeaderBeyondFrame {
        /// The header's length.
        announced: usize,
        /// The bytes of the frame that are left for it.
        room: usize,
    },
    /// The header is too short for any.
    #[error("header of {announced} bytes, at least {least} are needed; the frame begins with {first}")]
    HeaderTooShort {
        /// The header's length.
        announced: usize,
        /// The shortest header in its encoding.
        least: usize,
        /// The bytes the frame begins with.
        first: FirstBytes,
    },
    /// The header is longer than the limit.
    #[error("header of {size} bytes is over the limit of {limit}")]
    HeaderTooLong {
        /// The header's length.
        size: usize,
        /// The limit that it exceeds.
        limit: usize,
    },
    /// A JSON header is not the JSON it should be.
    #[error("JSON header: {0}")]
    Json(#[from] JsonError),
    /// A response says not what it answers.
    #[error("response without an opaque")]
    MissingOpaque,
    /// A part of a binary header does not fit into what is left of it.
    #[error("binary header: {part} announces {announced} bytes, {room} are left")]
    Overrun {
        /// The part.
        part: &'static str,
        /// Its length as announced, or as its type has it; a negative one never fits.
        announced: i64,
        /// The bytes that are left.
        room: usize,
    },
    /// A text of a binary header is not UTF-8.
    #[error("binary header: {part} is not UTF-8")]
    NotUtf8 {
        /// The part.
        part: &'static str,
    },
    /// A binary header ends before the length it was announced with.
    #[error("binary header: {left} bytes are left over behind its last field")]
    LeftOver {
        /// The bytes behind its end.
        left: usize,
    },
}

/// JSON text that is not what it should be, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    position: usize,
    expected: &'static str,
    found: Option<u8>,
}

impl JsonError {
    pub(super) const fn new(position: usize, expected: &'static str, found: Option<u8>) -> Self {
        Self { position, expected, found }
    }

    /// The byte, counted from 0, at which the text is wrong.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// What should have been there.
    #[must_use]
    pub const fn expected(&self) -> &'static str {
        self.expected
    }

    /// The byte that was there; `None` at the end of the text.
    #[must_use]
    pub const fn found(&self) -> Option<u8> {
        self.found
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}, found ", self.expected, self.position)?;
        match self.found {
            Some(byte @ b'!'..=b'~') => write!(f, "`{}`", char::from(byte)),
            Some(byte) => write!(f, "byte {byte:#04x}"),
            None => f.write_str("the end"),
        }
    }
}

impl std::error::Error for JsonError {}

/// The first bytes of something that is not a frame: at most 16, shown in hex and, where they are known to
/// begin another protocol, with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstBytes {
    bytes: [u8; SHOWN],
    len: u8,
}

impl FirstBytes {
    pub(super) fn of(buffer: &[u8]) -> Self {
        let mut bytes = [0; SHOWN];
        let shown = &buffer[..buffer.len().min(SHOWN)];
        bytes[..shown.len()].copy_from_slice(shown);
        Self { bytes, len: shown.len() as u8 }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// The protocol they look like, where it is a well-known one: a wrong port, a proxy or TLS where none was
    /// expected.
    #[must_use]
    pub fn looks_like(&self) -> Option<&'static str> {
        let bytes = self.as_slice();
        if let [0, 0, _, 4, 0, 0, 0, 0, ..] = bytes {
            return Some("the settings of an HTTP/2 server, such as gRPC's");
        }
        PROTOCOLS.iter().find(|(first, _)| bytes.starts_with(first)).map(|&(_, name)| name)
    }
}

impl fmt::Display for FirstBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.as_slice().iter().enumerate() {
            if index > 0 {
                f.write_char(' ')?;
            }
            write!(f, "{byte:02x}")?;
        }
        match self.looks_like() {
            Some(protocol) => write!(f, " (looks like {protocol})"),
            None => Ok(()),
        }
    }
}

/// How protocols that are met on wrong ports begin.
const PROTOCOLS: [(&[u8], &str); 12] = [
    (b"HTTP/1", "an HTTP/1 response"),
    (b"HTTP", "an HTTP response"),
    (b"PRI ", "the HTTP/2 preface"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"OPTI", "an HTTP request"),
    (b"\x15\x03", "a TLS alert"),
    (b"\x16\x03", "a TLS handshake"),
    (b"\x03\x00\x00", "an RDP connection"),
    (b"SSH-", "SSH"),
];
/// How many bytes are shown.
const SHOWN: usize = 16;
