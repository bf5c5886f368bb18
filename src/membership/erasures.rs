//! Who was erased and when, as keyed hashes in a file beside the database: whoever restores yesterday's backup has to erase
//! them again, and the backup cannot know.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::domain::time::Timestamp;
use crate::private_files::{file_to_append, folder_of, make_folder};

/// The file, a line for each erasure: when, in milliseconds since 1970, and the mark of the address.
#[derive(Debug, Clone)]
pub struct ErasureLog(PathBuf);

impl ErasureLog {
    /// In the service's data folder.
    pub fn beside(data: &Path) -> Self {
        Self(data.join("erasures"))
    }

    /// A file that was kept elsewhere.
    pub fn at(file: &Path) -> Self {
        Self(file.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes an erasure down and waits until the disk has it.
    pub fn append(&self, mark: &str, now: Timestamp) -> io::Result<()> {
        let mut file = self.open()?;
        let mut last = [b'\n'];
        if file.metadata()?.len() > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        // A line that a power cut left unfinished spoils no other.
        let begin = if last == [b'\n'] { "" } else { "\n" };
        file.write_all(format!("{begin}{} {mark}\n", now.as_millis()).as_bytes())?;
        file.sync_data()
    }

    /// Nothing else has made the folder where the records are elsewhere.
    fn open(&self) -> io::Result<File> {
        make_folder(folder_of(&self.0))?;
        file_to_append(&self.0)
    }

    /// Every erasure with its time, which is the end of its hour; a line that is none of ours is passed over.
    pub fn all(&self) -> io::Result<Vec<(Timestamp, String)>> {
        let file = match File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let mut erasures = Vec::new();
        for line in BufReader::new(file).lines() {
            erasures.extend(read(&line?).map(|(at, mark)| (at, mark.to_owned())));
        }
        Ok(erasures)
    }

    /// Takes in what another log holds and this one does not, and waits until the disk has it.
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
    let (at, mark) = line.split_once(' ')?;
    Some((Timestamp::from_millis(at.parse().ok()?), mark))
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
        ours.append("a", at(1)).unwrap();
        std::fs::write(theirs.path(), "1 a\nno line of ours\n5 b\n7 c\n").unwrap();
        let mut torn = OpenOptions::new().append(true).open(ours.path()).unwrap();
        torn.write_all(b"3").unwrap();
        for _ in 0..2 {
            ours.merge(&theirs).unwrap();
            assert_eq!(std::fs::read_to_string(ours.path()).unwrap(), "1 a\n3\n5 b\n7 c\n");
        }
        let marks = |from| ours.all().unwrap().into_iter().skip(from).map(|(_, mark)| mark).collect::<Vec<_>>();
        assert_eq!(marks(0), ["a", "b", "c"]);
        let mut torn = OpenOptions::new().append(true).open(ours.path()).unwrap();
        torn.write_all(b"8").unwrap();
        ours.append("d", at(9)).unwrap();
        assert_eq!(marks(2), ["c", "d"]);
    }
}
