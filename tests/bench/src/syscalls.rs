//! The system calls of a whole process, counted from outside.

use std::{
    env, fs,
    net::SocketAddr,
    process::{self, Command, Stdio},
};

use crate::{
    Outcome, ResultLine,
    process::{Extra, Program},
    rounds::Cell,
};

/// System calls of one run, per request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Calls {
    /// To sockets.
    pub(crate) writes: f64,
    /// To what wakes a thread that waits for sockets.
    pub(crate) wakes: f64,
    pub(crate) futexes: f64,
}

/// What counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Trace points of the kernel, which cost a request a few hundred nanoseconds.
    Perf,
    /// A tracer that stops the process at each call, which makes it several times slower: more answers come at once then,
    /// so that it sees fewer calls a request than there are.
    Strace,
}

impl Counter {
    /// The better one of those that work here.
    pub(crate) fn find() -> Option<Self> {
        [Self::Perf, Self::Strace].into_iter().find(|counter| {
            let probe = output_file("probe");
            let wrapper = counter.wrapper(&probe);
            let mut command = Command::new(&wrapper[0]);
            command.args(&wrapper[1..]).arg("true").stdin(Stdio::null()).stderr(Stdio::null());
            let works = command.status().is_ok_and(|status| status.success());
            // It may not have been written.
            let _ = fs::remove_file(probe);
            works
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Perf => "perf",
            Self::Strace => "strace, which makes them fewer",
        }
    }

    /// Runs `program` once without a warm-up, so that all its calls are of requests it reports, but for the few of its start.
    pub(crate) fn count(
        self,
        program: &Program,
        server: SocketAddr,
        cell: Cell,
        extra: Extra,
    ) -> Outcome<Calls> {
        let file = output_file("calls");
        let wrapper = self.wrapper(&file);
        let wrapper = Vec::from_iter(wrapper.iter().map(String::as_str));
        let program = program.clone().and("--warm-up-ms").and("0").run_by(&wrapper)?;
        let ResultLine { requests, .. } = program.run(server, cell, extra)?;
        let text = fs::read_to_string(&file)?;
        fs::remove_file(&file)?;
        let count = |names: &[&str]| {
            let calls = names.iter().map(|name| self.read(&text, name)).sum::<u64>();
            calls as f64 / requests as f64
        };
        Ok(Calls { writes: count(&SOCKET_WRITES), wakes: count(&[WAKE]), futexes: count(&[FUTEX]) })
    }

    /// The command before the measured one, which writes its counts to `file`.
    fn wrapper(self, file: &str) -> Vec<String> {
        let events = |prefix: &str| {
            let names = SOCKET_WRITES.iter().chain([&WAKE, &FUTEX]);
            names.map(|name| format!("{prefix}{name}")).collect::<Vec<_>>().join(",")
        };
        let words = match self {
            Self::Perf => vec!["perf", "stat", "-x", ",", "-o", file, "-e"],
            Self::Strace => vec!["strace", "-f", "-c", "-o", file, "-e"],
        };
        let events = match self {
            Self::Perf => events("syscalls:sys_enter_"),
            Self::Strace => format!("trace={}", events("")),
        };
        words.into_iter().map(str::to_owned).chain([events]).collect()
    }

    /// How often the system call `name` is in what the counter has written.
    fn read(self, text: &str, name: &str) -> u64 {
        let count = |line: &str| match self {
            Self::Perf => {
                let mut fields = line.split(',');
                let count = fields.next()?;
                fields
                    .any(|field| field.strip_prefix("syscalls:sys_enter_") == Some(name))
                    .then_some(count)?
                    .parse()
                    .ok()
            }
            // The columns are share, seconds, microseconds a call, calls, errors where there were any, and the name.
            Self::Strace => {
                let columns = Vec::from_iter(line.split_whitespace());
                (columns.last() == Some(&name)).then(|| columns.get(3)?.parse().ok())?
            }
        };
        text.lines().find_map(count).unwrap_or(0)
    }
}

fn output_file(kind: &str) -> String {
    env::temp_dir().join(format!("bench-{kind}-{}", process::id())).display().to_string()
}

const SOCKET_WRITES: [&str; 3] = ["sendto", "sendmsg", "writev"];
/// The runtime wakes a thread that waits for its sockets through an `eventfd`.
const WAKE: &str = "write";
const FUTEX: &str = "futex";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_either_counter_are_read() {
        let perf = "# started on Mon Nov 30 04:30:00 2026\n\n5835,,syscalls:sys_enter_sendto,7000,100.00,,\n\
                    12,,syscalls:sys_enter_write,7000,100.00,,\n";
        let strace = "% time     seconds  usecs/call     calls    errors syscall\n\
                      ------ ----------- ----------- --------- --------- ------------------\n \
                      80.00    0.004000          10      5835           sendto\n \
                      20.00    0.001000          10        12         3 write\n\
                      100.00    0.005000          10      5847         3 total\n";
        for (counter, text) in [(Counter::Perf, perf), (Counter::Strace, strace)] {
            let counts = ["sendto", "write", "futex"].map(|name| counter.read(text, name));
            assert_eq!(counts, [5_835, 12, 0], "{counter:?}");
        }
    }
}
