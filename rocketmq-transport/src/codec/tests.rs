mod frames;
mod hostile;
mod outgoing;
mod round_trip;

use bytes::BytesMut;

use super::*;
use crate::command::{Fields, Header};

/// Fields as they come.
#[derive(Debug, Default)]
struct Pairs(Vec<(String, String)>);

impl Pairs {
    fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

impl Header for Pairs {
    fn write(&self, fields: &mut Fields<'_>) {
        for (name, value) in &self.0 {
            fields.str(name, value);
        }
    }
}

/// A frame with any header, exact in its lengths.
pub(super) fn frame(encoding: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
    let mut frame = ((4 + header.len() + body.len()) as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&(u32::from(encoding) << 24 | header.len() as u32).to_be_bytes());
    frame.extend_from_slice(header);
    frame.extend_from_slice(body);
    frame
}

/// The command of bytes that are exactly one frame.
pub(super) fn decode(frame: &[u8]) -> Result<Command, FrameError> {
    let mut buffer = BytesMut::from(frame);
    let command = decode_frame(&mut buffer, &FrameLimits::default())?.expect("the frame is whole");
    assert!(buffer.is_empty(), "the frame was not taken whole");
    Ok(command)
}

/// The head of a frame.
fn head_of(outgoing: &Outgoing<'_>, limits: &FrameLimits) -> Result<Vec<u8>, EncodeError> {
    let mut head = Vec::new();
    outgoing.append_head(&mut head, limits)?;
    Ok(head)
}

fn fields(command: &Command) -> Vec<(String, String)> {
    command.fields().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

const ENCODINGS: [HeaderEncoding; 2] = [HeaderEncoding::Json, HeaderEncoding::Binary];
