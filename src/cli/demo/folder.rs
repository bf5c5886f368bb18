//! The folder of a demonstration: a temporary one that goes with it, or one that was named and stays.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use crate::cli::files::{make_private_folder, write_private_file};
use crate::domain::base32;
use crate::private_files::file_to_append;
use crate::random;

/// What a temporary folder is called before its random end.
const TEMPORARY: &str = "unionhall-demo-";

/// The file that says what the folder is, before anything else is in it; by its text, for others may have a file of that name.
const MARK: &str = "demonstration";
const MARK_TEXT: &str = "A demonstration of unionhall, made by `unionhall demo`. Nobody in it is real.\n";

/// Locked by the process that has it.
const LOCK: &str = "running";

/// Its catalog.
pub(in crate::cli) const CATALOG: &str = "catalog.toml";

/// What its history is told into. What is not named here is never removed from a folder that somebody named.
const MADE: [&str; 14] = [
    CATALOG,
    "erasures",
    "mailbox",
    "node",
    "receiver",
    "sandbox.db",
    "sandbox.db-shm",
    "sandbox.db-wal",
    "secret",
    "sending",
    "unionhall.db",
    "unionhall.db-shm",
    "unionhall.db-wal",
    "unionhall.db-journal",
];

/// A folder that this process alone has for its demonstration.
pub(super) struct DemoFolder {
    pub path: PathBuf,
    /// It is removed at the end.
    pub is_temporary: bool,
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
        for path in MADE.map(|name| self.path.join(name)) {
            let removed = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            match removed {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
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
    std::fs::read(folder.join(MARK)).is_ok_and(|text| text == MARK_TEXT.as_bytes())
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
    for folder in temporary_folders().into_iter().filter(|folder| is_marked(folder)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody may have a file of any name, and nothing but what a demonstration made is ever removed.
    #[test]
    fn only_what_a_demonstration_made_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(folder.path().join(name), "theirs").unwrap();
        write(MARK);
        assert!(!is_marked(folder.path()) && DemoFolder::open(Some(folder.path())).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was written there");

        std::fs::remove_file(folder.path().join(MARK)).unwrap();
        let begun = DemoFolder::open(Some(folder.path())).unwrap();
        ["unionhall.db", "notes.txt"].into_iter().for_each(write);
        std::fs::create_dir(folder.path().join("mailbox")).unwrap();
        begun.clear().unwrap();
        let left: std::collections::BTreeSet<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [MARK, LOCK, "notes.txt"].map(Into::into).into());
    }
}
