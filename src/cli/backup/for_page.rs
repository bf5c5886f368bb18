//! The backups that the operator's page makes, in the folder `backups` of the data folder.

use std::path::Path;

use anyhow::ensure;

use super::continuous::{ContinuousSettings, GB, check_room, in_clear, name_of, thin};
use super::encrypted::Recipients;
use super::restore::lock;
use super::unfinished::Unfinished;
use super::{BackupSettings, Copy, find_records};
use crate::cli::demo;
use crate::cli::files::make_private_folder;
use crate::cli::terminal::progress::Bar;
use crate::config::{Records, ServeSettings};
use crate::domain::figure::counted;
use crate::domain::time::Timestamp;
use crate::operator::service::{BackupMaker, MadeBackup};

/// The files that are kept; the oldest are deleted.
const MAX_KEPT: u32 = 5;
const MAX_KEPT_GB: u64 = 10;

/// What makes them; none where the records are in PostgreSQL.
pub(in crate::cli) fn maker(settings: &ServeSettings) -> anyhow::Result<Option<BackupMaker>> {
    Recipients::parse(&settings.backup.backup_recipient)?;
    if matches!(settings.store.records()?, Records::Postgres(_)) {
        return Ok(None);
    }
    let task = BackupSettings {
        file: None,
        done: false,
        continuous: ContinuousSettings::default(),
        without_secret: false,
        secret_only_encrypted: true,
        recipient: settings.backup.backup_recipient.clone(),
        store: settings.store.clone(),
        secret: settings.secret.clone(),
    };
    // Whoever reads it does not know where the service was started.
    let folder = std::path::absolute(settings.store.data.join("backups"))?;
    let is_encrypted = match task.recipient.len() as u64 {
        0 => "It is not encrypted, and the installation's secret is not in it. Set `UNIONHALL_BACKUP_RECIPIENT` to encrypt it, with the secret in it.".to_owned(),
        count => format!("It is encrypted for {}, with the installation's secret in it.", counted(count, "recipient")),
    };
    let says = vec![
        format!(
            "The file stays on the server, in {}, which only the user of the service can read. The last {MAX_KEPT} are kept. Copy it to another machine, then delete it here: it still has people who are erased later.",
            folder.display()
        ),
        is_encrypted,
    ];
    let make = move |now| make(&task, &folder, now).map_err(|error| format!("{error:#}").replace('`', ""));
    Ok(Some(BackupMaker { says, make: Box::new(make) }))
}

fn make(task: &BackupSettings, folder: &Path, now: Timestamp) -> anyhow::Result<MadeBackup> {
    demo::folder::refuse(&task.store.data)?;
    let database = find_records(task)?;
    make_private_folder(folder)?;
    let _alone = lock(folder, "backup")?;
    let delete_old = || thin(folder, now, MAX_KEPT, MAX_KEPT_GB * GB);
    delete_old()?;
    check_room(folder, &database)?;
    let records =
        if task.recipient.is_empty() { folder.join("unfinished-records") } else { in_clear(&database, folder)? };
    let unfinished = Unfinished::unwatched([records, folder.join("unfinished-backup")]);
    let path = folder.join(name_of(now));
    ensure!(!super::is_there(&path)?, "a backup of this moment is there already");
    let copy = Copy::take(task, &database, &unfinished, &mut Bar::quiet())?;
    let (manifest, examined) = copy.keep(&path, now, &mut Bar::quiet())?;
    delete_old()?;
    let path = path.display().to_string();
    let says = vec![
        format!("{path} holds the records of {now}: {}.", counted(examined.members, "member")),
        task.what_is_in(&manifest, &examined),
    ];
    Ok(MadeBackup { path, says })
}
