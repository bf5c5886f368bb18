//! `unionhall restore`: the records of a backup, in a place where there are none, made fit to be served again.
//!
//! The database stands in its place last, when all else is done and on the disk: whatever ends this earlier leaves nothing
//! that a service would take for records.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;

use super::erased::{Again, ErasureLogs};
use super::format::BackupFile;
use super::gap::Gap;
use super::unfinished::Unfinished;
use super::{in_words, is_there};
use crate::cli::audit::act;
use crate::cli::terminal::progress::Bar;
use crate::cli::{block_on, demo, files, one_thread, open_records, print_line, with_live_records};
use crate::clock::Clock;
use crate::config::{Concealed, Keyring, Records, SecretSettings, StoreSettings, quoted, read_secret};
use crate::domain::api_key::Mode;
use crate::domain::reward::payout::PayoutGeneration;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::operator::Operator;
use crate::operator::resume::Resume;
use crate::private_files::{folder_of, new_file};
use crate::random;
use crate::store::WRITE_BATCH;
use crate::store::migration::{MIGRATIONS, Prepare};
use crate::store::sqlite::SqliteSnapshot;

#[derive(Args)]
pub(in crate::cli) struct RestoreSettings {
    /// The file that `unionhall backup` wrote.
    file: PathBuf,

    /// The file of an identity that opens the backup, if it is encrypted; `-` reads it from standard input.
    ///
    /// As `age-keygen` writes it: lines that begin with AGE-SECRET-KEY-1. It is read, and kept nowhere. One with a passphrase is
    /// decrypted by `age` first, which writes it to the standard input of this command.
    #[arg(long, value_name = "FILE")]
    identity: Option<String>,

    /// The log of erasures of the lost folder, if you can get it: the file `erasures` in it.
    ///
    /// The one in the data folder, if it is still there, is read in any case. People in the backup who were erased since are erased
    /// again, and keys that were revoked since are revoked again.
    #[arg(long, value_name = "FILE")]
    erasures: Option<PathBuf>,

    #[command(flatten)]
    store: StoreSettings,

    #[command(flatten)]
    secret: SecretSettings,
}

pub(in crate::cli) fn run(task: &RestoreSettings) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let database = match task.store.records()? {
        Records::Sqlite(file) => file,
        records @ Records::Postgres(_) => bail!(
            "a backup is restored into a data folder, and not into PostgreSQL: leave --store out, then carry the records over \
             with `unionhall move --from sqlite: --to …`. Nothing was written to {records}"
        ),
    };
    demo::folder::refuse(&task.store.data)?;
    let mut backup = open(task)?;
    let given = task.secret.given()?;
    let logs = ErasureLogs::find(&task.store.data, task.erasures.as_slice())?;
    SqliteSnapshot::check_vacant(&database)?;
    let folder = DataFolder::make(&task.store.data)?;
    let _alone = lock(folder_of(&database), "restore")?;
    let kept = task.store.data.join("secret");
    let unfinished = Unfinished::new([database.with_extension("restoring"), kept.with_extension("restoring")], 1)?;
    let [copy, secret_copy] = unfinished.paths();
    let mut bar = Bar::new(in_words);
    bar.begin("reading the backup");
    let file = new_file(copy).with_context(|| format!("cannot write {}", copy.display()))?;
    backup.read_database(&file, &mut bar)?;
    // SQLite's locks go when any other handle of the file is closed: before it has any.
    drop(file);
    let in_backup = backup.read_secret()?;
    bar.begin("checking the records");
    let whole = || format!("nothing was restored, because the records in {} are damaged", task.file.display());
    let mut records = SqliteSnapshot::open(copy).with_context(whole)?;
    let examined = records.examine().with_context(whole)?;
    ensure!(examined.schema == backup.manifest.schema, "{}: they are of schema {}", whole(), examined.schema);
    let found = match &examined.secret_fingerprint {
        None => None,
        Some(fingerprint) => Some(find_secret(&kept, given, in_backup, fingerprint)?),
    };
    bar.begin("preparing them to be served");
    let made_at = backup.manifest.made_at;
    let act = act("restore", format!("a backup of {made_at}"), now);
    let resume = Resume { taken_at: made_at, generation: PayoutGeneration::from_random(&random::bytes()?), act };
    let gap = resume.id_gap();
    let held = records.resume(resume, gap)?;
    // Whatever ends this now, the next attempt knows as much.
    logs.keep()?;
    bar.begin("erasing again who was erased since");
    let secret = found.as_ref().map(|found| found.ring().secret(now));
    let again = repeat(&logs, copy, &task.store.data, secret.as_ref(), made_at, now)?;
    if let Some(FoundSecret::InBackup(ring)) = &found {
        let write = || {
            let mut file = new_file(secret_copy)?;
            file.write_all(format!("{}\n", ring.text().reveal()).as_bytes())?;
            file.sync_all()?;
            files::put_in_place(secret_copy, &kept)
        };
        write().with_context(|| format!("cannot write {}", kept.display()))?;
    }
    records.put_in_place(&database)?;
    let owner = folder.keep();
    bar.end();
    let (gap, members) = with_live_records(&task.store, async |operator| {
        let members = operator.member_count().await?;
        Ok((Gap::look(&operator, made_at, held, again.keys.clone(), secret.as_ref(), now).await?, members))
    })?;
    let done = Restored { task, database, members, secret: found, gap, again, logs, owner };
    done.report()
}

