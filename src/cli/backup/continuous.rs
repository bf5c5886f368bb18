//! `unionhall backup --to FOLDER --every TIME`: a copy that is never older than that, for as long as this runs.
//!
//! A process of its own and no part of the service: it can be given less of the machine, and its failure is not the service's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use rustix::fs::statvfs;

use super::format::{Manifest, hex, sum};
use super::restore::lock;
use super::unfinished::Unfinished;
use super::{BackupSettings, Copy, find_records, in_words, is_there, note};
use crate::cli::terminal::progress::Bar;
use crate::cli::{print_aside, print_line, with_live_records};
use crate::clock::Clock;
use crate::config::{interval, whole};
use crate::domain::figure::counted;
use crate::domain::time::{Timestamp, show_span};
use crate::installation::NoteBackup;
use crate::private_files::folder_of;

#[derive(Default, Args)]
pub(super) struct ContinuousSettings {
    /// The folder of the copies, where a new one is written again and again, each under the time it was made at.
    ///
    /// Runs until it is stopped. If nothing has changed, no copy is written, except once a day. A copy that fails is reported on
    /// standard error, and the next is tried after the same time; the first must succeed. Other files in the folder are left alone.
    #[arg(long, value_name = "FOLDER", requires = "every")]
    to: Option<PathBuf>,

    /// How often: 15m, 1h, from 1s to 31d.
    #[arg(long, value_name = "TIME", requires = "to", conflicts_with_all = ["file", "done"], value_parser = interval)]
    every: Option<Duration>,

    /// How many copies stay in the folder: older ones are deleted, before a copy is made and after it.
    #[arg(long, value_name = "N", requires = "to", conflicts_with_all = ["file", "done"], default_value_t = 96, value_parser = whole::<u32>(1, 100_000))]
    keep: u32,

    /// How large all copies may be together, in GB. The last one stays whatever its size.
    #[arg(long, value_name = "GB", requires = "to", conflicts_with_all = ["file", "done"], default_value_t = 10, value_parser = whole::<u32>(1, 1_000_000))]
    keep_gb: u32,
}

impl ContinuousSettings {
    pub(super) fn wanted(&self) -> Option<(&Path, Duration)> {
        Some((self.to.as_deref()?, self.every?))
    }
}

/// The copy that this process made last: its file with the size, and what is in it. Nothing tells that of a file that is encrypted.
type Last = ((PathBuf, u64), Manifest);

/// A copy is made after this time, changed or not: what a disk did to the last one would not be noticed, and copies of people who were
/// erased would stay for as long as nothing happens.
const UNCHANGED_FOR: Duration = Duration::from_secs(86_400);

pub(super) const GB: u64 = 1_000_000_000;

pub(super) fn run(task: &BackupSettings, folder: &Path, every: Duration) -> anyhow::Result<()> {
    let database = find_records(task)?;
    ensure!(
        folder.is_dir(),
        "{} is not a folder; make it first: `install -d -m 0700 {0}`, owned by the user who runs this",
        folder.display()
    );
    let _alone = lock(folder, "backup")?;
    let records =
        if task.recipient.is_empty() { folder.join("unfinished-records") } else { in_clear(&database, folder)? };
    let unfinished = Unfinished::new([records, folder.join("unfinished-backup")], 0)?;
    let clock = Clock::start();
    let (mut is_first, mut last) = (true, None);
    loop {
        let begun = clock.now();
        match turn(task, (folder, every), &unfinished, begun.time, is_first, &mut last) {
            Err(error) if is_first => return Err(error),
            Err(error) => {
                print_aside(&format!("unionhall: {error:#}; the next try is in {}", show_span(every)));
            }
            Ok(()) => is_first = false,
        }
        let took = clock.now().tick.since(begun.tick);
        // Records that take longer than that to copy are copied half of the time and not all of it.
        unfinished.rest(every.saturating_sub(took).max(took));
    }
}

