//! The processes of the benchmark: the server, the brokers, and each measured client.

use std::{
    env,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{Outcome, ResultLine, rounds::Cell, system::STARTED_UNIX_NS};

/// A part of this program that serves others; it ends when this is dropped.
#[derive(Debug)]
struct Service(Child);

impl Service {
    /// Starts it with `arguments`, and returns the line that it prints when it is ready.
    fn start(arguments: &[&str]) -> Outcome<(Self, String)> {
        let mut command = Command::new(env::current_exe()?);
        let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("a service has no output")?;
        let service = Self(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        Ok((service, line))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It was told to end; how it did changes nothing.
        let _ = self.0.wait();
    }
}

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    _service: Service,
    address: SocketAddr,
}

impl Server {
    /// Starts one that holds what is to be held, on as many loopback addresses as any client connects to.
    pub(crate) fn start() -> Outcome<Self> {
        let addresses = MOST_CONNECTIONS.to_string();
        let (service, line) = Service::start(&["server", "--hold", "--addresses", &addresses])?;
        Ok(Self { _service: service, address: (Ipv4Addr::LOCALHOST, line.trim().parse()?).into() })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A running name server and broker; they end when this is dropped.
#[derive(Debug)]
pub(crate) struct Brokers {
    _service: Service,
    pub(crate) name_server: SocketAddr,
    pub(crate) broker: SocketAddr,
}

impl Brokers {
    /// Starts Apache's, which takes up to half a minute, and longer where they are fetched.
    pub(crate) fn apache() -> Outcome<Self> {
        Self::start(&["broker", "--apache"])
    }

    /// Starts ours, in memory.
    pub(crate) fn embedded() -> Outcome<Self> {
        Self::start(&["broker"])
    }

    fn start(arguments: &[&str]) -> Outcome<Self> {
        let (service, line) = Service::start(arguments)?;
        let (name_server, broker) = line.trim().split_once(' ').ok_or("the brokers did not start")?;
        Ok(Self { _service: service, name_server: name_server.parse()?, broker: broker.parse()? })
    }
}

/// What a run is asked beyond its cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extra {
    /// Milliseconds of the measured part.
    pub(crate) millis: u64,
    pub(crate) pending: usize,
    pub(crate) rate: Option<u64>,
}

/// A program that is one client.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// What its figures stand under.
    name: String,
    path: PathBuf,
    /// What comes before the options: the subcommand and the kind, for our own program.
    arguments: Vec<String>,
    count_writes: bool,
    /// What it takes before its measured part, and after.
    beside: Duration,
}

impl Program {
    /// Any program that takes the options of a client and prints its line.
    pub(crate) fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        let (path, beside) = (path.into(), WARM_UP + START_AND_END);
        Self { name: name.to_owned(), path, arguments: Vec::new(), count_writes: false, beside }
    }

    /// A client of ours.
    pub(crate) fn kind(name: &str) -> Outcome<Self> {
        let arguments = vec!["client".to_owned(), name.to_owned()];
        Ok(Self::new(name, env::current_exe()?).with_arguments(arguments))
    }

    /// The same, in the program that counts allocations and socket writes.
    pub(crate) fn counting(name: &str) -> Outcome<Self> {
        let path = env::current_exe()?.with_file_name("bench-counting");
        if !path.exists() {
            return Err(format!("{} is missing: build all programs of the package", path.display()).into());
        }
        Ok(Self { path, count_writes: true, ..Self::kind(name)? })
    }

    /// The same program with `arguments` before the options.
    pub(crate) fn with_arguments(self, arguments: Vec<String>) -> Self {
        Self { arguments, ..self }
    }

    /// The same program, which takes `beside` before its measured part and after.
    pub(crate) fn taking(self, beside: Duration) -> Self {
        Self { beside, ..self }
    }

    /// The same program, run by another: `wrapper` is that and its arguments.
    pub(crate) fn run_by(&self, wrapper: &[&str]) -> Outcome<Self> {
        let (path, own) = wrapper.split_first().ok_or("nothing to run it by")?;
        let mut arguments = Vec::from_iter(own.iter().map(|&argument| argument.to_owned()));
        arguments.push(self.path.display().to_string());
        arguments.extend_from_slice(&self.arguments);
        Ok(Self { path: path.into(), arguments, ..self.clone() })
    }

    /// The same program with one more argument before the options.
    pub(crate) fn and(mut self, argument: &str) -> Self {
        self.arguments.push(argument.to_owned());
        self
    }

    /// A client of ours by its name, or another by its path.
    pub(crate) fn named(name: &str) -> Outcome<Self> {
        if name.contains('/') { Ok(Self::new(name, name)) } else { Self::kind(name) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How long a run is expected to take.
    pub(crate) fn expected(&self, extra: Extra) -> Duration {
        self.beside + Duration::from_millis(extra.millis) + PER_PENDING * extra.pending as u32
    }

    /// Runs it once, to its end.
    pub(crate) fn run(&self, server: SocketAddr, cell: Cell, extra: Extra) -> Outcome<ResultLine> {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        let mut option = |name: &str, value: u64| {
            command.arg(name).arg(value.to_string());
        };
        option("--in-flight", cell.in_flight as u64);
        option("--body", cell.body as u64);
        option("--workers", cell.workers as u64);
        option("--connections", cell.connections as u64);
        option("--millis", extra.millis);
        option("--pending", extra.pending as u64);
        if let Some(rate) = extra.rate {
            option("--rate", rate);
        }
        command.arg("--server").arg(server.to_string());
        if self.count_writes {
            command.arg("--count-writes");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        command.env(STARTED_UNIX_NS, now.as_nanos().to_string());
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(
                format!("{} {:?} ended with {}", self.path.display(), self.arguments, output.status).into()
            );
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

/// The most connections that a client is measured with.
pub(crate) const MOST_CONNECTIONS: usize = 64;
/// What clients are loaded with before their measured part, where they are not told otherwise.
const WARM_UP: Duration = Duration::from_millis(200);
const START_AND_END: Duration = Duration::from_millis(20);
/// What it takes to hold back one request.
const PER_PENDING: Duration = Duration::from_micros(6);
