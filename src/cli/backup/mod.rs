//! `unionhall backup`, `unionhall restore` and `unionhall resume`

mod continuous;
mod encrypted;
mod erased;
mod for_page;
mod format;
mod gap;
mod restore;
mod resume;
mod unfinished;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};

use self::continuous::ContinuousSettings;
use self::encrypted::Recipients;
use self::format::{Content, Manifest};
use self::unfinished::Unfinished;
use super::audit::act;
use super::files::{beside, cannot_write, new_file_of, put_in_place};
use super::settings::secret_flags;
use super::terminal::progress::Bar;
use super::{change, demo, no_records, print_aside, print_line};
use crate::clock::Clock;
use crate::config::{Concealed, Keyring, Records, SecretSettings, StoreSettings, quoted, read_secret};
use crate::domain::figure::counted;
use crate::domain::time::Timestamp;
use crate::store::sqlite::{Examined, SqliteSnapshot};

pub(super) use self::for_page::maker;
pub(super) use self::restore::{RestoreSettings, run as restore};
pub(super) use self::resume::{ResumeSettings, run as resume};
use crate::installation::NoteBackup;

#[derive(Args)]
#[command(group(ArgGroup::new("what").args(["file", "done", "to"]).required(true)))]
pub(super) struct BackupSettings {
    /// The file to write, which must not be there yet, such as /backup/unionhall-2026-11-15.
    file: Option<PathBuf>,

    /// Write nothing, and note that other tools made a backup just now, such as `pg_dump` or a snapshot of the disk.
    ///
    /// The metrics and `unionhall doctor` tell how old the last backup is: say `… && unionhall backup --done` in the job that
    /// makes it.
    #[arg(long)]
    done: bool,

    #[command(flatten)]
    continuous: ContinuousSettings,

    /// Leave the installation's secret out, because it is kept elsewhere; `unionhall restore` then asks for it.
    #[arg(long)]
    without_secret: bool,

    /// Leave the installation's secret out of a file that is not encrypted: with --recipient it is in the file, without one it is not.
    ///
    /// For jobs whose files leave this machine. Keep a copy of the secret elsewhere, as with `--without-secret`.
    #[arg(long, conflicts_with = "without_secret")]
    secret_only_encrypted: bool,

    /// Encrypt the file for this recipient, age1…, whose identity alone opens it.
    ///
    /// `age-keygen -o identity.txt`, on another machine, makes an identity and prints its recipient; `unionhall restore --identity`
    /// and the program `age` open the file. Without the identity the backup is lost. Give the flag several times (in the variable, commas
    /// between them), and any one of the identities opens it. The records in the clear are copied beside the database for a
    /// moment, and nowhere else.
    #[arg(long, env = "UNIONHALL_BACKUP_RECIPIENT", value_name = "RECIPIENT", value_delimiter = ',')]
    recipient: Vec<String>,

    #[command(flatten)]
    store: StoreSettings,

    #[command(flatten)]
    secret: SecretSettings,
}

impl BackupSettings {
    fn leaves_secret_out(&self) -> bool {
        self.without_secret || self.secret_only_encrypted && self.recipient.is_empty()
    }

    /// Where the secret is that the service runs with.
    fn secret_place(&self) -> String {
        match &self.secret {
            SecretSettings { secret: Some(_), .. } => "UNIONHALL_SECRET".to_owned(),
            SecretSettings { secret_file: Some(file), .. } => file.display().to_string(),
            _ => self.store.data.join("secret").display().to_string(),
        }
    }

    /// What the owner of the file has to know of it.
    fn what_is_in(&self, manifest: &Manifest, examined: &Examined) -> String {
        let secret = match (&manifest.secret, &examined.secret_fingerprint) {
            (Some(_), _) => "The installation's secret is in it.".to_owned(),
            (None, Some(_)) => format!(
                "The installation's secret is not in it, and without it the records are useless: keep a copy of {} in another place.",
                self.secret_place()
            ),
            (None, None) => "No service was started on these records yet, so there is no secret to keep.".to_owned(),
        };
        let readers = match (self.recipient.len() as u64, &manifest.secret) {
            (0, None) => "It is not encrypted: anyone who can read it can read every address, so protect it like the data folder.".to_owned(),
            (0, Some(_)) => "It is not encrypted: anyone who can read it can read every address and make the links of anyone's mail, \
                             so protect it like the data folder."
                .to_owned(),
            (count, _) => format!(
                "It is encrypted for {}: without an identity it cannot be opened. Keep the identities elsewhere than the backups.",
                counted(count, "recipient")
            ),
        };
        format!("{secret} {readers}")
    }
}

