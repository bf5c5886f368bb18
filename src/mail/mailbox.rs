//! Mail into a folder: one `.eml` file a message, for development and for looking at what would be sent. Beside each stands
//! a `.json` with the same in plain fields, which `/dev/mailbox` shows: no program here has to read mail.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{OutgoingMail, ReadableMail, SendError, Transport};
use crate::private_files::{make_folder, new_file};
use crate::reply::Reply;

/// Files that are listed at the most; a folder for development holds few.
const LISTED: usize = 1000;

#[derive(Clone)]
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
    pub fn read(&self, name: &str) -> Option<ReadableMail> {
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let text = if plain { std::fs::read(self.0.join(format!("{name}.json"))).ok()? } else { return None };
        serde_json::from_slice(&text).ok()
    }

    fn write(&self, mail: &OutgoingMail) -> io::Result<()> {
        make_folder(&self.0)?;
        self.write_file(&mail.name, "json", &serde_json::to_vec(&mail.readable)?)?;
        self.write_file(&mail.name, "eml", &mail.message.formatted())
    }

    /// Whole or not at all: under another name first, then moved.
    fn write_file(&self, name: &str, kind: &str, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.0.join(format!("{name}.part"));
        // Left by one that was killed.
        let _gone = std::fs::remove_file(&unfinished);
        let mut file = new_file(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&unfinished, self.0.join(format!("{name}.{kind}")))
    }
}

impl Transport for MailboxFolder {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>> {
        let folder = self.clone();
        let written = tokio::task::spawn_blocking(move || folder.write(&mail));
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

    fn mail(name: &str) -> OutgoingMail {
        let message = lettre::Message::builder()
            .from("union@example.com".parse().unwrap())
            .to("ana@example.com".parse().unwrap())
            .body("hello".to_owned());
        let text = |text: &str| text.to_owned();
        let readable = ReadableMail {
            to: text("ana@example.com"),
            from: text("union@example.com"),
            subject: String::new(),
            date: String::new(),
            text: text("hello"),
            html: String::new(),
        };
        OutgoingMail { name: name.to_owned(), message: message.unwrap(), readable, inbox: None, due: None }
    }

    #[test]
    fn only_messages_are_read_whatever_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let mailbox = MailboxFolder::new(folder.path().join("mailbox"));
        assert_eq!(mailbox.names().unwrap(), Vec::<String>::new());
        std::fs::write(folder.path().join("secret.json"), "x").unwrap();
        for name in ["000000000001-a", "000000000002-b"] {
            mailbox.write(&mail(name)).unwrap();
        }
        assert_eq!(mailbox.names().unwrap(), ["000000000002-b", "000000000001-a"]);
        assert_eq!(mailbox.read("000000000001-a").unwrap().text, "hello");
        for odd in ["", "../secret", "..%2fsecret", "000000000001-a.eml", "/etc/passwd", "nothing", "a\0b"] {
            assert!(mailbox.read(odd).is_none(), "{odd}");
        }
    }
}
