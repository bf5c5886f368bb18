//! `unionhall backup`, `unionhall restore` and `unionhall resume`

mod erased;
mod format;
mod gap;
mod restore;
mod resume;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use tokio::signal::unix::{SignalKind, signal};

use self::format::{Content, Manifest};
use super::audit::act;
use super::files::{beside, new_file_of, put_in_place};
use super::terminal::progress::Bar;
use super::{print_aside, print_line, with_live_records};
use crate::clock::Clock;
use crate::config::{Concealed, Records, SecretSettings, StoreSettings, read_secret_text};
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::store::sqlite::{Examined, SqliteSnapshot};

pub(super) use self::restore::{RestoreSettings, run as restore};
pub(super) use self::resume::{ResumeSettings, run as resume};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["file", "done"]).required(true)))]
pub(super) struct BackupSettings {
    /// The file to write, which must not be there yet, such as /backup/unionhall-2026-11-15.
    file: Option<PathBuf>,

    /// Write nothing, and note that other tools made a backup just now, such as `pg_dump` or a snapshot of the disk.
    ///
    /// The metrics and `unionhall doctor` tell how old the last backup is: say `… && unionhall backup --done` in the job that
    /// makes it.
    #[arg(long)]
    done: bool,

    /// Leave the installation's secret out, because it is kept elsewhere; `unionhall restore` then asks for it.
    #[arg(long)]
    without_secret: bool,

    #[command(flatten)]
    store: StoreSettings,

    #[command(flatten)]
    secret: SecretSettings,
}

pub(super) fn run(task: &BackupSettings) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let Some(file) = &task.file else {
        note(task, now, "made with other tools")?;
        return print_line(&format!("Recorded: a backup was made at {now}."));
    };
    let (manifest, examined) = back_up(task, file)?;
    // The backup is whole, whatever becomes of the note.
    if let Err(error) = note(task, now, &file.display().to_string()) {
        print_aside(&format!("unionhall: the time of this backup could not be recorded: {error:#}"));
    }
    report(file, &manifest, &examined)
}

/// Lets monitoring know how old the last backup is.
fn note(task: &BackupSettings, now: Timestamp, how: &str) -> anyhow::Result<()> {
    let act = act("backup", how.to_owned(), now);
    with_live_records(&task.store, async |operator| Ok(operator.audited(act).note_backup(now).await?))
}

