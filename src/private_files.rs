//! Files and folders that only their owner may look into.
//!
//! What root makes in another user's folder belongs to that user from its first moment: an operator who runs a command as root
//! must leave nothing behind that the service cannot use. Only what was made just now is given away. Whoever owns the folder may
//! have put a link there, and root must not give them the file that it leads to.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, Gid, Mode, OFlags, Uid, fchown, fstat, mkdirat, openat};
use rustix::process::geteuid;

/// Makes a folder and those above it, where they are not there.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let folder = folder_of(path);
    if !folder.exists() {
        make_folder(folder)?;
    }
    let folder = Folder::open(folder)?;
    match mkdirat(&folder.handle, name_of(path)?, Mode::RWXU) {
        Err(rustix::io::Errno::EXIST) if path.is_dir() => return Ok(()),
        made => made?,
    }
    if let Some(owner) = folder.other_owner() {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        give(&openat(&folder.handle, name_of(path)?, flags, Mode::empty())?, owner)?;
    }
    Ok(())
}

/// A file that must not be there yet.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    new_file_if(path, |_| true)
}

/// The same, given to the owner of its folder only if that user may have it.
pub(crate) fn new_file_if(path: &Path, may_have: impl FnOnce(u32) -> bool) -> io::Result<File> {
    let folder = Folder::open(folder_of(path))?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = openat(&folder.handle, name_of(path)?, flags, Mode::RUSR | Mode::WUSR)?;
    if let Some(owner) = folder.other_owner().filter(|owner| may_have(owner.0)) {
        give(&file, owner)?;
    }
    Ok(file.into())
}

/// A file to read and to add to, which is made if it is not there. Root follows no link, and adds to nobody else's file.
pub(crate) fn file_to_append(path: &Path) -> io::Result<File> {
    match new_file(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _made_or_there => {}
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    if !geteuid().is_root() {
        return options.open(path);
    }
    let file = options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.nlink() != 1 {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is a link, or no file; root adds to neither"));
    }
    Ok(file)
}

/// The folder that something is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

fn name_of(path: &Path) -> io::Result<&std::ffi::OsStr> {
    path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it has no name"))
}

/// A folder that stays the same one whatever is put in its place meanwhile.
struct Folder {
    handle: OwnedFd,
    /// Its user and group.
    owner: (u32, u32),
}

impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        let handle = openat(CWD, path, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let found = fstat(&handle)?;
        Ok(Self { handle, owner: (found.st_uid, found.st_gid) })
    }

    /// Whose it is, where root works in one that is not its own.
    fn other_owner(&self) -> Option<(u32, u32)> {
        Some(self.owner).filter(|owner| geteuid().is_root() && owner.0 != 0)
    }
}

fn give(file: &OwnedFd, (user, group): (u32, u32)) -> io::Result<()> {
    Ok(fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_once_and_added_to_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (deep, file) = (folder.path().join("a/b"), folder.path().join("a/b/log"));
        make_folder(&deep).unwrap();
        make_folder(&deep).unwrap();
        assert_eq!(std::fs::metadata(&deep).unwrap().mode() & 0o777, 0o700);
        for _ in 0..2 {
            io::Write::write_all(&mut file_to_append(&file).unwrap(), b"line\n").unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "line\nline\n");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(new_file(&file).unwrap_err().kind(), ErrorKind::AlreadyExists);
        let link = deep.join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(file_to_append(&link).is_ok(), !geteuid().is_root(), "root follows no link, and others may");
        assert!(new_file(&link).is_err() && make_folder(&file).is_err() && make_folder(&link).is_err());
    }
}
