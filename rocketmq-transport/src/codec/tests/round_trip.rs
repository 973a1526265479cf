//! Whatever we write reads as it was written.

use std::borrow::Cow;

use bytes::Bytes;
use proptest::{array::uniform5, collection::vec, option, prelude::*, sample::select};

use super::*;
use crate::command::{Code, Opaque, Request, Response};

/// Any text, with the characters that matter to an encoding more often than by chance.
fn text() -> impl Strategy<Value = String> {
    let special =
        select("\0\u{1}\u{2}\u{1f}\"\\/\n\r\t\u{7f}\u{80}\u{2028}\u{ffff}🚀標".chars().collect::<Vec<_>>());
    vec(prop_oneof![any::<char>(), special, prop::char::range(' ', '~')], 0..40)
        .prop_map(|characters| characters.into_iter().collect())
}

fn name() -> impl Strategy<Value = String> {
    text().prop_filter("a name has at least one byte", |name| !name.is_empty())
}

/// Names that are often there, and look alike to one who compares only their lengths, starts or ends.
const NAMES: [&str; 8] = ["a", "b", "queueId", "queueOffset", "é", "\"", "\\n", "\n"];

fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

fn integer() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), Just(i32::MIN), Just(i32::MAX), Just(0), Just(-1)]
}

proptest! {
    #[test]
    fn a_response_reads_as_it_was_written(
        pairs in vec((name(), text()), 0..30),
        remark in option::of(text()),
        (code, opaque, version) in (integer(), integer(), any::<i16>()),
        body in vec(any::<u8>(), 0..100),
        binary in any::<bool>(),
    ) {
        let encoding = if binary { HeaderEncoding::Binary } else { HeaderEncoding::Json };
        let response = Response {
            code: Code(code),
            remark: remark.clone().map(Into::into),
            header: Box::new(Pairs(pairs.clone())),
            body: Bytes::from(body.clone()),
        };
        let options = EncodeOptions { encoding, version };
        let command = decode(&response.encode(Opaque(opaque), options, &FrameLimits::default())?)?;

        prop_assert_eq!((command.code(), command.opaque(), command.flag()), (Code(code), Opaque(opaque), 1));
        prop_assert_eq!(command.version(), i32::from(version));
        prop_assert_eq!(owned(command.language()), Some("RUST".to_owned()));
        prop_assert_eq!(owned(command.remark()), remark.filter(|remark| !remark.is_empty()));
        prop_assert_eq!(command.body(), &body[..]);
        let sent = pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>();
        prop_assert_eq!(&fields(&command), &sent);
        for (name, _) in &sent {
            let last = sent.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.clone());
            prop_assert_eq!(owned(command.field(name)), last);
        }
    }

    #[test]
    fn selected_fields_are_those_that_are_looked_up_one_by_one(
        pairs in vec((prop_oneof![select(&NAMES[..]).prop_map(str::to_owned), name()], text()), 0..30),
        names in uniform5(select(&NAMES[..])),
        binary in any::<bool>(),
    ) {
        let encoding = if binary { HeaderEncoding::Binary } else { HeaderEncoding::Json };
        let request = Request { code: Code(10), header: &Pairs(pairs), body: Bytes::new() };
        let options = EncodeOptions { encoding, version: 0 };
        let command = decode(&request.encode(Opaque(1), options, &FrameLimits::default())?)?;
        for (field, name) in command.select(names).into_iter().zip(names) {
            prop_assert_eq!(field.name(), name);
            prop_assert_eq!(field.parse::<u32>(), command.parse(name));
            prop_assert_eq!(field.require::<String>(), command.require(name));
            prop_assert_eq!(field.into_value(), command.field(name));
        }
    }

    #[test]
    fn the_bound_is_never_too_low(pairs in vec((name(), text()), 0..20), remark in option::of(text())) {
        let header = Pairs(pairs);
        for encoding in ENCODINGS {
            let outgoing = Outgoing {
                code: Code(10),
                opaque: Opaque(i32::MIN),
                flag: i32::MIN,
                version: i16::MIN,
                remark: remark.as_deref(),
                header: &header,
                signature: &[],
                body_len: 0,
                encoding,
            };
            prop_assert!(outgoing.try_head(&mut vec![0; outgoing.head_bound()])?.is_some());
        }
    }
}