/// Erases and revokes again in the copy, before it stands where a service would take it for records.
fn repeat(
    logs: &ErasureLogs,
    copy: &Path,
    data: &Path,
    secret: Option<&Secret>,
    made_at: Timestamp,
    now: Timestamp,
) -> anyhow::Result<Again> {
    let mut again = Again::default();
    block_on(&one_thread()?, async {
        let store = open_records(&Records::Sqlite(copy.to_owned()), data, Prepare::Expect, WRITE_BATCH).await?;
        let operator = Operator::new(store, Mode::Live);
        let done = logs.repeat(&operator, secret, Some(made_at), made_at, "restore", now).await;
        operator.close().await?;
        again = done?;
        Ok(())
    })?;
    Ok(again)
}

/// The backup, if this version can bring its records up to date.
fn open(task: &RestoreSettings) -> anyhow::Result<BackupFile> {
    let backup = BackupFile::open(&task.file, task.identity.as_deref())?;
    let (found, known) = (backup.manifest.schema, MIGRATIONS.len());
    ensure!(
        found <= known,
        "the records in {} are of a newer unionhall (schema {found}, this one knows {known}); restore them with {}, which made \
         the backup, or a newer one",
        task.file.display(),
        backup.manifest.by
    );
    Ok(backup)
}

/// The data folder: one that was made for this goes again if nothing comes of it.
struct DataFolder {
    path: PathBuf,
    made: bool,
    /// Whose files these should be.
    owner: (u32, u32),
}

impl DataFolder {
    fn make(path: &Path) -> anyhow::Result<Self> {
        let made = !is_there(path)?;
        files::make_private_folder(path)?;
        let about = std::fs::metadata(if made { folder_of(path) } else { path })?;
        Ok(Self { path: path.to_owned(), made, owner: (about.uid(), about.gid()) })
    }

    /// Keeps the folder; returns whose it should be.
    fn keep(mut self) -> (u32, u32) {
        self.made = false;
        self.owner
    }
}

impl Drop for DataFolder {
    fn drop(&mut self) {
        if self.made {
            // What somebody else put there meanwhile keeps it.
            let _kept = std::fs::remove_dir(&self.path);
        }
    }
}

/// No two at once in one folder.
pub(super) fn lock(folder: &Path, what: &str) -> anyhow::Result<File> {
    let shown = folder.display();
    let open = File::open(folder).with_context(|| format!("cannot look into {shown}"))?;
    open.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => anyhow!("another {what} is running in {shown}; wait until it ends"),
        std::fs::TryLockError::Error(error) => anyhow!("cannot lock {shown}: {error}"),
    })?;
    Ok(open)
}

/// The secret of the records, and where it was found.
enum FoundSecret {
    /// With a setting, which the service needs, too.
    Given(Keyring),
    /// In the data folder.
    Kept(Keyring),
    InBackup(Keyring),
}

impl FoundSecret {
    fn ring(&self) -> &Keyring {
        match self {
            Self::Given(ring) | Self::Kept(ring) | Self::InBackup(ring) => ring,
        }
    }
}

