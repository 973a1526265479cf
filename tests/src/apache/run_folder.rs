//! The folder of one cluster's run.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
};

use super::{cache, error::HarnessError};

/// A fresh folder, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    /// Locked while the run lasts; the system unlocks it when the process ends in any way.
    _lock: File,
}

impl RunFolder {
    /// Makes a folder of a new name, and removes those whose process has ended.
    pub(crate) fn new() -> Result<Self, HarnessError> {
        let _cache = cache::lock()?;
        let runs = cache::folder().join("run");
        fs::create_dir_all(&runs).map_err(HarnessError::io(|| format!("create {runs:?}")))?;
        remove_ended(&runs).map_err(HarnessError::io(|| format!("clear {runs:?}")))?;
        let mut names = (0..).map(|number| runs.join(format!("{}-{number}", process::id())));
        let path = names.find(|path| !path.exists()).expect("the numbers do not end");
        fs::create_dir(&path).map_err(HarnessError::io(|| format!("create {path:?}")))?;
        let lock = File::create(path.join(LOCK)).and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(HarnessError::io(|| format!("lock {path:?}")))?;
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What stays is removed by a later run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn remove_ended(runs: &Path) -> io::Result<()> {
    for run in fs::read_dir(runs)? {
        let run = run?.path();
        let alive = File::open(run.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
        if !alive {
            // Its own process may just be removing it.
            let _ = fs::remove_dir_all(run);
        }
    }
    Ok(())
}

const LOCK: &str = "lock";
