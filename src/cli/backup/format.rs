//! The file of a backup: lines that say what it holds, then the database, then the secret, each with its checksum.
//!
//! The lines can be read with `head -n 7`. Whatever is changed, missing or added anywhere in the file is noticed; who meant
//! to deceive could change the checksums, too, so a backup is kept where only its owner writes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use ring::digest::{self, SHA256};

use super::encrypted::{self, Plain, damaged, is_changed};
use crate::cli::terminal::progress::Bar;
use crate::config::Concealed;
use crate::domain::time::Timestamp;

const MAGIC: &str = "unionhall backup ";

/// The form that is written, and the newest that can be read.
const FORM: u32 = 1;

/// How many lines come first, and how long they are together at the most.
const LINES: usize = 7;
const LONGEST_LINES: u64 = 2048;

/// No secret is longer.
const LONGEST_SECRET: u64 = 1 << 16;

/// Read and written at a time.
const PORTION: usize = 1 << 20;

/// The disk gets it in small parts: a service that writes down a sign-up would wait for a large one.
const SYNCED_EVERY: u64 = 1 << 26;

/// What a backup holds.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub made_at: Timestamp,
    /// The version that made it.
    pub by: String,
    pub schema: usize,
    pub database: Content,
    pub secret: Option<Content>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    pub length: u64,
    sum: [u8; 32],
}

impl Content {
    pub(super) fn of(from: &mut impl Read) -> io::Result<Self> {
        let (mut digest, mut buffer, mut length) = (digest::Context::new(&SHA256), vec![0; PORTION], 0);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return Ok(Self { length, sum: finish(&digest.finish()) }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let portion = &buffer[..read?];
                    digest.update(portion);
                    length += portion.len() as u64;
                }
            }
        }
    }

    /// Whether a file holds the same. One of another length is not read.
    pub(super) fn is_of(&self, file: &mut File) -> io::Result<bool> {
        Ok(file.metadata()?.len() == self.length && Self::of(file)? == *self)
    }
}

impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.length, hex(&self.sum))
    }
}

impl Manifest {
    /// As it stands in the file.
    fn lines(&self) -> String {
        let Self { made_at, by, schema, database, .. } = self;
        let secret = self.secret.map_or_else(|| "none".to_owned(), |piece| piece.to_string());
        let lines = format!(
            "{MAGIC}{FORM}\nmade {} {made_at}\nby {by}\nschema {schema}\ndatabase {database}\nsecret {secret}\n",
            made_at.as_millis()
        );
        format!("{lines}sum {}\n", hex(&sum(lines.as_bytes())))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().skip(1);
        let mut value = |name: &str| lines.next()?.strip_prefix(name);
        let manifest = Self {
            made_at: Timestamp::from_millis(value("made ")?.split(' ').next()?.parse().ok()?),
            by: value("by ")?.to_owned(),
            schema: value("schema ")?.parse().ok()?,
            database: piece(value("database ")?)?,
            secret: match value("secret ")? {
                "none" => None,
                text => Some(piece(text).filter(|secret| secret.length <= LONGEST_SECRET)?),
            },
        };
        // Every letter, and the checksum with them.
        (manifest.lines() == text).then_some(manifest)
    }

    /// How long the whole file is.
    fn length(&self) -> Option<u64> {
        let pieces = self.database.length.checked_add(self.secret.map_or(0, |secret| secret.length))?;
        pieces.checked_add(self.lines().len() as u64)
    }
}

fn piece(text: &str) -> Option<Content> {
    let (length, sum) = text.split_once(' ')?;
    let length = length.parse().ok()?;
    let digits = sum.as_bytes().chunks_exact(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
    let bytes: Vec<u8> = digits.collect::<Option<_>>()?;
    Some(Content { length, sum: bytes.try_into().ok()? })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn sum(bytes: &[u8]) -> [u8; 32] {
    finish(&digest::digest(&SHA256, bytes))
}

fn finish(digest: &digest::Digest) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest.as_ref());
    sum
}

/// Carries that many bytes over, however many that are, and sums them up. What `to` takes is in the file `disk` in the end.
fn copy(from: &mut impl Read, to: &mut dyn Write, disk: &File, length: u64, bar: &mut Bar) -> io::Result<[u8; 32]> {
    let (mut digest, mut buffer) = (digest::Context::new(&SHA256), vec![0; PORTION]);
    let mut done = 0;
    while done < length {
        let most = usize::try_from(length - done).unwrap_or(PORTION).min(PORTION);
        let portion = match from.read(&mut buffer[..most]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => &buffer[..read?],
        };
        digest.update(portion);
        to.write_all(portion)?;
        done += portion.len() as u64;
        if done % SYNCED_EVERY < PORTION as u64 {
            disk.sync_data()?;
        }
        bar.show(done, length);
    }
    Ok(finish(&digest.finish()))
}