/// The secret as the service would find it, or the backup's own; it has to be the one that the records were made with.
fn find_secret(
    kept: &Path,
    given: Option<Keyring>,
    in_backup: Option<Concealed>,
    fingerprint: &str,
) -> anyhow::Result<FoundSecret> {
    let is_theirs = |secret: &Keyring| secret.knows(fingerprint);
    if let Some(secret) = given {
        ensure!(
            is_theirs(&secret),
            "the secret that was given is not the one that the records in the backup were made with: give that one, or none \
             if the backup holds it"
        );
        return Ok(FoundSecret::Given(secret));
    }
    if is_there(kept)? {
        let secret = read_secret(kept)?;
        ensure!(
            is_theirs(&secret),
            "the secret in {} is not the one that the records in the backup were made with: move it away, or give another \
             data folder with --data",
            kept.display()
        );
        return Ok(FoundSecret::Kept(secret));
    }
    let Some(text) = in_backup else {
        bail!(
            "the backup holds no secret, and the links that people have come from it: give the one that its records were made \
             with in --secret-file or UNIONHALL_SECRET, or put it into {}",
            kept.display()
        );
    };
    let secret = Keyring::parse(text.reveal())?;
    ensure!(is_theirs(&secret), "the secret in the backup is not the one that its records were made with");
    Ok(FoundSecret::InBackup(secret))
}

/// What was done, and what is left to do.
struct Restored<'a> {
    task: &'a RestoreSettings,
    database: PathBuf,
    members: u64,
    secret: Option<FoundSecret>,
    gap: Gap,
    again: Again,
    logs: ErasureLogs,
    owner: (u32, u32),
}

impl Restored<'_> {
    fn report(&self) -> anyhow::Result<()> {
        let (data, flags, at) = (&self.task.store.data, self.task.store.as_flags(), self.gap.taken_at);
        let members = if self.members == 1 { "1 member".to_owned() } else { format!("{} members", self.members) };
        print_line(&format!("The records of {at} are in {}: {members}.", self.database.display()))?;
        print_line(&match &self.secret {
            None => "No service was started on them yet; the first start makes their secret.".to_owned(),
            Some(FoundSecret::Given(_)) => {
                "The secret that was given is theirs; give it to the service, too.".to_owned()
            }
            Some(FoundSecret::Kept(_)) => format!("The secret in {} is theirs.", data.join("secret").display()),
            Some(FoundSecret::InBackup(_)) => format!(
                "Their secret is in {}. If it leaked since the backup was made, rotate it again: `unionhall secret rotate --leaked`.",
                data.join("secret").display()
            ),
        })?;
        self.gap.report(&flags)?;
        self.report_erasures(&flags)?;
        self.report_owner()?;
        print_line(&format!("\nNext: unionhall serve{flags}"))
    }

    fn report_erasures(&self, flags: &str) -> anyhow::Result<()> {
        print_line("")?;
        if !self.logs.were_found() {
            return print_line(&format!(
                "NO LOG OF ERASURES WAS FOUND in {}: people who were erased since are in these records again, and no one \
                 can tell who. If the old folder never had this file, nobody was erased and no key revoked. If you can get the lost folder's `erasures`, remove {} and restore again with --erasures FILE.",
                self.logs.here.path().display(),
                self.database.display()
            ));
        }
        self.again.report("Nobody in these records was erased since, as far as the log of erasures knows.", flags)
    }

    /// Whoever restores is often not the one who serves.
    fn report_owner(&self) -> anyhow::Result<()> {
        let (data, me, (owner, group)) = (&self.task.store.data, rustix::process::geteuid(), self.owner);
        let shown = quoted(&data.to_string_lossy());
        // The database may be elsewhere, in a folder of another user.
        let given = std::fs::metadata(&self.database)?.uid();
        if me.is_root() && owner != 0 && given == owner {
            print_line(&format!("\nThe files belong to user {owner}, as their folder does."))?;
        } else if me.as_raw() != owner {
            print_line(&format!(
                "\nThe files belong to the user who ran this, and the folder is another's. Give them to the user that runs the service:\n  \
                 chown -R {owner}:{group} {shown}"
            ))?;
        } else if me.is_root() {
            print_line(&format!(
                "\nThe files belong to root. If the service runs as another user, give them to that one:\n  chown -R USER: {shown}"
            ))?;
        }
        if std::fs::metadata(data).is_ok_and(|folder| folder.permissions().mode() & 0o077 != 0) {
            print_line(&format!("\nOthers can look into the data folder. Close it:\n  chmod 700 {shown}"))?;
        }
        Ok(())
    }
}
