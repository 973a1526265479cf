//! Encoding and decoding against a writer and a parser made by hand for the very same headers.

use std::{hint::black_box, time::Instant};

use bytes::{Bytes, BytesMut};
use rocketmq_transport::{EncodeOptions, FrameLimits, Opaque, Request, decode_frame};

use crate::{
    Outcome,
    spread::Spread,
    wire::{
        FIRST_OPAQUE, SEND, SendHeader, decimal,
        read::{self, Head},
        write,
    },
};

/// One operation, done by the transport's codec and by hand.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) operation: &'static str,
    /// Nanoseconds by the codec.
    pub(crate) codec: Spread,
    /// Nanoseconds by hand.
    pub(crate) by_hand: Spread,
    /// The one over the other, within each round.
    pub(crate) ratio: Spread,
}

/// Compares each operation in `rounds` alternating rounds, each of many repetitions.
pub(crate) fn compare(rounds: usize) -> Outcome<Vec<Comparison>> {
    let (response, request) = (send_response(), send_request());
    Ok(vec![
        alternate("encode a send", rounds, &mut time_encode, &mut time_writer)?,
        alternate(
            "decode the response to a send",
            rounds,
            &mut || time_decode(&response, read_response),
            &mut || {
                time_parser(&response, |header| {
                    black_box(parse_response(header)?);
                    Ok(())
                })
            },
        )?,
        alternate("decode a send", rounds, &mut || time_decode(&request, |_| Ok(())), &mut || {
            time_parser(&request, |header| {
                black_box(parse_request(header)?);
                Ok(())
            })
        })?,
    ])
}

/// Prints the comparison.
pub(crate) fn print(rounds: usize) -> Outcome<()> {
    for Comparison { operation, codec, by_hand, ratio } in compare(rounds)? {
        println!(
            "{operation}: {:.0} ns, by hand {:.0} ns, ratio {:.2} ({:.2} to {:.2})",
            codec.median, by_hand.median, ratio.median, ratio.lower_quartile, ratio.upper_quartile
        );
    }
    Ok(())
}

fn alternate(
    operation: &'static str,
    rounds: usize,
    codec: &mut dyn FnMut() -> Outcome<f64>,
    by_hand: &mut dyn FnMut() -> Outcome<f64>,
) -> Outcome<Comparison> {
    // The first of each fills caches and is not counted.
    codec()?;
    by_hand()?;
    let times = (0..rounds).map(|_| Ok((codec()?, by_hand()?))).collect::<Outcome<Vec<_>>>()?;
    let spread = |value: fn(&(f64, f64)) -> f64| Spread::of(times.iter().map(value)).ok_or("no rounds");
    Ok(Comparison {
        operation,
        codec: spread(|times| times.0)?,
        by_hand: spread(|times| times.1)?,
        ratio: spread(|(codec, by_hand)| codec / by_hand)?,
    })
}

/// Nanoseconds of each of [`REPETITIONS`] calls of `operation`.
fn time(mut operation: impl FnMut(u64) -> Outcome<()>) -> Outcome<f64> {
    let started = Instant::now();
    for count in 0..REPETITIONS {
        operation(black_box(count))?;
    }
    Ok(started.elapsed().as_nanos() as f64 / REPETITIONS as f64)
}

fn time_encode() -> Outcome<f64> {
    let options = EncodeOptions { version: 479, ..EncodeOptions::default() };
    let limits = FrameLimits::default();
    time(|count| {
        let header = SendHeader::numbered(count);
        let request = Request { code: SEND, header: &header, body: Bytes::new() };
        let opaque = Opaque((u64::from(FIRST_OPAQUE) + count) as i32);
        black_box(request.encode(opaque, options, &limits)?);
        Ok(())
    })
}

fn time_writer() -> Outcome<f64> {
    time(|count| {
        let header = SendHeader::numbered(count);
        let mut frame = Vec::with_capacity(HEADER_ROOM);
        write::send(&mut frame, SEND.0, &header, FIRST_OPAQUE + count as u32, 0);
        black_box(frame);
        Ok(())
    })
}