pub(super) fn run(task: &BackupSettings) -> anyhow::Result<()> {
    demo::folder::refuse(&task.store.data)?;
    if let Some((folder, every)) = task.continuous.wanted() {
        return continuous::run(task, folder, every);
    }
    // Before the first look: whatever was erased in the moment between is known by its later time.
    let now = Clock::start().now().time;
    let Some(file) = &task.file else {
        note(task, now, "made with other tools")?;
        return print_line(&format!("Recorded: a backup was made at {now}."));
    };
    let database = find_records(task)?;
    if is_there(file)? {
        bail!("{} already exists, and a backup never overwrites a file; give a new name", file.display());
    }
    // In the clear the records are nowhere but where they are in the clear already.
    let records = if task.recipient.is_empty() { file } else { &database };
    let unfinished = Unfinished::new([beside(records, "records"), beside(file, "backup")], 1)?;
    let mut bar = Bar::new(in_words);
    let copy = Copy::take(task, &database, &unfinished, &mut bar)?;
    let (manifest, examined) = copy.keep(file, now, &mut bar)?;
    // The backup is whole, whatever becomes of the note.
    if let Err(error) = note(task, now, &file.display().to_string()) {
        print_aside(&format!("unionhall: the time of this backup could not be recorded: {error:#}"));
    }
    let (members, size) = (counted(examined.members, "member"), in_words(std::fs::metadata(file)?.len()));
    let (shown, Manifest { made_at, schema, .. }) = (file.display(), &manifest);
    print_line(&format!("{shown} holds the records of {made_at}: {members}, schema {schema}, {size}."))?;
    print_line(&task.what_is_in(&manifest, &examined))
}

/// Lets monitoring know how old the last backup is.
fn note(task: &BackupSettings, now: Timestamp, how: &str) -> anyhow::Result<()> {
    change(&task.store, act("backup", how.to_owned(), now), NoteBackup(now))
}

/// The database to be copied.
fn find_records(task: &BackupSettings) -> anyhow::Result<PathBuf> {
    let database = match task.store.records()? {
        Records::Sqlite(file) => file,
        records @ Records::Postgres(_) => {
            let store = match (&task.store.store_file, std::env::var_os("UNIONHALL_STORE")) {
                (Some(file), _) => format!("\"$(cat {})\"", quoted(&file.to_string_lossy())),
                (None, Some(_)) if !secret_flags::was_moved("UNIONHALL_STORE") => "\"$UNIONHALL_STORE\"".to_owned(),
                (None, _) => "ADDRESS".to_owned(),
            };
            bail!(
                "nothing was written: the records are in PostgreSQL, {records}, and its own tools back them up. One moment of them: \
                 `pg_dump -Fc -f FILE {store}`; every moment: `pg_basebackup` beside an archive of the log (deploy/README.md, Backups). \
                 No dump holds the secret: keep a copy of {}. Then run `unionhall backup --done`, so that monitoring knows of it",
                task.secret_place()
            )
        }
    };
    if is_there(&database)? { Ok(database) } else { Err(no_records(&database)) }
}

/// One moment of the records, in a file that is not finished.
struct Copy<'t> {
    task: &'t BackupSettings,
    database: &'t Path,
    unfinished: &'t Unfinished,
    recipients: Recipients,
    secret: Option<Keyring>,
    snapshot: SqliteSnapshot,
}

impl<'t> Copy<'t> {
    fn take(
        task: &'t BackupSettings,
        database: &'t Path,
        unfinished: &'t Unfinished,
        bar: &mut Bar,
    ) -> anyhow::Result<Self> {
        let recipients = Recipients::parse(&task.recipient)?;
        let secret = if task.leaves_secret_out() { None } else { secret_in_use(task)? };
        let [copy, _] = unfinished.paths();
        new_file_of(copy, &task.store.data).with_context(|| cannot_write(copy))?;
        let snapshot = take(database, copy, bar)?;
        Ok(Self { task, database, unfinished, recipients, secret, snapshot })
    }

