//! A schedule: what the callers, the peers, the signer and the owner of a transport do, and when. Times are
//! milliseconds since its start.

use std::{io, time::Duration};

use rocketmq_transport::{Admission, Class, Limit, RetirePolicy, TransportConfig};

use crate::dice::Dice;

/// Everything that happens, but for what the transport makes of it.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) peers: Vec<PeerPlan>,
    pub(crate) requests: Vec<RequestPlan>,
    pub(crate) settings: Settings,
    pub(crate) end: End,
}

/// What differs from the settings that all schedules share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) retire: RetirePolicy,
    /// How many requests each level takes; bytes follow from it.
    pub(crate) limit: u64,
    pub(crate) max_idle: u64,
    pub(crate) max_drain: u64,
    pub(crate) first_opaque: i32,
    pub(crate) pipe_bytes: usize,
}

/// How the transport comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It is closed once everything has ended that ends by itself.
    Closed,
    /// It is closed at an instant, whatever is in flight then.
    ClosedAt { at: u64, bound: u64 },
    /// Every handle is dropped, the last of them by the last request.
    Dropped,
}

/// One request, from its caller's and from its peer's side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPlan {
    pub(crate) peer: usize,
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    pub(crate) class: Class,
    pub(crate) body: usize,
    /// `None` means never.
    pub(crate) budget: Option<u64>,
    /// After its start.
    pub(crate) start_by: Option<u64>,
    pub(crate) admission: Admission,
    /// After its start.
    pub(crate) dropped: Option<u64>,
    pub(crate) signing: SigningPlan,
    pub(crate) answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Oneway,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SigningPlan {
    AtOnce,
    After(u64),
    Fails,
    FailsAfter(u64),
}

/// What the peer does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    After(u64),
    Never,
    Twice(u64),
    /// First to somebody else, then to the one who asked.
    ForeignFirst(u64),
}

