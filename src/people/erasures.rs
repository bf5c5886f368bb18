//! Who was erased and which keys were revoked, and when, in a file beside the database: people as keyed hashes, keys by their
//! ids. After yesterday's backup is restored, these people have to be erased again and these keys revoked again, and the backup
//! cannot know which they are.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::domain::api_key::KeyId;
use crate::domain::time::Timestamp;
use crate::private_files::{file_to_append, folder_of, make_folder};

/// The file, with a line for each erasure: when, in milliseconds since 1970, the mark of the address, and a random id. An erasure
/// that is refused after its line was written gets a second line that ends with `refused`, because the file only grows. The id
/// ties the two lines together, even if lines of the same hour are merged in from another node.
///
/// A key has a line once it is revoked: when, and `key:` with its id. An older unionhall takes that for a mark that nobody has.
#[derive(Clone)]
pub struct ErasureLog(PathBuf);

const REFUSED: &str = " refused";
const KEY: &str = "key:";

/// A line that was written, for an erasure that may still be refused.
pub struct ErasureLine(String);

/// The key is revoked all the same.
#[derive(Debug, thiserror::Error)]
#[error(
    "the log of erasures beside the database cannot be written: {source}; after a restore of a backup from before now, revoke \
     key {key} again"
)]
pub struct NotNoted {
    key: KeyId,
    source: io::Error,
}

impl ErasureLog {
    /// In the service's data folder.
    pub fn beside(data: &Path) -> Self {
        Self(data.join("erasures"))
    }

