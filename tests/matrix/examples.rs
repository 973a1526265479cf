//! One real line for each stage, with what it says.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use rocketmq_transport::{Stage, test_support::LogSink};

use crate::{
    row::{Fault, Row},
    sends::{Watched, run},
};

/// A line that a row leaves in the log, and what can be read from it.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) stage: Stage,
    pub(crate) fault: Fault,
    pub(crate) says: &'static str,
}

/// At least one for each stage.
pub(crate) const EXAMPLES: [Example; 10] = [
    Example {
        stage: Stage::Route,
        fault: Fault::Silent,
        says: "All of the 3 s went to looking up where the topic is (`route_ms`), and the one name server that was asked \
               never answered. No broker is named because none was asked: the message is **not stored**.",
    },
    Example {
        stage: Stage::Admission,
        fault: Fault::Saturation,
        says: "It failed at once (`elapsed_ms=0`): our own limit on requests in flight to this broker was used up. It is \
               `Refused`, so the message is **not stored**.",
    },
    Example {
        stage: Stage::Connect,
        fault: Fault::Refuses,
        says: "The time went to dialling (`connect_ms`), and the broker's machine refused the connection. There is neither \
               `generation` nor `opaque`, for there was no connection: the message is **not stored**.",
    },
    Example {
        stage: Stage::Signing,
        fault: Fault::Deadline,
        says: "There was a connection already (`connect_ms` has passed), but the signer used up the whole budget \
               (`signing_ms`). Nothing was sent: the message is **not stored**. The broker has no part in it.",
    },
    Example {
        stage: Stage::BeforeWrite,
        fault: Fault::Silent,
        says: "The request had its number (`opaque`) and waited 10 s in our queue (`before_write_ms`), because the broker \
               read nothing from its socket; then the connection was given up. No byte of the request had left: the \
               message is **not stored**.",
    },
    Example {
        stage: Stage::Writing,
        fault: Fault::Deadline,
        says: "Some of the request's bytes had left and the broker took the rest too slowly (`writing_ms`). The frame is \
               finished all the same, since half a frame would end the connection for everybody: the message **may be \
               stored**, hence `Unknown`.",
    },
    Example {
        stage: Stage::Writing,
        fault: Fault::Lost,
        says: "The connection ended 200 ms into the frame, before its last byte. A broker acts on whole frames only: the \
               message is **not stored**, although some of its bytes have left.",
    },
    Example {
        stage: Stage::AwaitingResponse,
        fault: Fault::Deadline,
        says: "All bytes had left at once, and all of the 500 ms was waiting for the answer (`awaiting_response_ms`). The \
               broker was heard 300 ms before the end (`last_heard_ms`), which is after our request had left \
               (`heard_since_written`): it lives, and is slow with this one. The message **may be stored**.",
    },
    Example {
        stage: Stage::AwaitingResponse,
        fault: Fault::Silent,
        says: "The same, but the broker was last heard 3,000 ms before the end, which is before our request had left: since \
               then it has said nothing to anybody on this connection. It may be frozen or cut off, and the next request \
               takes a new connection. The message **may be stored**.",
    },
    Example {
        stage: Stage::AwaitingResponse,
        fault: Fault::Refuses,
        says: "The broker answered within 200 ms, and said that it is busy. It is `Refused`: the message is **not stored**.",
    },
];

/// The line that `row` leaves in the log, as it is printed, without its time.
pub(crate) async fn line(row: &Row) -> String {
    let printed = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&printed);
    let subscriber = tracing_subscriber::fmt().with_ansi(false).without_time();
    let subscriber = subscriber.with_writer(move || Printed(Arc::clone(&writer))).finish();
    // Beside a second dispatcher tracing asks each thread's own whether it wants a line, and not whichever came first.
    let _second = LogSink::install();
    let guard = tracing::subscriber::set_default(subscriber);
    let ended = run(row, Watched::Alone).await.ended;
    drop(guard);
    assert!(ended.is_some_and(|ended| ended.is_err()), "{}", row.name());
    let printed = String::from_utf8(printed.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap();
    let mut of_sends = printed.lines().filter(|line| line.contains("rocketmq::request: send failed"));
    let line = of_sends.next().unwrap_or_else(|| panic!("{}: {printed}", row.name()));
    assert_eq!(of_sends.next(), None, "{}", row.name());
    line.trim().to_owned()
}

struct Printed(Arc<Mutex<Vec<u8>>>);

impl io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
