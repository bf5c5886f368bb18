//! Encrypted backups: the file as it is without, wrapped in age (age-encryption.org/v1), so that the program `age` opens it, too.
//!
//! Anyone can encrypt for a recipient: this keeps from others what is in a file, and does not say who made it.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use age::stream::StreamReader;
use age::x25519::{Identity, Recipient};
use age::{DecryptError, Decryptor, Encryptor};
use anyhow::{Context, anyhow, bail};

use crate::cli::files::read_text;

const HEADER: &[u8] = b"age-encryption.org/v1\n";

/// How much may come before what is encrypted. One recipient takes about 100 bytes.
const LONGEST_HEADER: u64 = 1 << 16;

const LARGEST_IDENTITIES_KIB: u64 = 64;

/// For whom a file is encrypted; without any it is not.
pub(super) struct Recipients(Vec<Recipient>);

impl Recipients {
    /// No error repeats a text: it may be an identity, which is secret.
    pub(super) fn parse(texts: &[String]) -> anyhow::Result<Self> {
        let parse = |(place, text): (usize, &String)| {
            let (number, text) = (place + 1, text.trim());
            if text.to_ascii_uppercase().starts_with("AGE-SECRET-KEY-") {
                bail!(
                    "recipient {number} is an identity, which opens backups and must stay secret: give the recipient that stands in \
                     its file after `# public key:`"
                );
            }
            text.parse::<Recipient>().map_err(|_| {
                anyhow!("recipient {number} is not understood; give one as `age-keygen` prints it: age1 and 58 more letters and digits")
            })
        };
        texts.iter().enumerate().map(parse).collect::<anyhow::Result<_>>().map(Self)
    }

    /// Writes what `write` gives, encrypted on the way.
    pub(super) fn write(&self, file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        if self.0.is_empty() {
            return write(&mut &*file);
        }
        let recipients = self.0.iter().map(|recipient| recipient as &dyn age::Recipient);
        let mut to = Encryptor::with_recipients(recipients).map_err(io::Error::other)?.wrap_output(file)?;
        write(&mut to)?;
        to.finish()?;
        Ok(())
    }
}

/// A backup as it is without encryption.
pub(super) trait Plain: Read + Seek {}

impl<T: Read + Seek> Plain for T {}

/// The backup in a file, opened with the identities in the file `identity` if it is encrypted.
pub(super) fn open(mut file: File, path: &Path, identity: Option<&str>) -> anyhow::Result<Box<dyn Plain>> {
    let unread = || format!("cannot read {}", path.display());
    let mut start = Vec::new();
    (&file).take(LONGEST_HEADER).read_to_end(&mut start).with_context(unread)?;
    file.seek(SeekFrom::Start(0)).with_context(unread)?;
    if !start.starts_with(HEADER) {
        return Ok(Box::new(file));
    }
    let Some(identity) = identity else {
        bail!(
            "{} is encrypted: give the file of an identity that opens it with --identity FILE (`--identity -` reads it from standard input)",
            path.display()
        );
    };
    let header_changed = || damaged(path, "the lines before what is encrypted have changed");
    if !start.windows(4).any(|window| window == b"\n---") {
        return Err(header_changed());
    }
    decrypt(file, identity)?.map(|plain| Box::new(plain) as Box<dyn Plain>).map_err(|error| match error {
        DecryptError::NoMatchingKeys => anyhow!(
            "no identity in {} opens {}: it was encrypted for other recipients, or its beginning has changed",
            if identity == "-" { "standard input" } else { identity },
            path.display()
        ),
        DecryptError::Io(error) if !is_changed(&error) => anyhow::Error::new(error).context(unread()),
        _ => header_changed(),
    })
}

fn decrypt(file: File, identity: &str) -> anyhow::Result<Result<StreamReader<BufReader<File>>, DecryptError>> {
    let identities = identities(identity)?;
    let identities = identities.iter().map(|identity| identity as &dyn age::Identity);
    Ok(Decryptor::new_buffered(BufReader::new(file)).and_then(|encrypted| encrypted.decrypt(identities)))
}

/// The identities in a file as `age-keygen` writes it. No error repeats its text.
fn identities(file: &str) -> anyhow::Result<Vec<Identity>> {
    let (text, name) = read_text(file, LARGEST_IDENTITIES_KIB)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read: Result<Vec<Identity>, _> = lines.map(str::parse::<Identity>).collect();
    read.ok().filter(|identities| !identities.is_empty()).with_context(|| {
        format!("{name} is not a file of identities: it needs lines that begin with AGE-SECRET-KEY-1, as `age-keygen` writes them")
    })
}

/// Whether reading failed because the file is not as it was written.
pub(super) fn is_changed(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
}

pub(super) fn damaged(path: &Path, how: &str) -> anyhow::Error {
    anyhow!("{} is damaged: {how}; copy it again from where it was made, or use another backup", path.display())
}
