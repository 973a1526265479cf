//! The text form of faults.

use std::{borrow::Cow, str::FromStr, time::Duration};

use super::{ConnectionFault, Cut, Direction, Fault, RequestFault, Target, WrongOpaque};
use crate::Code;

/// A text that is no fault: what it says, and what is wrong with that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// It ends without saying what is to happen.
    #[error("the fault is missing")]
    Missing,
    /// It names no fault that there is.
    #[error(
        "{0:?} is no fault: expected delay, never, ignore, twice, opaque, answer, garbage, connect, stop-reading or cut"
    )]
    Unknown(String),
    /// Something follows the fault, which comes last.
    #[error("{0:?} follows the fault, which comes last")]
    Trailing(String),
    /// A value is not what it has to be.
    #[error("{name} is {value:?}, expected {expected}")]
    Value {
        /// What it is the value of.
        name: &'static str,
        /// The value.
        value: String,
        /// What it has to be.
        expected: &'static str,
    },
    /// A value is missing.
    #[error("{name} has no value, expected {expected}")]
    NoValue {
        /// What it should be the value of.
        name: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// A fault has a value that has none.
    #[error("{name} takes no value, found {value:?}")]
    NeedlessValue {
        /// The fault.
        name: &'static str,
        /// The value.
        value: String,
    },
    /// `code`, `skip` or `times` is said twice.
    #[error("{0} is given twice")]
    Twice(&'static str),
    /// `code`, `skip` or `times` says nothing beside this fault.
    #[error("{selector} does not go with {fault}")]
    Needless {
        /// The one that says nothing.
        selector: &'static str,
        /// The fault.
        fault: &'static str,
    },
}

/// Reads the [text form](super#).
impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut selectors = Selectors::default();
        let mut rest = text;
        loop {
            let (word, after) = match rest.split_once(',') {
                Some((word, after)) => (word, Some(after)),
                None => (rest, None),
            };
            if !selectors.take(word)? {
                return selectors.apply(target(word, rest)?);
            }
            rest = after.ok_or(FaultError::Missing)?;
        }
    }
}

/// What a fault is about.
#[derive(Default)]
struct Selectors {
    code: Option<i32>,
    skip: Option<u64>,
    times: Option<u64>,
}

impl Selectors {
    /// Takes in `word` if it is one of them.
    fn take(&mut self, word: &str) -> Result<bool, FaultError> {
        fn once<T: FromStr>(
            place: &mut Option<T>,
            name: &'static str,
            value: &str,
            expected: &'static str,
        ) -> Result<bool, FaultError> {
            match place.replace(parse(name, value, expected)?) {
                None => Ok(true),
                Some(_) => Err(FaultError::Twice(name)),
            }
        }
        match word.split_once('=') {
            Some(("code", value)) => once(&mut self.code, "code", value, "the number of an operation"),
            Some(("skip", value)) => once(&mut self.skip, "skip", value, NUMBER),
            Some(("times", value)) => once(&mut self.times, "times", value, NUMBER),
            _ => Ok(false),
        }
    }

    fn apply(self, target: Target) -> Result<Fault, FaultError> {
        let needless = |selector, fault| Err(FaultError::Needless { selector, fault });
        let target = match target {
            Target::Request(_, fault) => Target::Request(self.code.map(Code), fault),
            Target::Connection(_) if self.code.is_some() => {
                return needless("code", "a fault of connections");
            }
            Target::Connection(ConnectionFault::Refuse) if self.skip.is_some() => {
                return needless("skip", "connect=refuse");
            }
            Target::Connection(ConnectionFault::Refuse) if self.times.is_some() => {
                return needless("times", "connect=refuse");
            }
            Target::Connection(fault) => Target::Connection(fault),
        };
        Ok(Fault { target, skip: self.skip.unwrap_or(0), times: self.times.unwrap_or(u64::MAX) })
    }
}

/// The fault itself: `word`, at the start of `rest`, to whose end a remark runs.
fn target(word: &str, rest: &str) -> Result<Target, FaultError> {
    if let Some(answer) = rest.strip_prefix("answer=") {
        return Ok(Target::Request(None, self::answer(answer)?));
    }
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let target = match (request(name, value)?, name) {
        (Some(fault), _) => Target::Request(None, fault),
        (None, "") => return Err(FaultError::Missing),
        (None, name) => Target::Connection(connection(name, value)?),
    };
    match &rest[word.len()..] {
        "" => Ok(target),
        trailing => Err(FaultError::Trailing(trailing[1..].to_owned())),
    }
}

