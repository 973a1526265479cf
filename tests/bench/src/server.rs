//! The neutral server: a thread for each connection that answers whole frames and parses nothing it need not.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
};

use clap::Args as ClapArgs;
use memchr::memmem::Finder;

use crate::{
    Outcome,
    wire::{decimal, read},
};

/// What the server does with a frame.
#[derive(Clone, Copy, Debug, ClapArgs)]
pub(crate) struct ServerOptions {
    /// Sends the body back with each answer; without it answers have none.
    #[arg(long)]
    echo: bool,
    /// Takes in requests of the code that stands for it without answering them.
    #[arg(long)]
    hold: bool,
    /// Listens on so many loopback addresses, from 127.0.0.1 on, under the same port.
    #[arg(long, default_value_t = 1)]
    addresses: u32,
}

/// Serves on a free port of the loopback interface, prints the port, and ends with its standard input: so it ends
/// with its starter, however that ends.
pub(crate) fn serve(options: &ServerOptions) -> Outcome<()> {
    let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = first.local_addr()?.port();
    let address = |place| Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + place);
    let others = (1..options.addresses).map(|place| TcpListener::bind((address(place), port)));
    let others = others.collect::<io::Result<Vec<_>>>()?;
    println!("{port}");
    io::stdout().flush()?;
    let options = *options;
    for listener in [first].into_iter().chain(others) {
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer_all(stream, options));
            }
        });
    }
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// Reads what is there, answers each whole frame of it, and writes the answers at once.
fn answer_all(mut stream: TcpStream, options: ServerOptions) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let answering = Answering::new(options);
    let mut input = vec![0; CHUNK];
    let mut filled = 0;
    let mut output = Vec::with_capacity(CHUNK);
    loop {
        let read = stream.read(&mut input[filled..])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let mut taken = 0;
        while let Some(len) = read::frame_len(&input[taken..filled]) {
            answering.answer(&input[taken..taken + len], &mut output);
            taken += len;
        }
        input.copy_within(taken..filled, 0);
        filled -= taken;
        if filled == input.len() {
            input.resize(2 * filled, 0);
        }
        stream.write_all(&output)?;
        output.clear();
    }
}

struct Answering {
    options: ServerOptions,
    opaque: Finder<'static>,
    held: Finder<'static>,
}

impl Answering {
    fn new(options: ServerOptions) -> Self {
        Self { options, opaque: Finder::new(read::OPAQUE), held: Finder::new(HELD_CODE) }
    }

    /// Appends the answer to `frame`, if it is to have one: success under the same opaque.
    fn answer(&self, frame: &[u8], output: &mut Vec<u8>) {
        let Some(header_len) = read::header_len(frame) else { return };
        let Some(header) = frame.get(8..8 + header_len) else { return };
        let opaque = match frame[4] {
            // Code, language and version come before it.
            BINARY => {
                header.get(5..).and_then(<[u8]>::first_chunk).map(|word| i32::from_be_bytes(*word).into())
            }
            _ => self
                .opaque
                .find(header)
                .and_then(|at| decimal::read(&header[at + read::OPAQUE.len()..]))
                .map(|(opaque, _)| opaque),
        };
        let Some(opaque) = opaque else { return };
        if self.options.hold && self.held.find(&header[..header_len.min(CODE_WITHIN)]).is_some() {
            return;
        }
        let start = output.len();
        output.extend_from_slice(&[0; 8]);
        output.extend_from_slice(BEFORE_OPAQUE);
        decimal::write(output, opaque);
        output.extend_from_slice(BEHIND_OPAQUE);
        let header_len = (output.len() - start - 8) as u32;
        if self.options.echo {
            output.extend_from_slice(&frame[8 + header.len()..]);
        }
        let frame_len = (output.len() - start - 4) as u32;
        output[start..start + 4].copy_from_slice(&frame_len.to_be_bytes());
        output[start + 4..start + 8].copy_from_slice(&header_len.to_be_bytes());
    }
}

/// Bytes asked of the socket at once.
const CHUNK: usize = 1 << 20;
/// The encoding's byte of a binary header.
const BINARY: u8 = 1;
/// Members are in the order of their names, so the code is the first.
const CODE_WITHIN: usize = 16;
const HELD_CODE: &[u8] = b"\"code\":39310";
const BEFORE_OPAQUE: &[u8] = b"{\"code\":0,\"flag\":1,\"language\":\"JAVA\",\"opaque\":";
/// Brokers name the encoding, and rocketmq-transport 1.0.0 takes no answer without it.
const BEHIND_OPAQUE: &[u8] = b",\"serializeTypeCurrentRPC\":\"JSON\",\"version\":479}";

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use rocketmq_transport::{
        Code, EncodeOptions, FrameLimits, HeaderEncoding, Opaque, Request, decode_frame,
    };

    use super::*;
    use crate::wire::{HELD, SEND, SendHeader};

    fn answer_to(code: Code, encoding: HeaderEncoding, options: ServerOptions) -> Vec<u8> {
        let header = SendHeader::numbered(0);
        let request = Request { code, header: &header, body: Bytes::from_static(b"body") };
        let form = EncodeOptions { encoding, version: 479 };
        let frame = request.encode(Opaque(77), form, &FrameLimits::default()).expect("it fits");
        let mut output = Vec::new();
        Answering::new(options).answer(&frame, &mut output);
        output
    }

    #[test]
    fn each_form_is_answered_with_success_under_its_opaque() {
        for encoding in [HeaderEncoding::Json, HeaderEncoding::Binary] {
            for echo in [false, true] {
                let answer = answer_to(SEND, encoding, ServerOptions { echo, hold: true, addresses: 1 });
                let answer = decode_frame(&mut BytesMut::from(&answer[..]), &FrameLimits::default());
                let answer = answer.expect("it is sound").expect("it is whole");
                assert!(answer.is_response());
                assert_eq!((answer.code(), answer.opaque()), (Code::SUCCESS, Opaque(77)));
                assert_eq!(answer.body(), if echo { &b"body"[..] } else { b"" });
            }
        }
    }

    #[test]
    fn held_requests_have_no_answer() {
        let options = ServerOptions { echo: false, hold: true, addresses: 1 };
        assert!(answer_to(HELD, HeaderEncoding::Json, options).is_empty());
    }

    #[test]
    fn the_held_code_is_the_one_the_clients_send() {
        assert!(HELD_CODE.ends_with(HELD.0.to_string().as_bytes()));
    }
}