/// One peer, over all of its connections.
#[derive(Clone, Debug)]
pub(crate) struct PeerPlan {
    pub(crate) reading: Reading,
    /// What becomes of each dial, the last of them for all that follow.
    pub(crate) dials: Vec<Dial>,
    /// What ends each connection, in order; those that follow are ended by the transport alone.
    pub(crate) cuts: Vec<Option<Cut>>,
    /// Whether its connections vouch for what they report.
    pub(crate) vouches: Vouches,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vouches {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    AtOnce,
    /// So many bytes, then a pause.
    Chunks {
        bytes: usize,
        pause: u64,
    },
    /// Nothing more after so long, for so long.
    Stops {
        after: u64,
        pause: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dial {
    Connects,
    ConnectsAfter(u64),
    Fails(io::ErrorKind),
    Hangs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) when: When,
    pub(crate) how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// So long after the connection was opened.
    After(u64),
    /// Once so many bytes were read.
    Read(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Fin,
    Reset,
    /// The peer ends its own direction and reads on.
    HalfClose,
    /// The peer sends what is no frame.
    Garbage,
}

impl Schedule {
    /// Anything may happen.
    pub(crate) fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let peers: Vec<_> = (0..dice.within(1..4)).map(|_| PeerPlan::random(&mut dice)).collect();
        let limit = dice.pick(&[2, 5, 1_000, 1_000]);
        let mut requests: Vec<_> = (0..dice.within(2..20))
            .map(|_| {
                let peer = dice.within(0..peers.len() as u64) as usize;
                RequestPlan { peer, ..RequestPlan::random(&mut dice, limit) }
            })
            .collect();
        let settings = Settings { limit, ..Settings::random(&mut dice) };
        let end = match dice.within(0..6) {
            0 => End::ClosedAt { at: dice.within(0..HORIZON), bound: dice.pick(&[0, 50, 1_000]) },
            1 => End::Dropped,
            _ => End::Closed,
        };
        if end == End::Dropped {
            // Nobody else would end what has no deadline.
            let endless = requests.iter_mut().filter(|request| request.budget.is_none());
            endless.for_each(|request| request.dropped = Some(request.dropped.unwrap_or(2_000)));
        }
        Self { peers, requests, settings, end }
    }

    /// Peers that are slow at most, room for everybody, and a first request that can be ended in any way without
    /// anybody else having a reason to notice.
    pub(crate) fn calm(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let peers: Vec<_> = (0..dice.within(1..3)).map(|_| PeerPlan::sound()).collect();
        let requests = (0..dice.within(3..14))
            .map(|_| RequestPlan {
                peer: dice.within(0..peers.len() as u64) as usize,
                at: dice.within(0..200),
                body: dice.pick(&[4, 400, 9_000]),
                ..RequestPlan::random(&mut dice, 1_000).without_ties()
            })
            .collect();
        let settings =
            Settings { limit: 1_000, max_idle: FAR, max_drain: FAR, ..Settings::random(&mut dice) };
        Self { peers, requests, settings, end: End::Closed }
    }

    /// The settings as the transport takes them.
    pub(crate) fn config(&self) -> TransportConfig {
        let ms = Duration::from_millis;
        let mut config = TransportConfig::default();
        let Settings { limit, retire, max_idle, max_drain, first_opaque, .. } = self.settings;
        let level = |requests| Limit { requests, bytes: requests * BYTES_PER_REQUEST };
        config.client_limit = level(limit * 2);
        config.peer_limit = level(limit + 1);
        (config.data_limit, config.long_poll_limit) = (level(limit), level(limit));
        config.control_limit = level(limit);
        (config.retire, config.max_idle, config.first_opaque) = (retire, ms(max_idle), first_opaque);
        (config.connect_timeout, config.min_silence) = (ms(CONNECT_TIMEOUT), ms(100));
        (config.min_backoff, config.max_backoff) = (ms(10), ms(80));
        (config.late_window, config.max_drain) = (ms(500), ms(max_drain));
        (config.max_write_stall, config.max_frame_write) = (ms(300), ms(600));
        config
    }
}

impl Settings {
    fn random(dice: &mut Dice) -> Self {
        Self {
            retire: dice.pick(&[RetirePolicy::OnSilence, RetirePolicy::OnTimeout]),
            limit: 0,
            max_idle: dice.pick(&[150, FAR]),
            max_drain: 800,
            first_opaque: dice.pick(&[0, -1, i32::MAX]),
            pipe_bytes: dice.pick(&[64, 1_000, 1 << 20]),
        }
    }
}

impl RequestPlan {
    fn random(dice: &mut Dice, limit: u64) -> Self {
        let starts = |dice: &mut Dice| dice.pick(&[0, 1, 20, 100]);
        Self {
            peer: 0,
            at: dice.pick(&[0, 0, 1, 2]) * dice.within(0..HORIZON / 2),
            kind: dice.pick(&[Kind::Call, Kind::Call, Kind::Call, Kind::Oneway]),
            class: dice.pick(&[Class::Data, Class::Data, Class::Control, Class::LongPoll]),
            body: dice.pick(&[4, 50, 400, 9_000, limit as usize * BYTES_PER_REQUEST as usize]).min(40_000),
            budget: dice.pick(&[Some(0), Some(5), Some(50), Some(250), Some(600), Some(1_500), None]),
            start_by: if dice.once_in(4) { Some(starts(dice)) } else { None },
            admission: dice.pick(&[Admission::Refuse, Admission::Wait]),
            dropped: if dice.once_in(5) { Some(starts(dice) * dice.within(1..5)) } else { None },
            signing: match dice.within(0..12) {
                0 => SigningPlan::After(dice.within(1..100)),
                1 => SigningPlan::Fails,
                2 => SigningPlan::FailsAfter(dice.within(1..100)),
                _ => SigningPlan::AtOnce,
            },
            answer: match dice.within(0..9) {
                0 | 1 => Answer::After(dice.within(1..400)),
                2 => Answer::Never,
                3 => Answer::Twice(dice.within(0..100)),
                4 => Answer::ForeignFirst(dice.within(0..100)),
                _ => Answer::After(0),
            },
        }
    }

    /// The same without two things at the same instant, whose order depends on what happened before.
    fn without_ties(self) -> Self {
        let (third, ninth) = (|wait: u64| 10 * wait + 3, |wait: u64| 10 * wait.min(100) + 9);
        Self {
            start_by: self.start_by.map(ninth),
            dropped: self.dropped.map(ninth),
            signing: match self.signing {
                SigningPlan::After(wait) => SigningPlan::After(third(wait / 10)),
                SigningPlan::FailsAfter(wait) => SigningPlan::FailsAfter(third(wait / 10)),
                at_once => at_once,
            },
            answer: match self.answer {
                Answer::After(wait) => Answer::After(third(wait / 20)),
                answer => answer,
            },
            ..self
        }
    }

    /// A call that is answered at once, with nothing else to it.
    pub(crate) fn plain(self) -> Self {
        Self {
            kind: Kind::Call,
            budget: Some(1_500),
            start_by: None,
            dropped: None,
            signing: SigningPlan::AtOnce,
            answer: Answer::After(0),
            ..self
        }
    }
}

impl PeerPlan {
    /// Reads at once, is dialled at once, and never ends a connection.
    pub(crate) fn sound() -> Self {
        Self {
            reading: Reading::AtOnce,
            dials: vec![Dial::Connects],
            cuts: Vec::new(),
            vouches: Vouches::Yes,
        }
    }

    fn random(dice: &mut Dice) -> Self {
        if dice.once_in(3) {
            return Self::sound();
        }
        let reading = match dice.within(0..5) {
            0 => Reading::Chunks { bytes: dice.pick(&[1, 30, 500]), pause: dice.pick(&[0, 1, 10]) },
            1 => Reading::Stops { after: dice.within(0..500), pause: dice.pick(&[100, 250, 2_000]) },
            _ => Reading::AtOnce,
        };
        let dial = |dice: &mut Dice| match dice.within(0..8) {
            0 => Dial::ConnectsAfter(dice.within(1..CONNECT_TIMEOUT - 10)),
            1 => Dial::Fails(dice.pick(&[io::ErrorKind::ConnectionRefused, io::ErrorKind::HostUnreachable])),
            2 => Dial::Hangs,
            _ => Dial::Connects,
        };
        let cut = |dice: &mut Dice| {
            let when = match dice.within(0..2) {
                0 => When::After(dice.within(0..500)),
                _ => When::Read(dice.within(0..2_000) as usize),
            };
            let how = dice.pick(&[How::Fin, How::Reset, How::HalfClose, How::Garbage]);
            dice.once_in(2).then_some(Cut { when, how })
        };
        Self {
            reading,
            dials: (0..dice.within(1..5)).map(|_| dial(dice)).collect(),
            cuts: (0..dice.within(0..4)).map(|_| cut(dice)).collect(),
            vouches: dice.pick(&[Vouches::Yes, Vouches::Yes, Vouches::No]),
        }
    }

    /// Whether nothing of it takes time or fails.
    pub(crate) fn is_sound(&self) -> bool {
        let Self { reading, dials, cuts, .. } = self;
        *reading == Reading::AtOnce
            && dials.iter().all(|dial| *dial == Dial::Connects)
            && cuts.iter().all(Option::is_none)
    }
}

/// When the last thing of a schedule begins.
const HORIZON: u64 = 600;
/// After every schedule.
const FAR: u64 = 100_000;
/// The limit of a dial.
pub(crate) const CONNECT_TIMEOUT: u64 = 200;
/// What the levels of the budget have for each request, so that a large body takes the place of many.
const BYTES_PER_REQUEST: u64 = 4_000;
