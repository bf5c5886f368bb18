//! Who was erased and when, as keyed hashes in a file beside the database: whoever restores yesterday's backup has to erase
//! them again, and the backup cannot know.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::domain::time::Timestamp;

/// The file, a line for each erasure: when, in milliseconds since 1970, and the mark of the address.
#[derive(Debug, Clone)]
pub struct ErasureLog(PathBuf);

impl ErasureLog {
    /// In the service's data folder.
    pub fn beside(data: &Path) -> Self {
        Self(data.join("erasures"))
    }

    /// Writes an erasure down and waits until the disk has it.
    pub fn append(&self, mark: &str, now: Timestamp) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.0)?;
        file.write_all(format!("{} {mark}\n", now.as_millis()).as_bytes())?;
        file.sync_data()
    }

    /// The marks of those who were erased at that time or later; a line that is none of ours is passed over.
    pub fn since(&self, time: Timestamp) -> io::Result<Vec<String>> {
        let file = match std::fs::File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let mut marks = Vec::new();
        for line in BufReader::new(file).lines() {
            let line = line?;
            let Some((at, mark)) = line.split_once(' ') else { continue };
            if at.parse().is_ok_and(|at: i64| at >= time.as_millis()) {
                marks.push(mark.to_owned());
            }
        }
        Ok(marks)
    }
}