    /// A file in another place.
    pub fn at(file: &Path) -> Self {
        Self(file.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Records an erasure and waits until it is on disk. `id` is random.
    pub fn append(&self, mark: &str, id: &str, now: Timestamp) -> io::Result<ErasureLine> {
        let line = format!("{} {mark} {id}", now.as_millis());
        self.append_line(&line)?;
        Ok(ErasureLine(line))
    }

    /// Records that no one was erased after all.
    pub fn take_back(&self, line: &ErasureLine) -> io::Result<()> {
        self.append_line(&format!("{}{REFUSED}", line.0))
    }

    /// Records that a key was revoked, and waits until that is on disk. After the revocation, which must not fail for want of
    /// a file.
    pub async fn note_revoked(&self, key: KeyId, at: Timestamp) -> Result<(), NotNoted> {
        let (log, line) = (self.clone(), format!("{} {KEY}{key}", at.as_millis()));
        let written = tokio::task::spawn_blocking(move || log.append_line(&line)).await;
        written.map_err(io::Error::other).and_then(|written| written).map_err(|source| NotNoted { key, source })
    }

    fn append_line(&self, line: &str) -> io::Result<()> {
        let mut file = self.open()?;
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        // A line that a power cut left unfinished must not spoil the next one.
        let begin = if last == [b'\n'] { "" } else { "\n" };
        file.write_all(format!("{begin}{line}\n").as_bytes())?;
        file.sync_data()
    }

    /// If the records are elsewhere, nothing else has created the folder.
    fn open(&self) -> io::Result<File> {
        make_folder(folder_of(&self.0))?;
        file_to_append(&self.0)
    }

    /// Every erasure that was not refused, with its time, which is the end of its hour. Skips lines that are not valid.
    pub fn all(&self) -> io::Result<Vec<(Timestamp, String)>> {
        let (mut lines, mut refused) = (Vec::new(), HashSet::new());
        for line in self.lines()? {
            let line = line?;
            match line.strip_suffix(REFUSED) {
                Some(line) => _ = refused.insert(line.to_owned()),
                None => lines.push(line),
            }
        }
        let erased = lines.iter().filter(|line| !refused.contains(*line)).filter_map(|line| read(line));
        Ok(erased.filter(|(_, mark)| !mark.starts_with(KEY)).map(|(at, mark)| (at, mark.to_owned())).collect())
    }

    /// The keys that were revoked, each with its time.
    pub fn revoked_keys(&self) -> io::Result<Vec<(Timestamp, KeyId)>> {
        let mut keys = Vec::new();
        for line in self.lines()? {
            keys.extend(read(&line?).and_then(|(at, word)| Some((at, word.strip_prefix(KEY)?.parse().ok()?))));
        }
        Ok(keys)
    }

    /// None where there is no file.
    fn lines(&self) -> io::Result<impl Iterator<Item = io::Result<String>> + use<>> {
        let file = match File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            file => Some(file?),
        };
        Ok(file.into_iter().flat_map(|file| BufReader::new(file).lines()))
    }

    /// Whether an existing file has a valid line, for an erasure, a refused one or a key.
    pub fn is_one(&self) -> io::Result<bool> {
        for line in BufReader::new(File::open(&self.0)?).lines() {
            if read(&line?).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the lines of another log that this one lacks, and waits until they are on disk.
    pub fn merge(&self, other: &Self) -> io::Result<()> {
        let mut file = self.open()?;
        let mut own = String::new();
        file.read_to_string(&mut own)?;
        let theirs = std::fs::read_to_string(&other.0)?;
        let known: HashSet<_> = own.lines().collect();
        let mut more = if own.is_empty() || own.ends_with('\n') { String::new() } else { "\n".to_owned() };
        for line in theirs.lines().filter(|line| read(line).is_some() && !known.contains(line)) {
            more.push_str(line);
            more.push('\n');
        }
        file.write_all(more.as_bytes())?;
        file.sync_data()
    }
}

fn read(line: &str) -> Option<(Timestamp, &str)> {
    let mut words = line.split(' ');
    let at = Timestamp::from_millis(words.next()?.parse().ok()?);
    Some((at, words.next()?))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn a_log_takes_in_what_another_knows_once() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (ErasureLog::beside(folder.path()), ErasureLog::at(&folder.path().join("old")));
        let at = Timestamp::from_millis;
        ours.append("a", "x", at(1)).unwrap();
        std::fs::write(theirs.path(), "1 a x\nno line of ours\n5 b\n7 c\n").unwrap();
        let mut torn = OpenOptions::new().append(true).open(ours.path()).unwrap();
        torn.write_all(b"3").unwrap();
        for _ in 0..2 {
            ours.merge(&theirs).unwrap();
            assert_eq!(std::fs::read_to_string(ours.path()).unwrap(), "1 a x\n3\n5 b\n7 c\n");
        }
        let marks = |from| ours.all().unwrap().into_iter().skip(from).map(|(_, mark)| mark).collect::<Vec<_>>();
        assert_eq!(marks(0), ["a", "b", "c"]);
        let mut torn = OpenOptions::new().append(true).open(ours.path()).unwrap();
        torn.write_all(b"8").unwrap();
        ours.append("d", "y", at(9)).unwrap();
        assert_eq!(marks(2), ["c", "d"]);
    }

    #[tokio::test]
    async fn keys_are_no_erasures() {
        let folder = tempfile::tempdir().unwrap();
        let log = ErasureLog::beside(folder.path());
        assert_eq!(log.revoked_keys().unwrap(), []);
        let (at, key) = (Timestamp::from_millis(7), "q7m2xk4d".parse().unwrap());
        log.append("a", "x", at).unwrap();
        log.note_revoked(key, at).await.unwrap();
        assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "7 a x\n7 key:q7m2xk4d\n");
        assert_eq!((log.all().unwrap(), log.revoked_keys().unwrap()), (vec![(at, "a".to_owned())], vec![(at, key)]));
    }

    #[test]
    fn what_was_refused_is_no_erasure_and_takes_no_other_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (ErasureLog::beside(folder.path()), ErasureLog::at(&folder.path().join("old")));
        let (hour, marks) = (Timestamp::from_millis(1), |log: &ErasureLog| log.all().unwrap().len());
        let refused = ours.append("a", "x", hour).unwrap();
        assert_eq!(marks(&ours), 1, "a crash here loses nothing");
        // Another node erases the same person in the same hour.
        theirs.append("a", "y", hour).unwrap();
        ours.take_back(&refused).unwrap();
        assert!(marks(&ours) == 0 && ours.is_one().unwrap());
        for _ in 0..2 {
            theirs.merge(&ours).unwrap();
            assert_eq!(marks(&theirs), 1);
        }
        ours.append("a", "z", hour).unwrap();
        assert_eq!(marks(&ours), 1, "asked for again, and done");
    }
}
