//! The files of the data folder, and why one cannot be used.

use std::fmt::Display;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

use crate::domain::base32;
use crate::domain::csv::MOST_MISTAKES;
use crate::domain::figure::grouped;
use crate::domain::text::escape;
use crate::private_files::{file_to_append, folder_of, make_folder, new_file, new_file_if};
use crate::random;

/// Makes a folder that only its owner can look into, if it is not there.
pub(super) fn make_private_folder(path: &Path) -> anyhow::Result<()> {
    make_folder(path)
        .with_context(|| format!("cannot make the data folder {}; give another with --data", path.display()))
}

/// Writes a file that only its owner can read, whole or not at all: beside its place first, then put there. Fails if it
/// is there already.
pub(super) fn write_private_file(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let unfinished = path.with_extension(format!("part-{}", std::process::id()));
    let write = || {
        let mut file = new_file(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::hard_link(&unfinished, path)
    };
    let written = write();
    // Gone already, or never made.
    let _gone = std::fs::remove_file(&unfinished);
    written.with_context(|| {
        format!("cannot write {}; let this user write there, or give another folder with --data", path.display())
    })
}

/// A new file with addresses that only its owner can read. Where root writes it into a folder of the service's user, whose data folder
/// `data` is, it is that user's; nobody else is given a copy of the records.
pub(super) fn new_file_of(path: &Path, data: &Path) -> std::io::Result<File> {
    let service = std::fs::metadata(data).ok().map(|data| data.uid());
    new_file_if(path, |owner| service == Some(owner))
}

/// Why a file that was named could not be written, and the way out.
pub(super) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}; let this user write there, or give another place", path.display())
}

/// A name beside a file's for what is not finished, of this process alone.
pub(super) fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".part-{}-{what}", std::process::id()));
    name.into()
}

/// A file that is not finished: it goes when the work ends. Whoever works on it holds its lock.
pub(super) struct UnfinishedFile {
    path: PathBuf,
}