fn back_up(task: &BackupSettings, path: &Path) -> anyhow::Result<(Manifest, Examined)> {
    let database = match task.store.records()? {
        Records::Sqlite(file) => file,
        records @ Records::Postgres(_) => bail!(
            "the records are in PostgreSQL, {records}, whose own tools back them up. One moment of them: `pg_dump -Fc -f \
             FILE \"$UNIONHALL_STORE\"`; every moment: `pg_basebackup` beside an archive of the log (deploy/README.md, \
             Backups). And keep the file of UNIONHALL_SECRET_FILE, which no dump holds: `install -m 0600 \
             \"$UNIONHALL_SECRET_FILE\" /safe/place/`. Nothing was written. `unionhall backup --done` notes that one was \
             made"
        ),
    };
    if !is_there(&database)? {
        bail!(
            "there are no records at {}; give the service's data folder with --data or UNIONHALL_DATA",
            database.display()
        );
    }
    if is_there(path)? {
        bail!("{} already exists, and a backup never overwrites a file; give a new name", path.display());
    }
    let secret = if task.without_secret { None } else { secret_in_use(task)? };
    // Before the first look: whatever was erased in the moment between is known by its later time.
    let made_at = Clock::start().now().time;
    let unfinished = Unfinished::new([beside(path, "records"), beside(path, "backup")])?;
    let [copy, whole] = &*unfinished.0 else { bail!("the unfinished files have no names") };
    let cannot_write = || format!("cannot write {}; let this user write there, or give another place", path.display());
    new_file_of(copy, &task.store.data).with_context(cannot_write)?;
    let mut bar = Bar::new(in_words);
    let snapshot = take(&database, copy, &mut bar)?;
    bar.begin("checking what was copied");
    let examined = snapshot.examine().with_context(|| {
        format!(
            "nothing was written, because the records in {} are damaged; keep the backups you have",
            database.display()
        )
    })?;
    snapshot.close()?;
    let secret = match (task.without_secret, &examined.secret_fingerprint) {
        (true, _) | (_, None) => None,
        (false, Some(fingerprint)) => Some(matching(secret, fingerprint, task)?),
    };
    let length = std::fs::metadata(copy)?.len();
    let manifest = Manifest {
        made_at,
        by: env!("UNIONHALL_VERSION").to_owned(),
        schema: examined.schema,
        database: Content::of_length(length),
        secret: secret.as_ref().map(|secret| Content::of_length(secret.reveal().len() as u64)),
    };
    bar.begin("writing");
    let mut write = || {
        let mut file = new_file_of(whole, &task.store.data)?;
        format::write(&mut file, manifest.clone(), &mut File::open(copy)?, secret.as_ref(), &mut bar)?;
        put_in_place(whole, path)
    };
    write().with_context(cannot_write)?;
    bar.end();
    Ok((manifest, examined))
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
fn secret_in_use(task: &BackupSettings) -> anyhow::Result<Option<Concealed>> {
    let kept = task.store.data.join("secret");
    let found = match task.secret.given_text()? {
        None if is_there(&kept)? => Some(read_secret_text(&kept)?),
        given => given,
    };
    Ok(found.map(|(_, text)| text.reveal().trim().to_owned().into()))
}

/// Refuses a secret that is not the one of the records: a backup with it would be found out when it is too late.
fn matching(secret: Option<Concealed>, fingerprint: &str, task: &BackupSettings) -> anyhow::Result<Concealed> {
    let fix = "give it with UNIONHALL_SECRET or UNIONHALL_SECRET_FILE as the service has it, or leave it out with \
                --without-secret";
    let Some(secret) = secret else {
        bail!(
            "the secret that the records were made with is not in {}: {fix}",
            task.store.data.join("secret").display()
        );
    };
    if Secret::new(secret.reveal())?.fingerprint() != fingerprint {
        bail!("the secret is not the one that the records were made with: {fix}");
    }
    Ok(secret)
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

fn report(path: &Path, manifest: &Manifest, examined: &Examined) -> anyhow::Result<()> {
    let Manifest { made_at, schema, secret, .. } = manifest;
    let members = match examined.members {
        1 => "1 member".to_owned(),
        many => format!("{many} members"),
    };
    let size = in_words(std::fs::metadata(path)?.len());
    let file = path.display();
    print_line(&format!("{file} holds the records of {made_at}: {members}, schema {schema}, {size}."))?;
    print_line(&match (secret, &examined.secret_fingerprint) {
        (Some(_), _) => {
            "The installation's secret is in it. Anyone who can read the file can read every address and make the \
                         links of anyone's mail: protect it like the data folder."
                .to_owned()
        }
        (None, Some(_)) => {
            "The installation's secret is not in it, and without it the records are useless: keep the secret \
                            in another place. Anyone who can read the backup can read every address: protect it like the data folder."
                .to_owned()
        }
        (None, None) => "No service was started on these records yet, so there is no secret to keep.".to_owned(),
    })
}

fn in_words(bytes: u64) -> String {
    match bytes {
        _ if bytes < 10_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ if bytes < 10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

/// Files that are not finished yet. They go when the work ends, by SIGTERM or Ctrl-C too.
struct Unfinished(Arc<[PathBuf]>);

impl Unfinished {
    fn new(paths: impl IntoIterator<Item = PathBuf>) -> anyhow::Result<Self> {
        let paths: Arc<[PathBuf]> = paths.into_iter().collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = {
            let _entered = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        let doomed = Arc::clone(&paths);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let (mut terminate, mut interrupt) = signals;
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            print_aside("\nunionhall: stopped before it was finished; nothing is kept");
            remove(&doomed);
            // The work goes on meanwhile, and may have been about to open what is gone.
            for _ in 0..3 {
                std::thread::sleep(std::time::Duration::from_millis(1));
                remove(&doomed);
            }
            std::process::exit(1);
        })?;
        // Left by one that was killed.
        remove(&paths);
        Ok(Self(paths))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn remove(paths: &[PathBuf]) {
    for path in paths {
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            // Finished, or never made.
            let _gone = std::fs::remove_file(name);
        }
    }
}