    /// Whether an earlier backup holds the same.
    fn is_in(&self, earlier: &Manifest) -> anyhow::Result<bool> {
        let [copy, _] = self.unfinished.paths();
        let has_secret = earlier.secret.is_some() == self.secret.is_some();
        Ok(has_secret && earlier.database.is_of(&mut File::open(copy)?)?)
    }

    /// Checks it and puts it where it belongs.
    fn keep(self, path: &Path, made_at: Timestamp, bar: &mut Bar) -> anyhow::Result<(Manifest, Examined)> {
        let Self { task, database, unfinished, recipients, secret, snapshot } = self;
        let [copy, whole] = unfinished.paths();
        bar.begin("checking what was copied");
        let examined = snapshot.examine().with_context(|| {
            format!(
                "nothing was written, because the records in {} are damaged; keep the backups you have",
                database.display()
            )
        })?;
        snapshot.close()?;
        let secret = match (task.leaves_secret_out(), &examined.secret_fingerprint) {
            (true, _) | (_, None) => None,
            (false, Some(fingerprint)) => Some(matching(secret, fingerprint, task)?),
        };
        let of_secret = |secret: &Concealed| Content::of(&mut secret.reveal().as_bytes());
        let manifest = Manifest {
            made_at,
            by: env!("UNIONHALL_VERSION").to_owned(),
            schema: examined.schema,
            database: Content::of(&mut File::open(copy)?)?,
            secret: secret.as_ref().map(of_secret).transpose()?,
        };
        bar.begin("writing");
        let mut write = || {
            let (file, mut records) = (new_file_of(whole, &task.store.data)?, File::open(copy)?);
            recipients.write(&file, |to| format::write(to, &file, &manifest, &mut records, secret.as_ref(), bar))?;
            file.sync_all()?;
            put_in_place(whole, path)
        };
        write().with_context(|| cannot_write(path))?;
        bar.end();
        Ok((manifest, examined))
    }
}

/// Whether something is at a path. That it cannot be told is an error, and not a no.
fn is_there(path: &Path) -> anyhow::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", path.display())),
    }
}

/// The secret that the service runs with, as it would find it.
fn secret_in_use(task: &BackupSettings) -> anyhow::Result<Option<Keyring>> {
    let kept = task.store.data.join("secret");
    match task.secret.given()? {
        None if is_there(&kept)? => read_secret(&kept).map(Some),
        given => Ok(given),
    }
}

/// Refuses a secret that is not the one of the records: a backup with it would be found out when it is too late.
fn matching(secret: Option<Keyring>, fingerprint: &str, task: &BackupSettings) -> anyhow::Result<Concealed> {
    let fix = "give it with UNIONHALL_SECRET or UNIONHALL_SECRET_FILE as the service has it, or leave it out with \
                --without-secret";
    let Some(secret) = secret else {
        bail!(
            "the secret that the records were made with is not in {}: {fix}",
            task.store.data.join("secret").display()
        );
    };
    if !secret.knows(fingerprint) {
        bail!("the secret is not the one that the records were made with: {fix}");
    }
    Ok(secret.text())
}

/// Copies one moment of the database, and says how far that is while it goes on. The disk gets the copy bit by bit: all of it
/// at the end would hold up the service's own writes, for half a second where 1.5 GB were copied.
fn take(database: &Path, copy: &Path, bar: &mut Bar) -> anyhow::Result<SqliteSnapshot> {
    bar.begin("copying the records");
    let all = std::fs::metadata(database)?.len();
    let growing = File::open(copy)?;
    std::thread::scope(|scope| {
        let (working, ended) = mpsc::channel::<()>();
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_millis(200)) == Err(mpsc::RecvTimeoutError::Timeout) {
                bar.show(growing.metadata().map_or(0, |file| file.len()), all);
                // SQLite itself waits for the disk at the end, and tells of a failure.
                let _later = growing.sync_data();
            }
        });
        let taken = SqliteSnapshot::take(database, copy);
        drop(working);
        taken.with_context(|| {
            format!("the records cannot be copied to {}, which needs room for twice their size", copy.display())
        })
    })
}

fn in_words(bytes: u64) -> String {
    match bytes {
        _ if bytes < 10_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ if bytes < 10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}