impl UnfinishedFile {
    /// A new one beside the file that is to be, which has addresses; `what` it is, in a word.
    pub(super) fn beside(path: &Path, data: &Path, what: &str) -> std::io::Result<(Self, File)> {
        // What cannot be removed is in nobody's way.
        let _left = Self::remove_left(path, what);
        let unfinished = Self { path: beside(path, what) };
        loop {
            let file = new_file_of(&unfinished.path, data)?;
            // Another run may have taken it for one that was left, before it was locked. Some file systems know no locks.
            if file.lock().is_err() || unfinished.path.exists() {
                return Ok((unfinished, file));
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes those of runs that were killed.
    fn remove_left(path: &Path, what: &str) -> std::io::Result<()> {
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { return Ok(()) };
        for entry in std::fs::read_dir(folder_of(path))?.flatten() {
            let other = entry.file_name().to_string_lossy().into_owned();
            let rest = other.strip_prefix(&name).and_then(|rest| rest.strip_prefix(".part-"));
            if rest.is_some_and(|rest| rest.ends_with(&format!("-{what}"))) {
                let file = File::open(entry.path())?;
                if file.try_lock().is_ok() {
                    std::fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        // Put in its place, or never made.
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// Puts a finished file where it belongs, and nothing there is overwritten.
pub(super) fn put_in_place(unfinished: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(unfinished, path) {
        // Some file systems for sticks and shares know no links.
        Err(error) if error.kind() != ErrorKind::AlreadyExists && !path.exists() => std::fs::rename(unfinished, path)?,
        linked => linked?,
    }
    File::open(folder_of(path))?.sync_all()
}

/// The same instead of what is there.
pub(super) fn replace(unfinished: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::rename(unfinished, path)?;
    File::open(folder_of(path))?.sync_all()
}

/// The text of a file that somebody wrote, or of standard input (`-`), and what that is called in an error.
pub(super) fn read_text(file: &str, largest_kib: u64) -> anyhow::Result<(String, &str)> {
    let (name, largest) = (if file == "-" { "standard input" } else { file }, largest_kib << 10);
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().lock().take(largest + 1).read_to_end(&mut bytes),
        _ => File::open(file).and_then(|file| file.take(largest + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => {
            anyhow!(
                "this user may not read {name}; give it on standard input: write - for its name, and <{name} at the end"
            )
        }
        _ => anyhow!("cannot read {name}: {error}"),
    })?;
    if bytes.len() as u64 > largest {
        bail!("{name} is larger than {largest_kib} KiB, which is the most");
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        bail!("{name} is text in UTF-16; save it in UTF-8 (a spreadsheet calls that CSV UTF-8)");
    }
    Ok((String::from_utf8(bytes).map_err(|_| anyhow!("{name} is not text in UTF-8; save it so"))?, name))
}

/// Everything that is wrong with a file, under its name. Each mistake is one line, whatever it quotes of the file.
pub(super) fn mistakes(name: &str, mistakes: &[impl Display]) -> anyhow::Error {
    let lines: Vec<_> = mistakes.iter().map(|mistake| escape(&mistake.to_string(), &['\t']).into_owned()).collect();
    match lines.as_slice() {
        [one] => anyhow!("{name} has a mistake: {one}"),
        all if all.len() > MOST_MISTAKES => {
            let (most, some) = (grouped(MOST_MISTAKES as u64), all[..MOST_MISTAKES].join("\n  "));
            anyhow!("{name} has more than {most} mistakes; these are {most} of them:\n  {some}")
        }
        all => anyhow!("{name} has {} mistakes:\n  {}", all.len(), all.join("\n  ")),
    }
}

/// Whether a file is there. One that this user may not look for is neither there nor away: that is told.
pub(super) fn is_there(path: &Path) -> anyhow::Result<bool> {
    path.try_exists().map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => denied(path),
        _ => anyhow!("cannot look for {}: {error}", path.display()),
    })
}

/// This user is not let in where somebody else is.
pub(super) fn denied(path: &Path) -> anyhow::Error {
    // The first folder that can be looked at is the one that keeps us out.
    let known = path.ancestors().skip(1).find_map(|folder| Some((folder, std::fs::metadata(folder).ok()?.uid())));
    let fix = match known {
        Some((folder, owner)) if owner != rustix::process::geteuid().as_raw() => {
            format!("{} belongs to user {owner}: run this as that user, with sudo -u '#{owner}'", folder.display())
        }
        _ => "let this user look into its folder, with chmod u+rwx".to_owned(),
    };
    anyhow!("permission denied: this user may not look for {}; {fix}", path.display())
}

/// Makes the database's file, empty, if it is not there: SQLite would let others read it.
pub(super) fn make_database_file(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("{} is a folder; the database is a file", path.display());
    }
    if is_there(path)? {
        return Ok(());
    }
    match write_private_file(path, "") {
        // Another process made it just now.
        Err(_) if path.exists() => Ok(()),
        made => made,
    }
}

/// What this node is called beside others that send mail from the same records: the same after every start, and never
/// another's, even if the whole machine is copied.
pub(super) fn node_name(data: &Path) -> anyhow::Result<String> {
    let kept = data.join("node");
    if !is_there(&kept)? {
        let name = base32::encode::<8>(&random::bytes::<5>()?);
        write_private_file(&kept, &format!("{}\n", String::from_utf8_lossy(&name)))?;
    }
    let name = std::fs::read_to_string(&kept).with_context(|| format!("cannot read {}", kept.display()))?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    Ok(format!("{machine}-{}", name.trim()))
}

/// Holds a file for this process alone, until it is dropped or the process ends, however it ends.
pub(super) fn lock_alone(path: &Path) -> anyhow::Result<File> {
    let file =
        file_to_append(path).with_context(|| format!("cannot write {}; let this user write there", path.display()))?;
    file.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => anyhow!(
            "another unionhall sends the mail of this data folder already; stop it, or start this one with --mail hold"
        ),
        std::fs::TryLockError::Error(error) => anyhow!("cannot lock {}: {error}", path.display()),
    })?;
    Ok(file)
}