/// Times the codec on a buffer full of `frame`s, each of which is then `read`.
fn time_decode(frame: &[u8], read: impl Fn(&rocketmq_transport::Command) -> Outcome<()>) -> Outcome<f64> {
    let limits = FrameLimits::default();
    let mut input = BytesMut::from(&*frame.repeat(REPETITIONS as usize));
    time(|_| {
        let command = decode_frame(&mut input, &limits)?.ok_or("not a whole frame")?;
        read(&command)?;
        black_box(command);
        Ok(())
    })
}

/// Times the parser on a buffer full of `frame`s, each of which is taken out of it as the raw clients do.
fn time_parser(frame: &[u8], parse: impl Fn(&[u8]) -> Outcome<()>) -> Outcome<f64> {
    let mut input = BytesMut::from(&*frame.repeat(REPETITIONS as usize));
    time(|_| {
        let len = read::frame_len(&input).ok_or("not a whole frame")?;
        let frame = input.split_to(len).freeze();
        let header_len = read::header_len(&frame).ok_or("no header")?;
        let header = frame.get(8..8 + header_len).ok_or("a header beyond its frame")?;
        parse(header)?;
        black_box(frame);
        Ok(())
    })
}

fn read_response(command: &rocketmq_transport::Command) -> Outcome<()> {
    let [message, queue, offset] = command.select(["msgId", "queueId", "queueOffset"]);
    let (queue, offset) = (queue.require::<u32>()?, offset.require::<i64>()?);
    black_box((command.code(), command.opaque(), message.value(), queue, offset));
    Ok(())
}

fn parse_response(header: &[u8]) -> Outcome<(Head, &[u8], u32, i64)> {
    let (mut message, mut queue, mut offset) = (&header[..0], None, None);
    let head = read::head(header, |name, value| match name {
        b"msgId" => message = value,
        b"queueId" => queue = decimal::read(value),
        b"queueOffset" => offset = decimal::read(value),
        _ => {}
    })?;
    let (queue, _) = queue.ok_or("no queue")?;
    let (offset, _) = offset.ok_or("no offset")?;
    Ok((head, message, u32::try_from(queue)?, offset))
}

fn parse_request(header: &[u8]) -> Outcome<(Head, usize)> {
    let mut fields = 0;
    let head = read::head(header, |_, _| fields += 1)?;
    Ok((head, fields))
}

fn send_request() -> Vec<u8> {
    let mut frame = Vec::new();
    write::send(&mut frame, SEND.0, &SendHeader::numbered(7), FIRST_OPAQUE, 0);
    frame
}

/// As a broker of version 5 answers a send that it has stored.
fn send_response() -> Vec<u8> {
    let header = concat!(
        r#"{"code":0,"extFields":{"queueId":"3","TRACE_ON":"true","MSG_REGION":"DefaultRegion","#,
        r#""msgId":"7F00000100002A9F000000000001E240","queueOffset":"123456"},"flag":1,"language":"JAVA","#,
        r#""opaque":1000000007,"serializeTypeCurrentRPC":"JSON","version":479}"#,
    );
    let mut frame = (4 + header.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&(header.len() as u32).to_be_bytes());
    frame.extend_from_slice(header.as_bytes());
    frame
}

/// Operations timed together, so that reading the clock is nothing beside them.
const REPETITIONS: u64 = 1_024;
/// More than the header of a send takes.
const HEADER_ROOM: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_read_the_same_of_a_response() {
        let frame = send_response();
        let command = decode_frame(&mut BytesMut::from(&*frame), &FrameLimits::default());
        let command = command.expect("it is sound").expect("it is whole");
        let (head, message, queue, offset) = parse_response(&frame[8..]).expect("it is sound");
        assert_eq!(head.opaque as i32, command.opaque().0);
        assert_eq!(command.field("msgId").expect("it is there").as_bytes(), message);
        assert_eq!(command.require::<u32>("queueId"), Ok(queue));
        assert_eq!(command.require::<i64>("queueOffset"), Ok(offset));
    }
}
