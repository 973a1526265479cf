//! Framing, limits, and the sink that typed fields are written into.

use std::marker::PhantomData;

use bytes::BytesMut;

use crate::Command;

/// The sink that a [`Header`](crate::Header) writes its fields into.
#[derive(Debug)]
pub struct Fields<'a>(PhantomData<&'a mut ()>);

impl Fields<'_> {
    /// A text field; an empty value is left out, since the binary form cannot carry it.
    pub fn str(&mut self, name: &str, value: &str) { let _ = (name, value); unimplemented!() }
    /// An integer field in decimal.
    pub fn int(&mut self, name: &str, value: i64) { let _ = (name, value); unimplemented!() }
    /// A boolean field, `true` or `false`.
    pub fn bool(&mut self, name: &str, value: bool) { let _ = (name, value); unimplemented!() }
}

/// A field of a received header that is missing or does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {name} is {value:?}, expected {expected}")]
pub struct FieldError { /// doc
    pub name: &'static str, /// doc
    pub value: Option<String>, /// doc
    pub expected: &'static str }

/// Bytes that are not a frame of the protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError { /// doc
    #[error("stub")] Stub }

/// A command that cannot be written as a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError { /// doc
    #[error("stub")] Stub }

/// Limits of frames in both directions.
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits { /// doc
    pub max_frame_bytes: usize, /// doc
    pub max_header_bytes: usize }

/// Takes the next whole frame out of `buffer`
pub fn decode_frame(buffer: &mut BytesMut, limits: &FrameLimits) -> Result<Option<Command>, FrameError> { let _ = (buffer, limits); unimplemented!() }
