//! One request and its answer over a fresh connection, for what the harness itself has to ask.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Map, json};

use super::error::HarnessError;

/// Asks `peer` and returns the body of its answer; any status but success is an error.
pub(crate) fn ask(peer: SocketAddr, request: i32, fields: &[(&str, &str)]) -> Result<Vec<u8>, HarnessError> {
    let fields: Map<_, _> = fields.iter().map(|&(name, value)| (name.to_owned(), value.into())).collect();
    let header = json!({
        "code": request, "flag": 0, "language": "JAVA", "opaque": 1, "version": 0, "extFields": fields,
    });
    let frame = exchange(peer, header.to_string().as_bytes())
        .map_err(HarnessError::io(|| format!("ask {peer} for {request}")))?;
    let (header, body) = split(&frame).map_err(HarnessError::io(|| format!("read the answer of {peer}")))?;
    let header: Header = serde_json::from_slice(header).map_err(|source| HarnessError::Json {
        what: "the header of an answer",
        text: String::from_utf8_lossy(header).into_owned(),
        source,
    })?;
    if header.code != SUCCESS {
        let remark = header.remark.unwrap_or_default();
        return Err(HarnessError::Refused { peer: peer.to_string(), request, code: header.code, remark });
    }
    Ok(body.to_vec())
}

#[derive(Deserialize)]
struct Header {
    code: i32,
    remark: Option<String>,
}

fn exchange(peer: SocketAddr, header: &[u8]) -> io::Result<Vec<u8>> {
    let mut socket = TcpStream::connect_timeout(&peer, LIMIT)?;
    socket.set_read_timeout(Some(LIMIT))?;
    socket.set_write_timeout(Some(LIMIT))?;
    let header_length = u32::try_from(header.len()).map_err(io::Error::other)?;
    let mut frame = (header_length + 4).to_be_bytes().to_vec();
    frame.extend(header_length.to_be_bytes());
    frame.extend(header);
    socket.write_all(&frame)?;
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let mut answer = Vec::new();
    socket.take(u64::from(u32::from_be_bytes(length))).read_to_end(&mut answer)?;
    Ok(answer)
}

/// A frame without its length, as header and body. The top byte of the header's length says how it is
/// encoded: 0, as the question was.
fn split(frame: &[u8]) -> io::Result<(&[u8], &[u8])> {
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (length, rest) = frame.split_first_chunk().ok_or_else(cut)?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(cut)
}

const SUCCESS: i32 = 0;
const LIMIT: Duration = Duration::from_secs(10);
