//! A child process that ends with its handle, and with the test process, however that ends.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    time::Duration,
};

use super::{
    error::HarnessError,
    wait::{Missing, wait_until},
};

/// A running program. Dropping it kills the program and waits for its end.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    /// Held by this process alone: its end of file tells the watcher that nobody holds the program any more.
    leash: ChildStdin,
    folder: PathBuf,
}

impl Process {
    /// Starts what [`watched`] has prepared; what it prints goes to files in `folder`.
    pub(crate) fn spawn(name: &str, mut command: Command, folder: &Path) -> Result<Self, HarnessError> {
        let file =
            |name| File::create(folder.join(name)).map_err(HarnessError::io(|| format!("create {name}")));
        command.stdin(Stdio::piped()).stdout(file(STDOUT)?).stderr(file(STDERR)?);
        let mut child = command.spawn().map_err(HarnessError::io(|| "start a shell"))?;
        let leash = child.stdin.take().expect("the standard input was asked to be a pipe");
        Ok(Self { name: name.to_owned(), child, leash, folder: folder.to_owned() })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the program at once and waits for its end; one that has ended stays as it is.
    pub(crate) fn kill(&mut self) -> Result<(), HarnessError> {
        self.end().map_err(HarnessError::io(|| format!("kill {}", self.name)))
    }

    /// Stops the program where it is, as a machine does that hangs: its sockets stay open, and keep what comes.
    pub(crate) fn freeze(&mut self) -> Result<(), HarnessError> {
        self.signal("STOP")?;
        // The signal only asks for it.
        let look =
            || if self.is_stopped()? { Ok(()) } else { Err(Missing::Yet("some threads run".to_owned())) };
        wait_until(|| format!("stop of {}", self.name), STOP_LIMIT, look)
    }

    /// Lets the program go on.
    pub(crate) fn thaw(&mut self) -> Result<(), HarnessError> {
        self.signal("CONT")
    }

    /// Fails when the program has ended, with all that it has printed.
    pub(crate) fn check_running(&mut self) -> Result<(), HarnessError> {
        self.try_wait()?.map_or(Ok(()), |status| Err(self.ended(status)))
    }

    /// What the program has printed so far.
    pub(crate) fn output(&self) -> String {
        let printed = [STDOUT, STDERR].map(|name| self.printed(name));
        String::from_utf8_lossy(&printed.concat()).into_owned()
    }

    fn printed(&self, file: &str) -> Vec<u8> {
        fs::read(self.folder.join(file)).unwrap_or_default()
    }

    /// Sends a signal to the program alone. Once that has ended, its number may be another's.
    fn signal(&mut self, signal: &str) -> Result<(), HarnessError> {
        self.check_running()?;
        let mut kill = Command::new("sh");
        kill.args(["-c", r#"kill -s "$1" "$2""#, "sh", signal, &self.id().to_string()]);
        let sent = kill.status().and_then(|status| {
            if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
        });
        sent.map_err(HarnessError::io(|| format!("send {signal} to {}", self.name)))
    }

    /// Whether every thread has stopped.
    fn is_stopped(&self) -> Result<bool, HarnessError> {
        let threads = Path::new("/proc").join(self.id().to_string()).join("task");
        let stopped = fs::read_dir(&threads).and_then(|threads| {
            for thread in threads {
                let state = fs::read_to_string(thread?.path().join("stat"))?;
                // It stands behind the name, which may hold anything.
                if state.rsplit(')').next().is_none_or(|rest| !rest.starts_with(" T ")) {
                    return Ok(false);
                }
            }
            Ok(true)
        });
        stopped.map_err(HarnessError::io(|| format!("read {threads:?}")))
    }

    fn try_wait(&mut self) -> Result<Option<ExitStatus>, HarnessError> {
        self.child.try_wait().map_err(HarnessError::io(|| format!("wait for {}", self.name)))
    }

    fn ended(&self, status: ExitStatus) -> HarnessError {
        if status.code() == Some(NOT_FOUND) {
            return HarnessError::NoTool { program: self.name.clone() };
        }
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
pub(crate) fn watched(program: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", WATCH, "sh", program]);
    command
}

/// Runs what [`watched`] has prepared to its end, and returns what it has printed to standard output.
pub(crate) fn run(
    name: &str,
    command: Command,
    folder: &Path,
    limit: Duration,
) -> Result<Vec<u8>, HarnessError> {
    let mut process = Process::spawn(name, command, folder)?;
    let status = wait_until(
        || format!("end of {name}"),
        limit,
        || process.try_wait()?.ok_or_else(|| Missing::Yet(process.output())),
    )?;
    if status.success() { Ok(process.printed(STDOUT)) } else { Err(process.ended(status)) }
}

/// `$$` is the shell's number, which the program takes over with `exec`.
const WATCH: &str = r#"
exec 3<&0
{ read -r _ || kill -9 $$; } <&3 3<&- &
exec "$@" </dev/null 3<&-
"#;

/// The status of a shell that cannot find what it is to run.
const NOT_FOUND: i32 = 127;

/// How long the last thread may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::apache::run_folder::RunFolder;

    fn exists(id: u32) -> bool {
        Path::new("/proc").join(id.to_string()).exists()
    }

    fn shell(script: &str) -> Command {
        let mut command = watched("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn dropping_the_handle_ends_the_program() {
        let folder = RunFolder::new().unwrap();
        let process = Process::spawn("sleeper", shell("exec sleep 1000"), folder.path()).unwrap();
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
    fn a_frozen_program_hears_nothing_until_it_is_thawed() {
        let folder = RunFolder::new().unwrap();
        let command = shell("trap 'echo heard; exit 7' TERM; echo ready; while :; do :; done");
        let mut process = Process::spawn("listener", command, folder.path()).unwrap();
        let ready = || if process.output() == "ready\n" { Ok(()) } else { Err(process.output().into()) };
        wait_until(|| "a line".to_owned(), STOP_LIMIT, ready).unwrap();
        process.freeze().unwrap();
        process.signal("TERM").unwrap();
        process.check_running().unwrap();
        assert_eq!(process.output(), "ready\n");
        process.thaw().unwrap();
        let ended = || process.try_wait()?.ok_or_else(|| Missing::Yet(process.output()));
        let status = wait_until(|| "its end".to_owned(), STOP_LIMIT, ended).unwrap();
        assert_eq!((status.code(), &*process.output()), (Some(7), "ready\nheard\n"));
    }

    #[test]
    fn a_frozen_program_can_be_killed_and_is_then_gone() {
        let folder = RunFolder::new().unwrap();
        let mut process = Process::spawn("sleeper", shell("exec sleep 1000"), folder.path()).unwrap();
        process.freeze().unwrap();
        process.kill().unwrap();
        assert!(!exists(process.id()));
        process.kill().unwrap();
        assert!(matches!(process.freeze(), Err(HarnessError::Ended { .. })));
    }

    #[test]
    fn a_program_that_fails_is_reported_with_what_it_printed() {
        let folder = RunFolder::new().unwrap();
        let command = shell("echo no such luck; echo none at all >&2; exit 3");
        let error = run("unlucky", command, folder.path(), Duration::MAX).unwrap_err().to_string();
        assert!(error.contains("unlucky ended with exit status: 3"), "{error}");
        assert!(error.contains("no such luck") && error.contains("none at all"), "{error}");
    }

    #[test]
    fn a_program_that_does_not_end_is_given_up() {
        let folder = RunFolder::new().unwrap();
        let command = shell("exec sleep 1000");
        let error = run("sleeper", command, folder.path(), Duration::ZERO).unwrap_err();
        assert!(matches!(error, HarnessError::NotInTime { .. }), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_what_to_install() {
        let folder = RunFolder::new().unwrap();
        let command = watched("no-such-program");
        let error = run("no-such-program", command, folder.path(), Duration::MAX).unwrap_err().to_string();
        assert!(error.contains("cannot find no-such-program") && error.contains("maven"), "{error}");
    }
}
