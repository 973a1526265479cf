//! One name server or broker: its settings, its port, its process.

use std::{
    fs,
    hash::{BuildHasher, RandomState},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    time::Duration,
};

use super::{
    distribution::Distribution,
    error::HarnessError,
    jvm,
    process::{Process, watched},
    wait::{Missing, wait_until},
};

/// A broker to start.
#[derive(Clone, Debug)]
pub struct BrokerSpec {
    name: String,
    settings: Vec<(String, String)>,
    files: Vec<(String, String)>,
}

impl BrokerSpec {
    /// A master of this name with settings that suit a test: small files, no timer wheel, patience with a
    /// slow machine.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), settings: Vec::new(), files: Vec::new() }
    }

    /// Adds a line of the broker's configuration file, such as `autoCreateTopicEnable` and `false`.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((key.into(), value.into()));
        self
    }

    /// Adds a file of this text to the broker's home, such as `conf/plain_acl.yml`.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.push((path.into(), text.into()));
        self
    }
}

/// A process of the cluster, and all that is needed to start it.
#[derive(Debug)]
pub(crate) struct Node {
    launch: Launch,
    address: SocketAddr,
    process: Process,
}

impl Node {
    /// Starts a name server.
    pub(crate) fn name_server(distribution: &Distribution, folder: PathBuf) -> Result<Self, HarnessError> {
        let settings = vec![("bindAddress".to_owned(), "127.0.0.1".to_owned())];
        let class_path = distribution.class_path();
        Launch { folder, settings, files: Vec::new(), class_path, program: &NAME_SERVER }.start()
    }

    /// Starts a broker that registers with all of `name_servers`, a list with semicolons.
    pub(crate) fn broker(
        distribution: &Distribution,
        folder: PathBuf,
        spec: &BrokerSpec,
        name_servers: &str,
    ) -> Result<Self, HarnessError> {
        let store = folder.join("store");
        let fixed = [
            ("brokerClusterName", "c1".to_owned()),
            ("brokerName", spec.name.clone()),
            ("namesrvAddr", name_servers.to_owned()),
            ("storePathRootDir", store.display().to_string()),
            ("storePathCommitLog", store.join("commitlog").display().to_string()),
        ];
        let settings = fixed.iter().map(|(key, value)| (*key, value.as_str())).chain(BROKER_SETTINGS);
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let settings = settings.chain(spec.settings.iter().cloned()).collect();
        let (files, class_path) = (spec.files.clone(), distribution.class_path());
        Launch { folder, settings, files, class_path, program: &BROKER }.start()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts it again on the files and the port it has had, and waits until `ready` finds it in service.
    pub(crate) fn restart(
        &mut self,
        ready: impl Fn(SocketAddr) -> Result<(), String>,
    ) -> Result<(), HarnessError> {
        for _ in 0..MAX_STARTS {
            self.process.kill()?;
            self.process = self.launch.spawn(self.address.port())?;
            match self.wait_for_start(&ready)? {
                Start::Ready => return Ok(()),
                Start::PortTaken => {}
            }
        }
        Err(HarnessError::NoPort { starts: MAX_STARTS })
    }

    /// Waits until `ready` finds the node at its address in service. A node that has lost its port to somebody
    /// else before it could take it is started again on another.
    pub(crate) fn wait_until_ready(
        mut self,
        ready: impl Fn(SocketAddr) -> Result<(), String>,
    ) -> Result<Self, HarnessError> {
        for _ in 0..MAX_STARTS {
            match self.wait_for_start(&ready)? {
                Start::Ready => return Ok(self),
                Start::PortTaken => {
                    drop(self.process);
                    self = self.launch.start()?;
                }
            }
        }
        Err(HarnessError::NoPort { starts: MAX_STARTS })
    }

    fn wait_for_start(
        &mut self,
        ready: impl Fn(SocketAddr) -> Result<(), String>,
    ) -> Result<Start, HarnessError> {
        let (address, program) = (self.address, self.launch.program);
        let look = || {
            // In this order, so that the output of a process that has ended is complete.
            let running = self.process.check_running();
            let output = self.process.output();
            if output.contains("Address already in use") {
                return Ok(Start::PortTaken);
            }
            running?;
            ready(address).map(|()| Start::Ready).map_err(|seen| Missing::Yet(format!("{seen}\n{output}")))
        };
        wait_until(|| format!("start of the {} at {address}", program.name), START_LIMIT, look)
    }
}

enum Start {
    Ready,
    PortTaken,
}

#[derive(Clone, Debug)]
struct Launch {
    folder: PathBuf,
    settings: Vec<(String, String)>,
    files: Vec<(String, String)>,
    class_path: String,
    program: &'static Program,
}

impl Launch {
    fn start(self) -> Result<Node, HarnessError> {
        let port = free_port();
        let process = self.spawn(port)?;
        Ok(Node { address: (Ipv4Addr::LOCALHOST, port).into(), process, launch: self })
    }

