//! Framing: from bytes to commands and back, within limits.

mod binary;
mod encode;
mod error;
mod field;
mod json;
mod output;
mod received;
mod word;

#[cfg(test)]
mod tests;

use bytes::{Buf, Bytes, BytesMut};

pub(crate) use self::encode::{OpenHead, Outgoing};
pub use self::{
    encode::{EncodeError, EncodeOptions},
    error::{FirstBytes, FrameError, JsonError},
    field::Field,
    json::normalize_json,
    received::Command,
};
use crate::command::HeaderEncoding;

/// Limits of frames in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// The longest frame in bytes, its four length bytes included. Default 16 MiB, the brokers' own limit.
    pub max_frame_bytes: usize,
    /// The longest header in bytes. Default 1 MiB.
    pub max_header_bytes: usize,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self { max_frame_bytes: 16 << 20, max_header_bytes: 1 << 20 }
    }
}

/// Takes the next whole frame out of `buffer`, or nothing while it is not there to its last byte.
///
/// The announced lengths are checked as soon as they are there, and nothing is reserved because of them: the
/// buffer grows by what has really arrived. The header is checked to its end, so that what the command says
/// of it later cannot fail. The body is not copied; a frame of at most 4 KiB is copied whole, so that a small
/// command does not keep a large read buffer alive.
///
/// Two things are accepted as they are: half of a surrogate pair in a JSON text reads as U+FFFD, and a request
/// without an opaque has opaque 0.
///
/// # Errors
///
/// What is wrong with the bytes. They are left in `buffer`, which is of no more use then: the stream has lost
/// its frames.
///
/// # Examples
///
/// ```
/// use bytes::BytesMut;
/// use rocketmq_transport::{Code, FrameError, FrameLimits, Opaque, decode_frame};
///
/// let frame = *b"\0\0\0\x23\0\0\0\x1f{\"code\":17,\"flag\":1,\"opaque\":7}";
/// let limits = FrameLimits::default();
/// let mut buffer = BytesMut::from(&frame[..20]);
/// assert!(decode_frame(&mut buffer, &limits)?.is_none());
///
/// buffer.extend_from_slice(&frame[20..]);
/// let command = decode_frame(&mut buffer, &limits)?.expect("it is whole now");
/// assert_eq!((command.code(), command.opaque()), (Code(17), Opaque(7)));
///
/// let mut web_page = BytesMut::from("HTTP/1.1 400 Bad Request");
/// let error = decode_frame(&mut web_page, &limits).expect_err("no frame is as long");
/// assert!(error.to_string().contains("HTTP/1"));
/// # Ok::<(), FrameError>(())
/// ```
pub fn decode_frame(buffer: &mut BytesMut, limits: &FrameLimits) -> Result<Option<Command>, FrameError> {
    decode(buffer, limits, copy)
}

/// As [`decode_frame`], with small frames copied together into `shared`, for whoever decodes many: one of them keeps at
/// most [`SHARED`] bytes alive.
pub(crate) fn decode_frame_sharing(
    buffer: &mut BytesMut,
    limits: &FrameLimits,
    shared: &mut BytesMut,
) -> Result<Option<Command>, FrameError> {
    decode(
        buffer,
        limits,
        |frame| if frame.len() > MAX_SHARED { copy(frame) } else { copy_to(shared, frame) },
    )
}

fn decode(
    buffer: &mut BytesMut,
    limits: &FrameLimits,
    copy: impl FnOnce(&[u8]) -> Bytes,
) -> Result<Option<Command>, FrameError> {
    let Some(layout) = Layout::read(buffer, limits)? else { return Ok(None) };
    let Some(header) = buffer.get(PREFIX_LEN..layout.body_at) else { return Ok(None) };
    if buffer.len() < layout.frame_len {
        return Ok(None);
    }
    let head = match layout.encoding {
        HeaderEncoding::Json => json::read(header)?,
        HeaderEncoding::Binary => binary::read(header)?,
    };
    let frame = take(buffer, layout.frame_len, copy);
    Ok(Some(Command::new(frame, head, layout.body_at, layout.encoding)))
}

