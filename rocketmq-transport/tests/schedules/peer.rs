//! The peer's side of one connection.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use rocketmq_transport::{
    Code, Command, EncodeOptions, FrameLimits, Opaque, Response, decode_frame, test_support::PipeEnd,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, sleep_until},
};

use crate::{
    plan::{Answer, Cut, How, Kind, PeerPlan, Reading, Schedule, When},
    world::{ConnectionLog, lock, number},
};

/// Reads and answers as the schedule says, until either side ends the connection, the peer's `nth`.
pub(crate) async fn serve(schedule: Arc<Schedule>, nth: usize, end: PipeEnd, log: Arc<Mutex<ConnectionLog>>) {
    let (peer, opened) = {
        let log = lock(&log);
        (log.peer, log.opened)
    };
    let plan = schedule.peers[peer].clone();
    let cut = plan.cuts.get(nth).copied().flatten();
    let connection = Connection {
        schedule,
        plan,
        end,
        log,
        opened,
        cut,
        answers: Answers::Sent,
        buffer: BytesMut::new(),
        read: 0,
        paused: opened,
        due: BTreeMap::new(),
        planned: 0,
    };
    connection.run().await;
}

struct Connection {
    schedule: Arc<Schedule>,
    plan: PeerPlan,
    end: PipeEnd,
    log: Arc<Mutex<ConnectionLog>>,
    opened: Instant,
    cut: Option<Cut>,
    answers: Answers,
    buffer: BytesMut,
    read: usize,
    /// Reads nothing before.
    paused: Instant,
    /// What is to be sent, by instant and then in the order it was thought of.
    due: BTreeMap<(Instant, u64), (Option<usize>, Vec<u8>)>,
    planned: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Sent,
    /// Its own direction has ended.
    Lost,
}

enum Next {
    Cut,
    Answer,
    Turn,
    Read(io::Result<usize>),
}

impl Connection {
    async fn run(mut self) {
        loop {
            match self.next().await {
                Next::Turn => {}
                Next::Answer => self.answer().await,
                Next::Read(Ok(0) | Err(_)) => return,
                Next::Read(Ok(read)) => self.take(read),
                Next::Cut => match self.cut.take().map(|cut| cut.how) {
                    Some(How::Fin) => return self.note_cut(How::Fin),
                    Some(How::Reset) => {
                        self.note_cut(How::Reset);
                        return self.end.reset(io::ErrorKind::ConnectionReset);
                    }
                    Some(How::HalfClose) => {
                        self.note_cut(How::HalfClose);
                        self.answers = Answers::Lost;
                        let _ = self.end.shutdown().await;
                    }
                    Some(How::Garbage) => {
                        self.note_cut(How::Garbage);
                        self.answers = Answers::Lost;
                        let _ = self.end.write_all(&[0x7F; 64]).await;
                    }
                    None => {}
                },
            }
        }
    }

    async fn next(&mut self) -> Next {
        let now = Instant::now();
        let (cut_at, mut most) = match self.cut.map(|cut| cut.when) {
            Some(When::After(wait)) => (Some(self.opened + Duration::from_millis(wait)), usize::MAX),
            Some(When::Read(bytes)) if bytes == self.read => (Some(now), 1),
            Some(When::Read(bytes)) => (None, bytes - self.read),
            None => (None, usize::MAX),
        };
        let mut turn = Some(self.paused).filter(|paused| now < *paused);
        let mut reads = turn.is_none();
        match self.plan.reading {
            Reading::AtOnce => {}
            Reading::Chunks { bytes, .. } => most = most.min(bytes),
            Reading::Stops { after, pause } => {
                let stops = self.opened + Duration::from_millis(after);
                let goes_on = stops + Duration::from_millis(pause);
                turn = [stops, goes_on].into_iter().find(|at| now < *at);
                reads = now < stops || goes_on <= now;
            }
        }
        let due = self.due.keys().next().map(|(at, _)| *at);
        let mut reader = (&mut self.end).take(most as u64);
        tokio::select! {
            biased;
            () = sleep_until(cut_at.unwrap_or(now)), if cut_at.is_some() => Next::Cut,
            () = sleep_until(due.unwrap_or(now)), if due.is_some() => Next::Answer,
            () = sleep_until(turn.unwrap_or(now)), if turn.is_some() => Next::Turn,
            read = reader.read_buf(&mut self.buffer), if reads => Next::Read(read),
        }
    }

    fn take(&mut self, read: usize) {
        self.read += read;
        if let Reading::Chunks { pause, .. } = self.plan.reading {
            self.paused = Instant::now() + Duration::from_millis(pause);
        }
        let limits = FrameLimits::default();
        while let Some(request) = decode_frame(&mut self.buffer, &limits).expect("sound frames") {
            let number = number(request.body());
            lock(&self.log).decoded.push(number);
            let plan = self.schedule.requests[number];
            if plan.kind == Kind::Oneway {
                continue;
            }
            match plan.answer {
                Answer::Never => {}
                Answer::After(wait) => self.plan_answer(&request, wait),
                Answer::Twice(wait) => {
                    self.plan_answer(&request, 0);
                    self.plan_answer(&request, wait);
                }
                Answer::ForeignFirst(wait) => {
                    let foreign = Opaque(request.opaque().0 ^ FOREIGN);
                    self.plan_frame(0, None, response(foreign, u32::MAX));
                    self.plan_answer(&request, wait);
                }
            }
        }
    }

    fn plan_answer(&mut self, request: &Command, wait: u64) {
        let number = number(request.body());
        self.plan_frame(wait, Some(number), response(request.opaque(), number as u32));
    }

    fn plan_frame(&mut self, wait: u64, number: Option<usize>, frame: Vec<u8>) {
        let at = Instant::now() + Duration::from_millis(wait);
        self.planned += 1;
        self.due.insert((at, self.planned), (number, frame));
    }

    async fn answer(&mut self) {
        let Some((_, (number, frame))) = self.due.pop_first() else { return };
        if self.answers == Answers::Sent
            && self.end.write_all(&frame).await.is_ok()
            && let Some(number) = number
        {
            lock(&self.log).answered.push((number, Instant::now()));
        }
    }

    fn note_cut(&self, how: How) {
        lock(&self.log).cut = Some((how, Instant::now()));
    }
}

/// A response that says which request it answers.
fn response(opaque: Opaque, number: u32) -> Vec<u8> {
    let body = Bytes::copy_from_slice(&number.to_be_bytes());
    let response = Response { code: Code::SUCCESS, remark: None, header: Box::new(()), body };
    response.encode(opaque, EncodeOptions::default(), &FrameLimits::default()).expect("a small response")
}

/// No connection of a schedule gets as far as this many opaques.
const FOREIGN: i32 = 0x4000_0000;