fn request(name: &str, value: Option<&str>) -> Result<Option<RequestFault>, FaultError> {
    let plain = |name, fault| match value {
        None => Ok(fault),
        Some(value) => Err(FaultError::NeedlessValue { name, value: value.to_owned() }),
    };
    Ok(Some(match name {
        "delay" => RequestFault::Delay(millis("delay", value)?),
        "never" => plain("never", RequestFault::Never)?,
        "ignore" => plain("ignore", RequestFault::Ignore)?,
        "twice" => plain("twice", RequestFault::Twice)?,
        "opaque" => RequestFault::Opaque(match value {
            Some("unknown") => WrongOpaque::Unknown,
            Some("foreign") => WrongOpaque::Foreign,
            value => return Err(wrong("opaque", value, "unknown or foreign")),
        }),
        "answer" => return Err(wrong("answer", None, ANSWER)),
        "garbage" => {
            let bytes = value.map_or(Ok(GARBAGE_BYTES), |value| parse("garbage", value, GARBAGE));
            let bytes = bytes?;
            if !(1..=MAX_GARBAGE_BYTES).contains(&bytes) {
                return Err(wrong("garbage", value, GARBAGE));
            }
            RequestFault::Garbage { bytes }
        }
        _ => return Ok(None),
    }))
}

fn connection(name: &str, value: Option<&str>) -> Result<ConnectionFault, FaultError> {
    match (name, value) {
        ("connect", Some("refuse")) => Ok(ConnectionFault::Refuse),
        ("connect", value) => match value.and_then(|value| value.strip_prefix("slow:")) {
            Some(delay) => Ok(ConnectionFault::Slow(millis("connect=slow", Some(delay))?)),
            None => Err(wrong("connect", value, "refuse or slow:MS")),
        },
        ("stop-reading", None) => Ok(ConnectionFault::StopReading { after: 0 }),
        ("stop-reading", Some(value)) => {
            Ok(ConnectionFault::StopReading { after: parse("stop-reading", value, BYTES)? })
        }
        ("cut", Some(value)) => cut(value),
        ("cut", None) => Err(wrong("cut", None, CUT)),
        (name, _) => Err(FaultError::Unknown(name.to_owned())),
    }
}

fn cut(value: &str) -> Result<ConnectionFault, FaultError> {
    let mut parts = value.split(':');
    let (Some(direction), Some(after), Some(how), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong("cut", Some(value), CUT));
    };
    let direction = match direction {
        "in" => Direction::In,
        "out" => Direction::Out,
        other => return Err(wrong("the direction of cut", Some(other), "in or out")),
    };
    let how = match how {
        "fin" => Cut::Fin,
        "rst" => Cut::Rst,
        "half" => Cut::Half,
        other => return Err(wrong("the end of cut", Some(other), "fin, rst or half")),
    };
    Ok(ConnectionFault::Cut { direction, after: parse("the place of cut", after, BYTES)?, how })
}

fn answer(value: &str) -> Result<RequestFault, FaultError> {
    let (code, remark) = value.split_once(':').unwrap_or((value, ""));
    let code = Code(parse("answer", code, ANSWER)?);
    Ok(RequestFault::Answer { code, remark: Cow::Owned(remark.to_owned()) })
}

fn millis(name: &'static str, value: Option<&str>) -> Result<Duration, FaultError> {
    let value = value.ok_or(FaultError::NoValue { name, expected: MILLIS })?;
    parse(name, value, MILLIS).map(Duration::from_millis)
}

fn parse<T: FromStr>(name: &'static str, value: &str, expected: &'static str) -> Result<T, FaultError> {
    value.parse().map_err(|_| wrong(name, Some(value), expected))
}

fn wrong(name: &'static str, value: Option<&str>, expected: &'static str) -> FaultError {
    match value {
        Some(value) => FaultError::Value { name, value: value.to_owned(), expected },
        None => FaultError::NoValue { name, expected },
    }
}