/// Writes a backup with the contents that the manifest lists. What `to` takes is in the file `disk` in the end.
pub(super) fn write(
    to: &mut dyn Write,
    disk: &File,
    manifest: &Manifest,
    database: &mut impl Read,
    secret: Option<&Concealed>,
    bar: &mut Bar,
) -> io::Result<()> {
    to.write_all(manifest.lines().as_bytes())?;
    if copy(database, to, disk, manifest.database.length, bar)? != manifest.database.sum {
        return Err(io::Error::other("the disk did not give back the copy of the records as it was"));
    }
    secret.map_or(Ok(()), |secret| to.write_all(secret.reveal().as_bytes()))
}

/// A backup to be read: first the database, then the secret.
pub(super) struct BackupFile {
    pub manifest: Manifest,
    file: Box<dyn Plain>,
    path: PathBuf,
}

impl BackupFile {
    /// Reads what it holds, and whether it is of the right length for that. One that is encrypted is opened with the identities in the
    /// file `identity`.
    pub(super) fn open(path: &Path, identity: Option<&str>) -> anyhow::Result<Self> {
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
        let about = file.metadata().with_context(|| format!("cannot read {shown}"))?;
        ensure!(about.is_file(), "{shown} is not a file; give the file that `unionhall backup` wrote");
        let mut file = encrypted::open(file, path, identity)?;
        let mut start = Vec::new();
        let mut read = || {
            let found = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(0))?;
            file.by_ref().take(LONGEST_LINES).read_to_end(&mut start)?;
            io::Result::Ok(found)
        };
        let found = read().map_err(|error| unreadable(path, error, || format!("cannot read {shown}")))?;
        let first = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let form = str::from_utf8(first).ok().and_then(|line| line.strip_prefix(MAGIC)?.parse::<u32>().ok());
        match form {
            None | Some(0) => bail!("{shown} is not a backup that `unionhall backup` made; give one that is"),
            Some(FORM) => {}
            Some(newer) => bail!(
                "{shown} is a backup of a newer form ({newer}, this unionhall reads {FORM}); restore it with the version that \
                 made it, or a newer one"
            ),
        }
        let length = start.split_inclusive(|byte| *byte == b'\n').take(LINES).map(<[u8]>::len).sum();
        let manifest = str::from_utf8(&start[..length]).ok().and_then(Manifest::parse);
        let manifest = manifest.ok_or_else(|| damaged(path, "its first lines have changed"))?;
        let expected = manifest.length().ok_or_else(|| damaged(path, "it would be longer than any file"))?;
        match found {
            found if found < expected => Err(damaged(path, &format!("it ends after {found} of {expected} bytes"))),
            found if found > expected => {
                Err(damaged(path, &format!("something was added to its end, {} bytes", found - expected)))
            }
            _ => {
                file.seek(SeekFrom::Start(length as u64))?;
                Ok(Self { manifest, file, path: path.to_owned() })
            }
        }
    }

    /// Writes the database into a file, which is worth nothing if this fails.
    pub(super) fn read_database(&mut self, to: &File, bar: &mut Bar) -> anyhow::Result<()> {
        let (Content { length, sum }, path) = (self.manifest.database, &self.path);
        let what = || format!("the database cannot be copied out of {}", path.display());
        let found = copy(&mut self.file, &mut &*to, to, length, bar).map_err(|error| unreadable(path, error, what))?;
        if found != sum {
            return Err(damaged(&self.path, "the database in it has changed"));
        }
        to.sync_all().context("the disk did not take the database")
    }

    pub(super) fn read_secret(&mut self) -> anyhow::Result<Option<Concealed>> {
        let Some(piece) = self.manifest.secret else { return Ok(None) };
        let mut text = Vec::new();
        let what = || format!("cannot read {}", self.path.display());
        let read = self.file.by_ref().take(piece.length).read_to_end(&mut text);
        read.map_err(|error| unreadable(&self.path, error, what))?;
        let text = Some(text).filter(|text| sum(text) == piece.sum).and_then(|text| String::from_utf8(text).ok());
        let text = text.ok_or_else(|| damaged(&self.path, "the secret in it has changed"))?;
        Ok(Some(text.into()))
    }
}

fn unreadable(path: &Path, error: io::Error, what: impl FnOnce() -> String) -> anyhow::Error {
    if is_changed(&error) {
        return damaged(path, "something in it has changed or is missing");
    }
    anyhow::Error::new(error).context(what())
}
