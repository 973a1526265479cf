//! What is made once and used by every run, in a folder that all processes share.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::error::HarnessError;

/// The folder of everything that the harness fetches, makes and runs.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("apache")
}

/// An exclusive lock over the cache among all processes, until it is dropped.
pub(crate) fn lock() -> Result<File, HarnessError> {
    let folder = folder();
    fs::create_dir_all(&folder).map_err(HarnessError::io(|| format!("create {folder:?}")))?;
    let lock = File::create(folder.join("lock")).and_then(|file| file.lock().map(|()| file));
    lock.map_err(HarnessError::io(|| format!("lock {folder:?}")))
}

/// The folder of what `make` produces from the file `source` for `version`. It is renamed into place when it
/// is complete, and its name holds a digest of the source: what exists is whole and current.
pub(crate) fn made(
    version: &str,
    kind: &str,
    source: &Path,
    make: impl FnOnce(&Path) -> Result<(), HarnessError>,
) -> Result<PathBuf, HarnessError> {
    let text = fs::read(source).map_err(HarnessError::io(|| format!("read {source:?}")))?;
    let digest: String = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let target = folder().join(version).join(format!("{kind}-{digest}"));
    let _lock = lock()?;
    if target.exists() {
        return Ok(target);
    }
    let partial = target.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(HarnessError::io(|| format!("remove {partial:?}")))?;
    }
    fs::create_dir_all(&partial).map_err(HarnessError::io(|| format!("create {partial:?}")))?;
    make(&partial)?;
    fs::rename(&partial, &target).map_err(HarnessError::io(|| format!("rename {partial:?}")))?;
    Ok(target)
}