/// Where the records are copied to before they are encrypted: beside the database, and not into the folder, which may be carried away as
/// it is. The same after every start, for what one that was killed left.
pub(super) fn in_clear(database: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let of = sum(folder.canonicalize()?.as_os_str().as_encoded_bytes());
    let mut name = database.as_os_str().to_owned();
    name.push(format!(".part-{}-records", hex(&of[..8])));
    Ok(name.into())
}

/// Makes a copy if there is something new, notes when that was, and deletes what is too old.
fn turn(
    task: &BackupSettings,
    (folder, every): (&Path, Duration),
    unfinished: &Unfinished,
    now: Timestamp,
    is_first: bool,
    last: &mut Option<Last>,
) -> anyhow::Result<()> {
    let database = find_records(task)?;
    let delete_old = || thin(folder, now, task.continuous.keep, u64::from(task.continuous.keep_gb) * GB);
    // First, where fewer are kept than before: on a full disk no copy would ever be made after which they go.
    delete_old()?;
    check_room(folder, &database)?;
    if !task.recipient.is_empty() {
        check_room(folder_of(&database), &database)?;
    }
    let newest = copies(folder, now)?.pop();
    let copy = Copy::take(task, &database, unfinished, &mut Bar::quiet())?;
    let is_known = |(file, known): &Last| newest.as_ref() == Some(file) && now.since(known.made_at) < UNCHANGED_FOR;
    match last.as_ref().filter(|last| is_known(last)) {
        Some(((path, _), known)) if copy.is_in(known)? => {
            print_line(&format!("Nothing has changed since {}.", path.display()))?;
        }
        _ => {
            let path = folder.join(name_of(now));
            let (manifest, examined) = copy.keep(&path, now, &mut Bar::quiet())?;
            let bytes = std::fs::metadata(&path)?.len();
            let (size, kept) = (in_words(bytes), delete_old()?);
            let (members, kept) = (counted(examined.members, "member"), counted(kept, "file"));
            print_line(&format!("{} holds the records of {now}: {members}, {size}; {kept} kept.", path.display()))?;
            if is_first {
                print_line(&task.what_is_in(&manifest, &examined))?;
            }
            *last = Some(((path, bytes), manifest));
        }
    }
    // Each turn in the audit log would be a change, and the next turn would find it.
    let noted = match is_first {
        true => note(task, now, &format!("every {} to {}", show_span(every), folder.display())),
        false => with_live_records(&task.store, async |operator| Ok(operator.run_unaudited(NoteBackup(now)).await?)),
    };
    noted.context("the copy is there, and its time could not be recorded")
}

/// The name of a copy: in the order of the names they are in the order of time. No colon, which other machines take for a host's name.
pub(super) fn name_of(now: Timestamp) -> String {
    let time = now.to_string().replace([':', 'Z'], "");
    format!("unionhall-{time}.{:03}Z.backup", now.as_millis().rem_euclid(1000))
}

/// Whether this made it, and may delete it.
fn is_copy(name: &str) -> bool {
    const LIKE: &str = "unionhall-0000-00-00T000000.000Z.backup";
    let is_like = |(c, like): (u8, u8)| if like == b'0' { c.is_ascii_digit() } else { c == like };
    name.len() == LIKE.len() && name.bytes().zip(LIKE.bytes()).all(is_like)
}

/// The copies in the folder with their sizes, the oldest first. A clock that ran ahead made what is named later than now: those come
/// before all others, so that none of them outlives what is made from now on.
fn copies(folder: &Path, now: Timestamp) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let newest = folder.join(name_of(now));
    let look = || {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_copy) {
                found.push((entry.path(), entry.metadata()?.len()));
            }
        }
        found.sort_by(|(a, _), (b, _)| (*a <= newest, a).cmp(&(*b <= newest, b)));
        std::io::Result::Ok(found)
    };
    look().with_context(|| format!("cannot look into {}", folder.display()))
}

