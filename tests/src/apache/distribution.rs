//! The published jars of one version and our own Java programs, fetched and compiled once.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    cache,
    error::HarnessError,
    jvm,
    process::{run, watched},
};

/// A complete copy of one version of Apache RocketMQ.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    jars: PathBuf,
    programs: PathBuf,
}

impl Distribution {
    /// Takes `version` from the cache, or fetches and compiles what is missing there.
    pub(crate) fn fetch(version: &str) -> Result<Self, HarnessError> {
        let java = Path::new(env!("CARGO_MANIFEST_DIR")).join("java");
        let (pom, dump) = (java.join("pom.xml"), java.join("Dump.java"));
        let jars = cache::made(version, "jars", &pom, |target| {
            let mut maven = watched("mvn");
            maven.args(["-q", "-B", "--strict-checksums", "-f"]).arg(&pom);
            maven.arg(format!("-Drocketmq.version={version}")).arg("dependency:copy-dependencies");
            maven.arg(format!("-DoutputDirectory={}", target.display()));
            run("mvn", maven, target, FETCH_LIMIT).map(drop)
        })?;
        let programs = compile(version, &jars, &dump)?;
        Ok(Self { jars, programs })
    }

    /// The class path of everything.
    pub(crate) fn class_path(&self) -> String {
        format!("{}:{}/*", self.programs.display(), self.jars.display())
    }
}

/// The arguments with which `java` runs the class in the file `source`, of the same name, beside the jars of `version`:
/// a Java machine as it comes, that logs nothing and keeps its files in `home`. What is missing is fetched and compiled.
///
/// # Errors
///
/// [`HarnessError`] when it cannot be fetched, or does not compile.
pub fn java_program(version: &str, source: &Path, home: &Path) -> Result<Vec<String>, HarnessError> {
    let Distribution { jars, .. } = Distribution::fetch(version)?;
    let classes = compile(version, &jars, source)?;
    let class_path = format!("{}:{}/*", classes.display(), jars.display());
    let mut arguments =
        jvm::quiet(home, &class_path).map_err(HarnessError::io(|| format!("write to {home:?}")))?;
    arguments.extend(source.file_stem().map(|name| name.to_string_lossy().into_owned()));
    Ok(arguments)
}

/// The folder of the classes that `source` is compiled to.
fn compile(version: &str, jars: &Path, source: &Path) -> Result<PathBuf, HarnessError> {
    cache::made(version, "classes", source, |target| {
        let mut compiler = watched("javac");
        compiler.arg("-nowarn").arg("-cp").arg(jars.join("*")).arg("-d").arg(target).arg(source);
        run("javac", compiler, target, COMPILE_LIMIT).map(drop)
    })
}

const FETCH_LIMIT: Duration = Duration::from_secs(600);
const COMPILE_LIMIT: Duration = Duration::from_secs(120);
