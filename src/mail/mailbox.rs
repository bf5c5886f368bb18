//! Mail into a folder: one `.eml` file a message, for development and for looking at what would be sent.

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use super::{Letter, SendError, Transport};
use crate::reply::Reply;

/// Files that are listed at the most; a folder for development holds few.
const LISTED: usize = 1000;

#[derive(Debug, Clone)]
pub struct MailboxFolder(PathBuf);

impl MailboxFolder {
    pub fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The names of the messages, newest first.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            names.extend(name.to_str().and_then(|name| name.strip_suffix(".eml")).map(str::to_owned));
        }
        names.sort_unstable_by(|one, other| other.cmp(one));
        names.truncate(LISTED);
        Ok(names)
    }

    /// A message by its name; none if there is no such message, whatever the name would lead to.
    pub fn read(&self, name: &str) -> Option<Vec<u8>> {
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if plain { std::fs::read(self.0.join(format!("{name}.eml"))).ok() } else { None }
    }

    /// Whole or not at all: under another name first, then moved.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let unfinished = self.0.join(format!("{name}.part"));
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, self.0.join(format!("{name}.eml")))
    }
}

impl Transport for MailboxFolder {
    fn send(&self, letter: Letter) -> Reply<'_, Result<(), SendError>> {
        let folder = self.clone();
        let written = tokio::task::spawn_blocking(move || folder.write(&letter.name, &letter.message.formatted()));
        Reply::later(async move {
            match written.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(SendError::Later(format!("cannot write into the mailbox folder: {error}"))),
                Err(_) => Err(SendError::Later("writing into the mailbox folder was abandoned".to_owned())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_are_read_whatever_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mailbox = MailboxFolder::new(folder.path().join("mailbox"));
        assert_eq!(mailbox.names().unwrap(), Vec::<String>::new());
        std::fs::write(folder.path().join("secret.eml"), "x").unwrap();
        for name in ["000000000001-a", "000000000002-b"] {
            mailbox.write(name, b"hello").unwrap();
        }
        assert_eq!(mailbox.names().unwrap(), ["000000000002-b", "000000000001-a"]);
        assert_eq!(mailbox.read("000000000001-a").unwrap(), b"hello");
        for odd in ["", "../secret", "..%2fsecret", "000000000001-a.eml", "/etc/passwd", "nothing", "a\0b"] {
            assert_eq!(mailbox.read(odd), None, "{odd}");
        }
    }
}
