//! The folder of a demonstration: a temporary one that goes with it, or one that was named and stays.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::cli::files::{make_private_folder, write_private_file};
use crate::domain::base32;
use crate::private_files::file_to_append;
use crate::random;

/// What a temporary folder is called before its random end.
const TEMPORARY: &str = "unionhall-demo-";

/// The file that says what the folder is, before anything else is in it.
const MARK: &str = "demonstration";
/// Its catalog.
pub(in crate::cli) const CATALOG: &str = "catalog.toml";

/// Locked by the process that has it.
const LOCK: &str = "running";
const MARK_TEXT: &str = "A demonstration of unionhall, made by `unionhall demo`. Nobody in it is real.\n";

/// A folder that this process alone has for its demonstration.
pub(super) struct DemoFolder {
    pub path: PathBuf,
    is_temporary: bool,
    _alone: File,
}

impl DemoFolder {
    /// The one that was named, or a temporary one.
    pub(super) fn open(named: Option<&Path>) -> anyhow::Result<Self> {
        let is_temporary = named.is_none();
        let path = match named {
            Some(path) => {
                require_own(path)?;
                path.to_owned()
            }
            None => {
                remove_left_behind();
                let end = base32::encode::<8>(&random::bytes::<5>()?);
                std::env::temp_dir().join(format!("{TEMPORARY}{}", String::from_utf8_lossy(&end)))
            }
        };
        make_private_folder(&path)?;
        let Some(alone) = lock(&path)? else {
            bail!(
                "a demonstration runs in {} already; end that one, or give another folder with --data",
                path.display()
            )
        };
        if !is_marked(&path) {
            write_private_file(&path.join(MARK), MARK_TEXT)?;
        }
        Ok(Self { path, is_temporary, _alone: alone })
    }

    /// Removes what an earlier process left that was ended while it told the history.
    pub(super) fn clear(&self) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let removed = match entry.file_name() {
                name if name == MARK || name == LOCK => continue,
                _ if entry.file_type()?.is_dir() => std::fs::remove_dir_all(entry.path()),
                _ => std::fs::remove_file(entry.path()),
            };
            removed.with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
        Ok(())
    }

    /// As a flag of other commands.
    pub(super) fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}

impl Drop for DemoFolder {
    fn drop(&mut self) {
        if self.is_temporary {
            // What is left the next demonstration removes.
            let _gone_or_later = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Fails where a folder holds anything else than a demonstration; before anything is written there.
fn require_own(path: &Path) -> anyhow::Result<()> {
    let is_empty = || std::fs::read_dir(path).map_or(true, |mut entries| entries.next().is_none());
    ensure!(
        is_marked(path) || is_empty(),
        "{} is not empty and no demonstration's folder. Nothing in it was changed; give a new folder with --data, or leave it out",
        path.display()
    );
    Ok(())
}

/// Whether a data folder says that it is a demonstration's.
pub(in crate::cli) fn is_marked(folder: &Path) -> bool {
    folder.join(MARK).is_file()
}

/// Fails where a folder is a demonstration's, which a command is not for.
pub(in crate::cli) fn refuse(data: &Path) -> anyhow::Result<()> {
    ensure!(
        !is_marked(data),
        "{} is a demonstration's folder, which only `unionhall demo` serves: nobody in it is real. Nothing was changed",
        data.display()
    );
    Ok(())
}

/// None if another process has it.
fn lock(folder: &Path) -> anyhow::Result<Option<File>> {
    let path = folder.join(LOCK);
    let file = file_to_append(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => bail!("cannot lock {}: {error}", path.display()),
    }
}

/// Whether a demonstration runs in a folder now.
pub(super) fn is_running(folder: &Path) -> anyhow::Result<bool> {
    Ok(is_marked(folder) && lock(folder)?.is_none())
}

/// The folder whose demonstration is meant where none is named: of the one that runs in a temporary folder.
pub(super) fn find_running() -> anyhow::Result<PathBuf> {
    let mut running = Vec::new();
    for folder in temporary_folders() {
        if is_running(&folder)? {
            running.push(folder);
        }
    }
    match &mut running[..] {
        [one] => Ok(std::mem::take(one)),
        [] => bail!(
            "no demonstration runs in a temporary folder; start one with `unionhall demo`, or name its folder with --data"
        ),
        several => {
            let named: Vec<_> = several.iter().map(|folder| folder.display().to_string()).collect();
            bail!("several demonstrations run; name the folder of one with --data: {}", named.join(", "))
        }
    }
}

/// Folders of this user that an earlier demonstration was killed in.
fn remove_left_behind() {
    for folder in temporary_folders() {
        if let Ok(Some(_alone)) = lock(&folder) {
            // Whatever stays is in nobody's way.
            let _gone_or_later = std::fs::remove_dir_all(&folder);
        }
    }
}

fn temporary_folders() -> Vec<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return Vec::new() };
    let named = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(TEMPORARY));
    let is_own = |path: &PathBuf| {
        // Of a link the link itself is looked at: it leads nowhere.
        std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && found.uid() == own)
    };
    named.map(|entry| entry.path()).filter(is_own).collect()
}
