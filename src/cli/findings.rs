//! What a look at the settings and the files found: judged once, for the log of `serve` and the lines of `doctor`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::{remedy, variables};
use crate::config::{Records, ServeSettings, sandbox_file};
use crate::domain::api_key::Mode;
use crate::domain::union::Union;
use crate::http::request::host::is_local;

pub(super) use crate::operator::findings::{CATALOG, Finding, Grade, MAIL, TrialSettings};

/// The checks that more than one place reports under.
pub(super) const DATA_FOLDER: &str = "data folder";
pub(super) const FILES: &str = "files";

pub(super) fn fix(finding: &Finding) -> Option<String> {
    finding.fix.as_ref().map(|fix| remedy::write(fix, Mode::Live))
}

/// The message and the fix as one sentence.
pub(super) fn sentence(finding: &Finding) -> String {
    fix(finding).map_or_else(|| finding.message.clone(), |fix| format!("{}; {fix}", finding.message))
}

/// The files of the data folder that are nobody else's business.
pub(super) fn kept_files(settings: &ServeSettings) -> Vec<(PathBuf, &'static str)> {
    let data = &settings.store.data;
    let mut files = vec![(data.join("secret"), "the secret"), (data.join("erasures"), "the list of erasures")];
    // Whoever needs the address reports that it cannot be parsed.
    if let Ok(Records::Sqlite(database)) = settings.store.records() {
        let sandbox = sandbox_file(&database);
        for (place, end, what) in [
            (&database, "", "the database"),
            (&database, "-wal", "the database's log"),
            (&database, "-shm", "the database's index"),
            (&sandbox, "", "the sandbox"),
            (&sandbox, "-wal", "the sandbox's log"),
            (&sandbox, "-shm", "the sandbox's index"),
        ] {
            let mut path = place.clone().into_os_string();
            path.push(end);
            files.push((path.into(), what));
        }
    }
    files
}

/// Files that others on this machine can read; nothing of those that are as they should be.
pub(super) fn open_files(settings: &ServeSettings) -> Vec<Finding> {
    let folder = (settings.store.data.clone(), "the data folder", DATA_FOLDER, 0o700);
    let kept = kept_files(settings).into_iter().map(|(path, what)| (path, what, FILES, 0o600));
    let hooks = &settings.mail_hooks;
    let given = [
        &settings.store.store_file,
        &settings.secret.secret_file,
        &settings.mail.mail_file,
        &settings.limits.limits_file,
        &hooks.resend_webhook_secret_file,
        &hooks.postmark_webhook_login_file,
    ];
    let given = given.into_iter().flatten().map(|path| (path.clone(), "a file with a secret", FILES, 0o600));
    let mut open = Vec::new();
    for (path, what, check, mode) in std::iter::once(folder).chain(kept).chain(given) {
        // What is not there is nobody's; whoever needs it reports what cannot be read.
        let Ok(found) = std::fs::metadata(&path) else { continue };
        if found.permissions().mode() & 0o077 != 0 {
            let path = path.display();
            let message = format!("{what}, {path}, is open to others on this machine");
            open.push(Finding::warn(check, message, format!("chmod {mode:o} {path}")));
        }
    }
    open
}

/// What only a trial should have, where the address is public.
pub(super) fn public_address(union: &Union, trial: &TrialSettings) -> Vec<Finding> {
    crate::operator::findings::of_address(union, !is_local(union), trial)
}

/// Variables of this process that look like settings and are none.
pub(super) fn unknown_variables() -> Vec<Finding> {
    let known = variables();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = names.filter(|name| name.starts_with("UNIONHALL_") && !known.contains(name));
    let judge = |name: String| {
        let near = known.iter().map(|setting| (strsim::osa_distance(setting, &name), setting));
        let meant = near.filter(|(edits, _)| *edits <= 3).min().map(|(_, setting)| setting);
        let fix = meant
            .map_or_else(|| "`unionhall serve --help` lists them".to_owned(), |meant| format!("did you mean {meant}?"));
        Finding::warn("variables", format!("{name} is not a setting and has no effect"), fix)
    };
    unknown.map(judge).collect()
}
