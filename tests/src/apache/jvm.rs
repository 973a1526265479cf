//! How every Java process of the harness is run.

use std::{fs, io, path::Path};

/// The arguments of a Java machine that starts quickly, logs nothing, and keeps its files in `home`.
pub(crate) fn arguments(home: &Path, class_path: &str) -> io::Result<Vec<String>> {
    let quick = QUICK.iter().map(|&argument| argument.to_owned());
    Ok(quick.chain(quiet(home, class_path)?).collect())
}

/// The arguments of a Java machine as it comes, but that it logs nothing and keeps its files in `home`, where the
/// configuration of its logs is written.
pub(crate) fn quiet(home: &Path, class_path: &str) -> io::Result<Vec<String>> {
    fs::create_dir_all(home.join("conf"))?;
    for quiet in [QUIET_BROKER, QUIET_NAME_SERVER] {
        fs::write(home.join(quiet), QUIET)?;
    }
    let (home, quiet) = (home.display(), home.join(QUIET_BROKER));
    let own = [
        format!("-Duser.home={home}"),
        format!("-Djava.io.tmpdir={home}"),
        format!("-Drmq.logback.configurationFile={}", quiet.display()),
        format!("-Dlogback.configurationFile={}", quiet.display()),
        "-cp".to_owned(),
        class_path.to_owned(),
    ];
    Ok(FIXED.iter().map(|&argument| argument.to_owned()).chain(own).collect())
}

const QUICK: [&str; 2] = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

const FIXED: [&str; 6] = [
    "-XX:-UsePerfData",
    "-Drocketmq.client.logUseSlf4j=true",
    // Version 4 needs these to unmap its files.
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
];

/// Version 4 reads the files of these two names in its home, version 5 the one that a property names.
const QUIET_BROKER: &str = "conf/logback_broker.xml";
const QUIET_NAME_SERVER: &str = "conf/logback_namesrv.xml";

const QUIET: &str = r#"<configuration>
  <statusListener class="ch.qos.logback.core.status.NopStatusListener"/>
  <root level="OFF"/>
</configuration>
"#;
