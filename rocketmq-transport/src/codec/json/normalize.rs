//! Standard JSON from the dialect that brokers and name servers write.

use std::borrow::Cow;

use super::{
    cursor::{Cursor, MAX_DEPTH},
    text,
};
use crate::codec::error::JsonError;

/// Turns the JSON of brokers and name servers into standard JSON.
///
/// Their library writes a map whose keys are numbers or objects with just these in place of names, as in
/// `{0:"10.0.0.1:10911"}` or `{{"brokerName":"a","queueId":0,"topic":"T"}:5}`. Here such a key becomes a
/// string that holds its text, so that any JSON parser reads the rest; the text of an object can be parsed on
/// its own. Text that is standard already is given back as it is.
///
/// # Errors
///
/// Where the text is neither JSON nor this dialect, is not UTF-8, or nests deeper than 64 values.
///
/// # Examples
///
/// ```
/// use rocketmq_transport::normalize_json;
///
/// let addresses = normalize_json(br#"{"brokerAddrs":{0:"10.0.0.1:10911",1:"{0:"}}"#)?;
/// assert_eq!(&addresses[..], br#"{"brokerAddrs":{"0":"10.0.0.1:10911","1":"{0:"}}"#);
///
/// let offsets = normalize_json(br#"{{"queueId":0}:5}"#)?;
/// assert_eq!(&offsets[..], br#"{"{\"queueId\":0}":5}"#);
/// # Ok::<(), rocketmq_transport::JsonError>(())
/// ```
pub fn normalize_json(json: &[u8]) -> Result<Cow<'_, [u8]>, JsonError> {
    let mut standard = Vec::new();
    let mut copied = 0;
    let mut cursor = Cursor::new(json)?;
    cursor.value(MAX_DEPTH, &mut |start, end| {
        standard.extend_from_slice(&json[copied..start]);
        standard.push(b'"');
        text::append_escaped(&mut standard, text::checked(&json[start..end]));
        standard.push(b'"');
        copied = end;
    })?;
    cursor.end()?;
    if copied == 0 {
        return Ok(json.into());
    }
    standard.extend_from_slice(&json[copied..]);
    Ok(standard.into())
}
