//! Files and folders that only their owner may look into.
//!
//! What root makes in another user's folder belongs to that user from its first moment: an operator who runs a command as root
//! must leave nothing behind that the service cannot use. Only what was made just now is given away. Whoever owns the folder may
//! have put a link there, and root must not give them the file that it leads to.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown, lchown};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// Makes a folder and those above it, where they are not there.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let parent = folder_of(path);
    if !parent.exists() {
        make_folder(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => other_owner(parent)?.map_or(Ok(()), |owner| lchown(path, Some(owner.uid()), Some(owner.gid()))),
    }
}

/// A file that must not be there yet.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if let Some(owner) = other_owner(folder_of(path))? {
        fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(file)
}

/// A file to read and to add to, which is made if it is not there.
pub(crate) fn file_to_append(path: &Path) -> io::Result<File> {
    match new_file(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _made_or_there => {}
    }
    let no_links = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).append(true).custom_flags(no_links).open(path)
}

/// The folder that something is in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Whose folder it is, where root works in one that is not its own.
fn other_owner(folder: &Path) -> io::Result<Option<Metadata>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    Ok(Some(std::fs::metadata(folder)?).filter(|folder| folder.uid() != 0))
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
        assert!(file_to_append(&link).is_err());
    }
}