    fn spawn(&self, port: u16) -> Result<Process, HarnessError> {
        let machine = self
            .prepare(port)
            .map_err(HarnessError::io(|| format!("write the files of {:?}", self.folder)))?;
        let mut command = watched("java");
        command.env("ROCKETMQ_HOME", &self.folder).args(self.program.memory).args(machine);
        command.args([self.program.class, "-c"]).arg(self.folder.join(SETTINGS));
        Process::spawn("java", command, &self.folder)
    }

    /// Writes the files it starts from, and returns the arguments of its Java machine.
    fn prepare(&self, port: u16) -> io::Result<Vec<String>> {
        let machine = jvm::arguments(&self.folder, &self.class_path)?;
        let lines = self.settings.iter().map(|(key, value)| format!("{key}={value}\n"));
        let lines: String = lines.chain([format!("listenPort={port}\n")]).collect();
        fs::write(self.folder.join(SETTINGS), lines)?;
        for (path, text) in &self.files {
            fs::write(self.folder.join(path), text)?;
        }
        Ok(machine)
    }
}

#[derive(Debug)]
struct Program {
    name: &'static str,
    class: &'static str,
    memory: &'static [&'static str],
}

/// A port that is free together with the others a broker takes: two below for its second listener, one above
/// for its slaves. None that the system gives to outgoing connections, of which one could take the port of a
/// broker that is down for a while.
fn free_port() -> u16 {
    loop {
        // The one source of random numbers in the standard library.
        let random = RandomState::new().hash_one(()) % u64::from(PORTS);
        let port = FIRST_PORT + u16::try_from(random).expect("it is below a number of 16 bits");
        let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        if [port - 2, port, port + 1].into_iter().all(free) {
            return port;
        }
    }
}

const NAME_SERVER: Program = Program {
    name: "name server",
    class: "org.apache.rocketmq.namesrv.NamesrvStartup",
    memory: &["-Xmx32m"],
};

const BROKER: Program = Program {
    name: "broker",
    class: "org.apache.rocketmq.broker.BrokerStartup",
    memory: &["-Xms32m", "-Xmx256m", "-XX:MaxDirectMemorySize=256m"],
};

const BROKER_SETTINGS: [(&str, &str); 9] = [
    ("brokerId", "0"),
    ("brokerIP1", "127.0.0.1"),
    ("brokerIP2", "127.0.0.1"),
    ("bindAddress", "127.0.0.1"),
    ("mappedFileSizeCommitLog", "67108864"),
    ("mappedFileSizeConsumeQueue", "60000"),
    // Its files alone would double the memory.
    ("timerWheelEnable", "false"),
    // No flow control because the machine is slow: the broker would refuse what waits longer than 200 ms.
    ("waitTimeMillsInSendQueue", "30000"),
    ("osPageCacheBusyTimeOutMills", "30000"),
];

const SETTINGS: &str = "node.conf";

const FIRST_PORT: u16 = 10_000;
const PORTS: u16 = 20_000;

const START_LIMIT: Duration = Duration::from_secs(60);
const MAX_STARTS: u32 = 5;
