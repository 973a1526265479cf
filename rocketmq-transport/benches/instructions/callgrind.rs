//! Runs this program under callgrind and adds up what it counted.

use std::{
    env,
    error::Error,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// The instructions of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    /// Those of the program itself, with all that is linked into it.
    pub(crate) program: u64,
    /// Those, and those of the libraries it loads, which is the C library.
    pub(crate) whole: u64,
}

/// Performs `operation` so many times, in one run for each of `counts`, at the same time.
///
/// What callgrind wrote stays in the target directory, for `callgrind_annotate`.
pub(crate) fn count_each(operation: &str, counts: [u64; 2]) -> Outcome<[Counted; 2]> {
    let program = env::current_exe()?;
    let profiles = counts.map(|count| {
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{operation}.{count}.callgrind"))
    });
    let mut runs = Vec::new();
    for (count, profile) in counts.iter().zip(&profiles) {
        runs.push(start(&program, operation, *count, profile)?);
    }
    for run in runs {
        let output = run.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("{operation}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    let [few, many] = profiles.map(|profile| read(&profile, &program));
    Ok([few?, many?])
}

/// The name and version of the C library.
pub(crate) fn libc() -> String {
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let name = asked.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let name = name.and_then(|name| String::from_utf8(name).ok()).unwrap_or_default();
    if name.trim().is_empty() { "another".into() } else { name.trim().into() }
}

/// Starts one run. It gets no environment and a program name of always the same length: both are on the stack or in
/// the heap, and where things are decides how some copies are made.
fn start(program: &Path, operation: &str, count: u64, profile: &Path) -> Outcome<Child> {
    let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
        return Err("the program has no name".into());
    };
    let mut option = std::ffi::OsString::from("--callgrind-out-file=");
    option.push(profile);
    let valgrind = find("valgrind").ok_or("valgrind is missing: install it")?;
    let child = Command::new(valgrind)
        .args(["--tool=callgrind", "--quiet", "--compress-strings=no", "--compress-pos=no"])
        .arg(option)
        .arg(Path::new(".").join(name))
        .args(["run", operation, &count.to_string()])
        .current_dir(folder)
        .env_clear()
        .stderr(Stdio::piped())
        .spawn()?;
    Ok(child)
}

/// Where the command is, for an environment without a path.
fn find(command: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(command)).find(|path| path.is_file())
}

/// Adds up a profile by whether the object that an instruction is of is `program`.
fn read(profile: &Path, program: &Path) -> Outcome<Counted> {
    let program = program.to_str().ok_or("the program's path is no text")?;
    let (mut counted, mut summary) = (Counted::default(), None);
    let (mut of_program, mut is_call) = (false, false);
    for line in BufReader::new(File::open(profile)?).lines() {
        let line = line?;
        if let Some(object) = line.strip_prefix("ob=") {
            of_program = object == program;
        } else if line.starts_with("calls=") {
            // The line after it repeats what the called function took.
            is_call = true;
        } else if let Some(total) = line.strip_prefix("summary: ") {
            summary = Some(total.parse::<u64>()?);
        } else if line.starts_with(|first: char| first.is_ascii_digit()) && !std::mem::take(&mut is_call) {
            let instructions = line.split(' ').nth(1).unwrap_or("0").parse::<u64>()?;
            counted.whole += instructions;
            counted.program += if of_program { instructions } else { 0 };
        }
    }
    if summary != Some(counted.whole) || counted.program == 0 {
        return Err(format!("{}: {counted:?} found, {summary:?} in all", profile.display()).into());
    }
    Ok(counted)
}
