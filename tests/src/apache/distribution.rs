//! The published jars of one version and our own Java programs, fetched and compiled once.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

use super::error::HarnessError;

/// A complete copy of one version of Apache RocketMQ.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    jars: PathBuf,
    programs: PathBuf,
}

impl Distribution {
    /// Takes `version` from the cache, or fetches and compiles what is missing there.
    pub(crate) fn fetch(version: &str) -> Result<Self, HarnessError> {
        let (pom, dump) = (java_folder().join("pom.xml"), java_folder().join("Dump.java"));
        let jars = cached(version, "jars", &pom, |target| {
            let mut maven = Command::new("mvn");
            maven.args(["-q", "-B", "--strict-checksums", "-f"]).arg(&pom);
            maven.arg(format!("-Drocketmq.version={version}")).arg("dependency:copy-dependencies");
            maven.arg(format!("-DoutputDirectory={}", target.display()));
            run(maven)
        })?;
        let programs = cached(version, "classes", &dump, |target| {
            let mut compiler = Command::new("javac");
            compiler.arg("-nowarn").arg("-cp").arg(jars.join("*")).arg("-d").arg(target).arg(&dump);
            run(compiler)
        })?;
        Ok(Self { jars, programs })
    }

    /// The class path of everything.
    pub(crate) fn class_path(&self) -> String {
        format!("{}:{}/*", self.programs.display(), self.jars.display())
    }
}

/// The folder of everything that the harness fetches, makes and runs.
pub(crate) fn cache_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("apache")
}

/// An exclusive lock over the cache among all processes, until it is dropped.
pub(crate) fn lock_cache() -> Result<File, HarnessError> {
    let folder = cache_folder();
    fs::create_dir_all(&folder).map_err(HarnessError::io(|| format!("create {folder:?}")))?;
    let lock =
        File::create(folder.join("lock")).map_err(HarnessError::io(|| "create the lock of the cache"))?;
    lock.lock().map_err(HarnessError::io(|| "lock the cache"))?;
    Ok(lock)
}

/// Runs `command` to its end.
pub(crate) fn run(mut command: Command) -> Result<Vec<u8>, HarnessError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().map_err(|source| HarnessError::Tool { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = [output.stdout, output.stderr].concat();
    let output_text = String::from_utf8_lossy(&said).into_owned();
    Err(HarnessError::Ended { what: program, status: output.status, output: output_text })
}

fn java_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("java")
}

/// The folder of what `make` produces from `source`. It is renamed into place when it is complete, and its
/// name holds a digest of the source: what exists is whole and current.
fn cached(
    version: &str,
    kind: &str,
    source: &Path,
    make: impl FnOnce(&Path) -> Result<Vec<u8>, HarnessError>,
) -> Result<PathBuf, HarnessError> {
    let text = fs::read(source).map_err(HarnessError::io(|| format!("read {source:?}")))?;
    let digest: String = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let folder = cache_folder().join(version).join(format!("{kind}-{digest}"));
    let _lock = lock_cache()?;
    if folder.exists() {
        return Ok(folder);
    }
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(HarnessError::io(|| format!("remove {partial:?}")))?;
    }
    fs::create_dir_all(&partial).map_err(HarnessError::io(|| format!("create {partial:?}")))?;
    make(&partial)?;
    fs::rename(&partial, &folder).map_err(HarnessError::io(|| format!("rename {partial:?}")))?;
    Ok(folder)
}
