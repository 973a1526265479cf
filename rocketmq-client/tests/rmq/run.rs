//! Running the program.

use std::{
    ffi::OsStr,
    process::{Output, Stdio},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
};

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The lines of a JSON report: the sends in the order of their places, and the summary.
    pub(crate) fn events(&self) -> (Vec<Value>, Value) {
        let line = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let mut events: Vec<Value> = self.out.lines().map(line).collect();
        let summary = events.pop().unwrap_or_else(|| panic!("no summary: {self:?}"));
        assert_eq!(summary["event"], "summary");
        assert!(events.iter().all(|event| event["event"] == "send"));
        events.sort_by_key(|event| event["seq"].as_u64());
        (events, summary)
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program writes UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// The program with arguments, without a secret in its environment; it is killed if the test ends before it.
pub(crate) fn command(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rmq"));
    command.args(args).env_remove("RMQ_SECRET_KEY").kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program with the words of `line` to its end.
pub(crate) async fn rmq(line: &str) -> Ended {
    command(line.split_whitespace()).output().await.expect("the program starts").into()
}

/// Runs the program with the words of `line` to its end, with `input` on its standard input.
pub(crate) async fn rmq_with_input(line: &str, input: &[u8]) -> Ended {
    let mut child =
        command(line.split_whitespace()).stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let write = async {
        stdin.write_all(input).await.expect("the program reads");
        drop(stdin);
    };
    let (output, ()) = tokio::join!(child.wait_with_output(), write);
    output.expect("the program ends").into()
}

/// A program that runs beside the test.
pub(crate) struct Running {
    child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) out: Lines<BufReader<ChildStdout>>,
    pub(crate) err: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(line: &str) -> Self {
        let mut child =
            command(line.split_whitespace()).stdin(Stdio::piped()).spawn().expect("the program starts");
        let stdin = child.stdin.take().expect("it is piped");
        let out = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let err = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        Self { child, stdin, out, err }
    }

    /// Sends it a signal by its name, as `kill` does.
    pub(crate) async fn signal(&self, name: &str) {
        let id = self.child.id().expect("it still runs").to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await;
        assert!(sent.expect("there is a program `kill`").success());
    }

    /// The next line on standard output as JSON.
    pub(crate) async fn event(&mut self) -> Value {
        let line = line_of(&mut self.out).await.expect("one more line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Reads standard error up to a line that holds `text`.
    pub(crate) async fn until_told(&mut self, text: &str) {
        while !line_of(&mut self.err).await.expect("one more line").contains(text) {}
    }

    /// Waits for its end; returns the exit code and what was left on standard error.
    pub(crate) async fn end(mut self) -> (Option<i32>, String) {
        drop(self.stdin);
        let mut left = String::new();
        while let Some(line) = line_of(&mut self.err).await {
            left += &line;
        }
        (self.child.wait().await.expect("the program ends").code(), left)
    }
}

async fn line_of(lines: &mut Lines<impl AsyncBufRead + Unpin>) -> Option<String> {
    lines.next_line().await.expect("the program writes UTF-8")
}
