//! A child process that ends with its handle, and with the test process, however that ends.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
};

use super::error::HarnessError;

/// A running program. Dropping it kills the program and waits for its end.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    /// Held by this process alone: its end of file tells the watcher that nobody holds the program any more.
    leash: ChildStdin,
    output: PathBuf,
}

impl Process {
    /// Starts what [`watched`] has prepared; all it prints goes to the file `output`.
    pub(crate) fn spawn(name: &str, mut command: Command, output: PathBuf) -> Result<Self, HarnessError> {
        let stdout = File::create(&output).map_err(HarnessError::io(|| format!("create {output:?}")))?;
        let stderr = stdout.try_clone().map_err(HarnessError::io(|| format!("share {output:?}")))?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .map_err(|source| HarnessError::Tool { program: "sh".to_owned(), source })?;
        let leash = child.stdin.take().expect("the standard input was asked to be a pipe");
        Ok(Self { name: name.to_owned(), child, leash, output })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails when the program has ended, with all that it has printed.
    pub(crate) fn check_running(&mut self) -> Result<(), HarnessError> {
        let status = self.child.try_wait().map_err(HarnessError::io(|| format!("wait for {}", self.name)))?;
        status.map_or(Ok(()), |status| Err(self.ended(status)))
    }

    /// What the program has printed so far.
    pub(crate) fn output(&self) -> String {
        let printed = fs::read(&self.output).unwrap_or_default();
        String::from_utf8_lossy(&printed).into_owned()
    }

    fn ended(&self, status: ExitStatus) -> HarnessError {
        HarnessError::Ended { what: self.name.clone(), status, output: self.output() }
    }

    /// Kills the program. The watcher is told to stand down before the program is reaped, so that it never
    /// kills another process which was given the same number.
    fn end(&mut self) -> io::Result<()> {
        self.child.kill()?;
        // An error means that the watcher has gone already.
        let _ = self.leash.write_all(b"\n");
        self.child.wait().map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            // Nothing else can be done here, and a panic in a drop would hide the test's own.
            eprintln!("cannot end {}: {error}", self.name);
        }
    }
}

/// A command that runs `program` in place of a shell which has left a watcher behind: that reads standard
/// input and kills the program at its end, unless a line came first.
pub(crate) fn watched(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", WATCH, "sh"]).arg(program);
    command
}

/// `$$` is the shell's number, which the program takes over with `exec`.
const WATCH: &str = r#"
exec 3<&0
{ read -r _ || kill -9 $$; } <&3 3<&- &
exec "$@" </dev/null 3<&-
"#;

#[cfg(test)]
mod tests {
    use std::{env, os::unix::process::ExitStatusExt, path::Path, process};

    use super::*;

    fn exists(id: u32) -> bool {
        Path::new(&format!("/proc/{id}")).exists()
    }

    fn spawn(name: &str, program: &str, arguments: &[&str]) -> Process {
        let mut command = watched(program);
        command.args(arguments);
        let output = env::temp_dir().join(format!("rocketmq-tests-{name}-{}", process::id()));
        Process::spawn(name, command, output).expect("a shell starts everywhere")
    }

    #[test]
    fn dropping_the_handle_ends_the_program() {
        let process = spawn("dropped", "sleep", &["1000"]);
        let id = process.id();
        assert!(exists(id));
        drop(process);
        assert!(!exists(id));
    }

    #[test]
    fn the_program_is_killed_when_the_process_that_held_it_is_killed() {
        let mut holder =
            Command::new("sleep").arg("1000").stdout(Stdio::piped()).spawn().expect("sleep starts");
        let leash = holder.stdout.take().expect("the standard output was asked to be a pipe");
        let mut program =
            watched("sleep").arg("1000").stdin(leash).spawn().expect("a shell starts everywhere");
        holder.kill().expect("it runs");
        holder.wait().expect("it was started here");
        let status = program.wait().expect("it was started here");
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn a_program_that_ends_by_itself_is_reported_with_what_it_printed() {
        let mut process = spawn("spoken", "sh", &["-c", "echo no such luck; exit 3"]);
        process.child.wait().expect("it was started here");
        let error = process.check_running().expect_err("it has ended").to_string();
        assert!(error.contains("spoken ended with exit status: 3"), "{error}");
        assert!(error.contains("no such luck"), "{error}");
    }
}
