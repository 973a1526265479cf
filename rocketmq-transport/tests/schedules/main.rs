//! Thousands of random schedules on paused time: whatever peers, sockets, dials, signers, callers and owners do, the
//! invariants hold for every request and for its neighbours.
//!
//! Each schedule comes from a seed, which a failure prints. One run of the long form:
//!
//! ```text
//! SCHEDULES=200000 SCHEDULE_SEED=7 cargo test --release -p rocketmq-transport --features test-support --test schedules
//! ```

mod dice;
mod invariants;
mod peer;
mod plan;
mod run;
mod tampering;
mod twins;
mod world;

use std::str::FromStr;

use crate::{invariants::broken, plan::Schedule, run::run};

#[test]
fn every_invariant_holds_whatever_happens() {
    for seed in seeds(2_000) {
        let schedule = Schedule::random(seed);
        let broken = broken(&schedule, &run(&schedule));
        assert!(broken.is_empty(), "seed {seed} breaks {broken:#?}\n{schedule:#?}");
    }
}

/// The seeds of a run: as many as are usual here, or as the long form asks for.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let first = setting("SCHEDULE_SEED").unwrap_or(1);
    first..first + setting("SCHEDULES").unwrap_or(usual)
}

fn setting<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}