/// Where the parts of a frame are, and how its header is written.
struct Layout {
    frame_len: usize,
    body_at: usize,
    encoding: HeaderEncoding,
}

impl Layout {
    /// Reads and checks the two length words; `None` while they are not there.
    fn read(buffer: &[u8], limits: &FrameLimits) -> Result<Option<Self>, FrameError> {
        let Some(announced) = buffer.first_chunk().copied().map(u32::from_be_bytes) else { return Ok(None) };
        let size = u64::from(announced) + LENGTH_LEN as u64;
        let frame_len = match usize::try_from(size) {
            Ok(len) if len <= limits.max_frame_bytes => len,
            _ => {
                return Err(FrameError::TooLong {
                    size,
                    limit: limits.max_frame_bytes,
                    first: FirstBytes::of(buffer),
                });
            }
        };
        if frame_len < PREFIX_LEN {
            return Err(FrameError::TooShort { announced });
        }
        let Some(&[byte, high, middle, low]) = buffer.get(LENGTH_LEN..).and_then(<[u8]>::first_chunk) else {
            return Ok(None);
        };
        let (encoding, least) = match byte {
            JSON => (HeaderEncoding::Json, json::MIN_LEN),
            BINARY => (HeaderEncoding::Binary, binary::FIXED_LEN),
            _ => return Err(FrameError::UnknownEncoding { byte, first: FirstBytes::of(buffer) }),
        };
        let header_len = u32::from_be_bytes([0, high, middle, low]) as usize;
        let room = frame_len - PREFIX_LEN;
        if header_len > room {
            return Err(FrameError::HeaderBeyondFrame { announced: header_len, room });
        }
        if header_len < least {
            return Err(FrameError::HeaderTooShort {
                announced: header_len,
                least,
                first: FirstBytes::of(buffer),
            });
        }
        if header_len > limits.max_header_bytes {
            return Err(FrameError::HeaderTooLong { size: header_len, limit: limits.max_header_bytes });
        }
        Ok(Some(Self { frame_len, body_at: PREFIX_LEN + header_len, encoding }))
    }
}

fn take(buffer: &mut BytesMut, len: usize, copy: impl FnOnce(&[u8]) -> Bytes) -> Bytes {
    if len > MAX_COPIED {
        return buffer.split_to(len).freeze();
    }
    let frame = copy(&buffer[..len]);
    buffer.advance(len);
    frame
}

fn copy(frame: &[u8]) -> Bytes {
    Bytes::copy_from_slice(frame)
}

/// Copies to the memory that is left of `shared`, or to new memory.
fn copy_to(shared: &mut BytesMut, frame: &[u8]) -> Bytes {
    if shared.capacity() < frame.len() {
        *shared = BytesMut::with_capacity(SHARED);
    }
    shared.extend_from_slice(frame);
    shared.split().freeze()
}

/// Whether the bytes are ASCII, as most headers are: it takes less to see that than that they are UTF-8.
fn is_ascii(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, byte| all | byte).is_ascii()
}

/// Bytes of the word that counts the rest of the frame.
const LENGTH_LEN: usize = 4;
/// Bytes before the header: the length word, the encoding's byte, and the header's length in 24 bits.
const PREFIX_LEN: usize = 8;
/// The longest header that 24 bits can announce.
const MAX_HEADER_LEN: usize = (1 << 24) - 1;
/// The encoding's byte for a JSON header (`SerializeType.JSON`).
const JSON: u8 = 0;
/// The encoding's byte for a binary header (`SerializeType.ROCKETMQ`).
const BINARY: u8 = 1;
/// Frames up to this length are copied out of the read buffer, so that they do not keep it alive.
const MAX_COPIED: usize = 4 << 10;
/// Frames up to this length are copied together, into so much memory at once.
const MAX_SHARED: usize = 256;
const SHARED: usize = 2 << 10;
