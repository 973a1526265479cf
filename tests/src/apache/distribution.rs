//! The published jars of one version and our own Java programs, fetched and compiled once.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    cache,
    error::HarnessError,
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
        let programs = cache::made(version, "classes", &dump, |target| {
            let mut compiler = watched("javac");
            compiler.arg("-nowarn").arg("-cp").arg(jars.join("*")).arg("-d").arg(target).arg(&dump);
            run("javac", compiler, target, COMPILE_LIMIT).map(drop)
        })?;
        Ok(Self { jars, programs })
    }

    /// The class path of everything.
    pub(crate) fn class_path(&self) -> String {
        format!("{}:{}/*", self.programs.display(), self.jars.display())
    }
}

const FETCH_LIMIT: Duration = Duration::from_secs(600);
const COMPILE_LIMIT: Duration = Duration::from_secs(120);
