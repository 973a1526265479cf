//! The figures of producers, and what ours is held to.

use std::fmt::Write;

use super::{OURS, Producers, RAW};
use crate::{
    report::shown,
    rounds::{Figure, Rounds},
    spread::Spread,
    syscalls::Calls,
    targets::Target,
};

/// What our producer is held to.
pub(crate) fn targets(producers: &Producers) -> Vec<Target> {
    let mut targets = Vec::new();
    for bounds in BOUNDS {
        let Bounds { in_flight, raw, java, writes, futexes } = bounds;
        let rounds = producers.at(in_flight);
        let cpu = |to| rounds?.ratio(OURS, to, Figure::Cpu);
        let calls = |count: fn(&Calls) -> f64| {
            let counted =
                producers.calls.iter().find(|(at, client, _)| (*at, &**client) == (in_flight, OURS));
            Spread::of(counted.iter().flat_map(|(_, _, calls)| calls).map(count))
        };
        let named = |figure: &str| format!("producer at {in_flight} in flight: {figure}");
        targets.extend([
            Target::new(named("CPU per message ÷ raw producer"), raw.0, raw.1, cpu(RAW)),
            Target::new(named("CPU per message ÷ Java client"), java.0, java.1, cpu("java")),
            Target::bound(named("socket writes per message"), writes, calls(|calls| calls.writes)),
            Target::bound(
                named("socket writes and wake-ups by eventfd per message"),
                writes,
                calls(|calls| calls.writes + calls.wakes),
            ),
            Target::bound(named("futex calls per message"), futexes, calls(|calls| calls.futexes)),
        ]);
    }
    let whole = |in_flight, figure| producers.at(in_flight)?.figure(OURS, figure);
    targets.extend([
        Target::bound(
            "producer: process start to first acknowledged message, ms",
            25.0,
            whole(1, Figure::First),
        ),
        Target::bound("producer: threads, with 2 workers", 4.0, whole(256, Figure::Threads)),
        Target::bound("producer: peak memory at 256 in flight, MiB", 15.0, whole(256, Figure::Peak)),
    ]);
    targets
}

/// The section of the page of figures.
pub(crate) fn section(producers: &Producers) -> String {
    let mut out = format!(
        "## The producer at a real Apache broker\n\n\
         Bodies of 1 KiB, 2 workers; medians of {} alternating rounds of {} ms each, quartiles in brackets.\n\n",
        producers.options.rounds(),
        producers.options.millis()
    );
    table(&mut out, &producers.real);
    system_calls(&mut out, producers);
    out.push_str("\n## The producer at the embedded broker\n\nThe same, in fewer rounds.\n\n");
    table(&mut out, &producers.embedded);
    out
}

fn table(out: &mut String, all: &[Rounds]) {
    out.push_str(
        "| in flight | client | messages/s | CPU us/message | p50 us | p99 us | CPU of ours ÷ its own | start to first \
         answer ms | threads | peak memory MiB |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for rounds in all {
        for client in rounds.clients() {
            clients_row(out, rounds, client);
        }
    }
}

fn system_calls(out: &mut String, producers: &Producers) {
    out.push_str("\n### System calls per message\n\n");
    let Some(counter) = producers.counter else {
        out.push_str("Not counted: neither `perf` nor `strace` works here.\n");
        return;
    };
    // Writing to a text does not fail.
    let _ = writeln!(
        out,
        "Of whole processes, counted by {}.\n\n| in flight | client | socket writes | wake-ups by eventfd | futex calls \
         |\n|---|---|---|---|---|",
        counter.name()
    );
    for (in_flight, client, calls) in &producers.calls {
        let each: [fn(&Calls) -> f64; 3] = [|calls| calls.writes, |calls| calls.wakes, |calls| calls.futexes];
        let columns = each.map(|count| shown(Spread::of(calls.iter().map(count))));
        let _ = writeln!(out, "| {in_flight} | {client} | {} |", columns.join(" | "));
    }
}

fn clients_row(out: &mut String, rounds: &Rounds, client: &str) {
    let figure = |figure| shown(rounds.figure(client, figure));
    let columns = [
        rounds.cell.in_flight.to_string(),
        client.to_owned(),
        figure(Figure::Rate),
        figure(Figure::Cpu),
        figure(Figure::P50),
        figure(Figure::P99),
        shown(rounds.ratio(OURS, client, Figure::Cpu)),
        figure(Figure::First),
        figure(Figure::Threads),
        figure(Figure::Peak),
    ];
    // Writing to a text does not fail.
    let _ = writeln!(out, "| {} |", columns.join(" | "));
}

impl Producers {
    fn at(&self, in_flight: usize) -> Option<&Rounds> {
        self.real.iter().find(|rounds| rounds.cell.in_flight == in_flight)
    }
}

/// The targets at one number of requests in flight; must before goal.
struct Bounds {
    in_flight: usize,
    raw: (f64, f64),
    java: (f64, f64),
    writes: f64,
    futexes: f64,
}

const BOUNDS: [Bounds; 3] = [
    Bounds { in_flight: 1, raw: (1.75, 1.3), java: (0.35, 0.26), writes: 1.1, futexes: 0.1 },
    Bounds { in_flight: 16, raw: (1.75, 1.3), java: (0.4, 0.3), writes: 0.5, futexes: 0.4 },
    Bounds { in_flight: 256, raw: (1.45, 1.0), java: (0.45, 0.3), writes: 0.5, futexes: 0.6 },
];