const NUMBER: &str = "a number from 0";
const MILLIS: &str = "a number of milliseconds";
const BYTES: &str = "a number of bytes";
const ANSWER: &str = "CODE or CODE:REMARK with the number of a status";
const CUT: &str = "in:BYTES:HOW or out:BYTES:HOW";
const GARBAGE: &str = "a number of bytes from 1 to 1048576";
/// Enough for the length of a frame, its header's, and more.
const GARBAGE_BYTES: usize = 64;
const MAX_GARBAGE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_form_is_read_as_what_it_says() {
        use ConnectionFault::{Cut as CutAt, Refuse, Slow, StopReading};
        let busy = |remark: &'static str| RequestFault::Answer { code: Code(2), remark: remark.into() };
        let cut = |direction, after, how| Fault::on_connection(CutAt { direction, after, how });
        let ms = Duration::from_millis;
        for (text, fault) in [
            ("code=310,times=2,answer=2:busy", Fault::on(Code(310), busy("busy")).times(2)),
            (
                "times=2,code=310,answer=2:[PC], try later",
                Fault::on(Code(310), busy("[PC], try later")).times(2),
            ),
            ("answer=2", Fault::on_any(busy(""))),
            ("code=-1,skip=5,never", Fault::on(Code(-1), RequestFault::Never).skip(5)),
            ("delay=1500", Fault::on_any(RequestFault::Delay(ms(1500)))),
            ("ignore", Fault::on_any(RequestFault::Ignore)),
            ("twice", Fault::on_any(RequestFault::Twice)),
            ("opaque=unknown", Fault::on_any(RequestFault::Opaque(WrongOpaque::Unknown))),
            ("opaque=foreign", Fault::on_any(RequestFault::Opaque(WrongOpaque::Foreign))),
            ("garbage", Fault::on_any(RequestFault::Garbage { bytes: 64 })),
            ("garbage=9", Fault::on_any(RequestFault::Garbage { bytes: 9 })),
            ("connect=refuse", Fault::on_connection(Refuse)),
            ("times=1,connect=slow:50", Fault::on_connection(Slow(ms(50))).times(1)),
            ("stop-reading", Fault::on_connection(StopReading { after: 0 })),
            ("stop-reading=7", Fault::on_connection(StopReading { after: 7 })),
            ("cut=out:100:rst", cut(Direction::Out, 100, Cut::Rst)),
            ("cut=in:0:fin", cut(Direction::In, 0, Cut::Fin)),
            ("skip=1,cut=in:3:half", cut(Direction::In, 3, Cut::Half).skip(1)),
        ] {
            assert_eq!(text.parse(), Ok(fault), "{text}");
        }
    }

    #[test]
    fn each_wrong_text_is_refused_with_what_is_wrong_in_it() {
        for (text, error) in [
            ("", "the fault is missing"),
            ("code=310", "the fault is missing"),
            ("code=310,", "the fault is missing"),
            ("code=x,never", "code is \"x\", expected the number of an operation"),
            ("skip=-1,never", "skip is \"-1\", expected a number from 0"),
            ("times=1,times=2,never", "times is given twice"),
            ("explode", "\"explode\" is no fault: expected delay, never"),
            ("never=1", "never takes no value, found \"1\""),
            ("never,times=1", "\"times=1\" follows the fault, which comes last"),
            ("delay", "delay has no value, expected a number of milliseconds"),
            ("delay=soon", "delay is \"soon\""),
            ("opaque=own", "opaque is \"own\", expected unknown or foreign"),
            ("answer", "answer has no value, expected CODE"),
            ("answer=busy", "answer is \"busy\", expected CODE"),
            ("garbage=0", "garbage is \"0\", expected a number of bytes from 1"),
            ("connect", "connect has no value, expected refuse or slow:MS"),
            ("connect=never", "connect is \"never\", expected refuse or slow:MS"),
            ("connect=slow:x", "connect=slow is \"x\", expected a number of milliseconds"),
            ("times=1,connect=refuse", "times does not go with connect=refuse"),
            ("code=310,stop-reading", "code does not go with a fault of connections"),
            ("cut", "cut has no value, expected in:BYTES:HOW"),
            ("cut=out:1", "cut is \"out:1\", expected in:BYTES:HOW or out:BYTES:HOW"),
            ("cut=up:1:fin", "the direction of cut is \"up\", expected in or out"),
            ("cut=in:x:fin", "the place of cut is \"x\", expected a number of bytes"),
            ("cut=in:1:bang", "the end of cut is \"bang\", expected fin, rst or half"),
        ] {
            let found = text.parse::<Fault>().expect_err(text).to_string();
            assert!(found.starts_with(error), "{text}: {found}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "([a-z-]{0,8}[=:,]?[0-9a-zä,:=]{0,6}){0,4}") {
            let _ = text.parse::<Fault>();
        }
    }
}