/// Deletes the oldest copies past what is kept. Says how many stay.
pub(super) fn thin(folder: &Path, now: Timestamp, most: u32, most_bytes: u64) -> anyhow::Result<u64> {
    let (mut kept, mut bytes) = (0, 0_u64);
    for (path, size) in copies(folder, now)?.into_iter().rev() {
        bytes = bytes.saturating_add(size);
        if kept > 0 && (kept >= u64::from(most) || bytes > most_bytes) {
            // What is deleted takes no room, and neither does anything older.
            bytes = u64::MAX;
            std::fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
        } else {
            kept += 1;
        }
    }
    Ok(kept)
}

/// Refuses to fill the disk: on the service's own, sign-ups would fail.
pub(super) fn check_room(folder: &Path, database: &Path) -> anyhow::Result<()> {
    let mut size = std::fs::metadata(database)?.len();
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    if is_there(Path::new(&log))? {
        size = size.saturating_add(std::fs::metadata(&log)?.len());
    }
    let disk = statvfs(folder)?;
    let (free, needed) = (disk.f_bavail.saturating_mul(disk.f_frsize), size.saturating_mul(3));
    ensure!(
        free >= needed,
        "{} are free at {}, and a copy needs {}: twice the size of the records, and as much again stays free; make room, or keep \
         fewer with --keep or --keep-gb",
        in_words(free),
        folder.display(),
        in_words(needed)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_copies_are_known_by_their_names() {
        let name = name_of(Timestamp::from_millis(1_794_877_262_007));
        assert_eq!(name, "unionhall-2026-11-17T010102.007Z.backup");
        assert!(is_copy(&name));
        for other in ["", "2026-11-17-030000.backup", "unionhall-2026-11-17T010102.007Z.backup~", "unfinished-backup"] {
            assert!(!is_copy(other), "{other}");
        }
    }

    #[test]
    fn records_in_the_clear_are_beside_the_database_under_a_name_of_the_folder() {
        let (folder, other, database) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Path::new("/data/unionhall.db"));
        let records = in_clear(database, folder.path()).unwrap();
        assert_eq!(records.parent(), database.parent());
        assert_eq!(records, in_clear(database, &folder.path().join(".")).unwrap());
        assert_ne!(records, in_clear(database, other.path()).unwrap());
    }

    #[test]
    fn the_last_copy_stays_and_the_oldest_go_first() {
        const NOW: Timestamp = Timestamp::from_millis(100);
        let folder = tempfile::tempdir().unwrap();
        let make = |n: i64, size: usize| {
            std::fs::write(folder.path().join(name_of(Timestamp::from_millis(n))), vec![0; size]).unwrap();
        };
        let left = || copies(folder.path(), NOW).unwrap().into_iter().map(|(_, size)| size).collect::<Vec<_>>();
        std::fs::write(folder.path().join("other"), "").unwrap();
        for (n, size) in [(1, 10), (2, 20), (3, 30), (4, 40)] {
            make(n, size);
        }
        assert_eq!((thin(folder.path(), NOW, 3, 1000).unwrap(), left()), (3, vec![20, 30, 40]));
        assert_eq!((thin(folder.path(), NOW, 3, 70).unwrap(), left()), (2, vec![30, 40]));
        assert_eq!((thin(folder.path(), NOW, 3, 39).unwrap(), left()), (1, vec![40]), "whatever its size");
        // None is skipped for a smaller one that is older.
        make(2, 1);
        make(5, 10);
        assert_eq!((thin(folder.path(), NOW, 9, 20).unwrap(), left()), (1, vec![10]));
        assert!(folder.path().join("other").exists());
        // What a clock that ran ahead has left goes before what is made now.
        make(200, 50);
        make(100, 60);
        assert_eq!((thin(folder.path(), NOW, 2, 1000).unwrap(), left()), (2, vec![10, 60]));
    }
}
