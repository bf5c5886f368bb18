//! What a look at the settings and the files found: judged once, for the log of `serve` and the lines of `doctor`.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::config::{MailTransport, Records, ServeSettings, sandbox_file};
use crate::domain::union::Union;
use crate::http::request::host::is_local;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grade {
    Ok,
    /// It works, and should be otherwise.
    Warn,
    /// It does not work, or not as it was meant.
    Fail,
}

impl Grade {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// What was found of one thing, on one line, and how to fix it.
#[derive(Debug, Clone)]
pub(super) struct Finding {
    pub check: &'static str,
    pub grade: Grade,
    pub message: String,
    pub fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, grade: Grade::Ok, message: message.into(), fix: None }
    }

    pub(super) fn warn(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, grade: Grade::Warn, message: message.into(), fix: Some(fix.into()) }
    }

    pub(super) fn fail(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { grade: Grade::Fail, ..Self::warn(check, message, fix) }
    }

    /// An error of ours says what is wrong and, after a semicolon, what would be right.
    pub(super) fn of_error(check: &'static str, grade: Grade, error: &anyhow::Error) -> Self {
        let text = format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ");
        // What stands in parentheses is of one piece.
        let is_outside = |at: &usize| text[..*at].matches('(').count() == text[..*at].matches(')').count();
        let (message, fix) = match text.match_indices("; ").map(|(at, _)| at).find(is_outside) {
            Some(at) => (text[..at].to_owned(), Some(text[at + 2..].to_owned())),
            None => (text, None),
        };
        Self { check, grade, message, fix }
    }

    /// The same with a fix, where the error brought none.
    pub(super) fn or_fix(mut self, fix: &str) -> Self {
        self.fix.get_or_insert_with(|| fix.to_owned());
        self
    }

    pub(super) fn is_ok(&self) -> bool {
        self.grade == Grade::Ok
    }

    /// All of it as one sentence.
    pub(super) fn sentence(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{}; {fix}", self.message),
            None => self.message.clone(),
        }
    }
}

/// The checks that more than one place reports under.
pub(super) const DATA_FOLDER: &str = "data folder";
pub(super) const FILES: &str = "files";
pub(super) const MAIL: &str = "mail";
pub(super) const CATALOG: &str = "catalog";

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
pub(super) fn public_address(mail: Option<&MailTransport>, union: &Union) -> Vec<Finding> {
    let public = !is_local(union);
    let judge = |check, met: bool, fine: &str, wrong: &str, fix: &str| match public && met {
        true => Finding::warn(check, format!("{wrong}, though the base address is public"), fix),
        false => Finding::ok(check, fine),
    };
    let is_sample = union.catalog.is_sample();
    let unanswered = union.catalog.unanswered().join(", ");
    let is_plain = [&union.base_url, &union.join_site].iter().any(|address| address.starts_with("http://"));
    vec![
        judge(
            MAIL,
            matches!(mail, Some(MailTransport::Mailbox)),
            "it goes into the folder `mailbox`, which is fine on this machine",
            "mail goes into the folder `mailbox` and to nobody's inbox",
            "set UNIONHALL_MAIL to an smtp:// address",
        ),
        judge(
            CATALOG,
            is_sample,
            if is_sample { "the sample, which is fine on this machine" } else { "your own figures" },
            "the savings and rewards shown are the sample's, which are made up",
            "give yours in UNIONHALL_CATALOG",
        ),
        judge(
            CATALOG,
            !unanswered.is_empty(),
            if unanswered.is_empty() {
                "your own texts"
            } else {
                "texts are missing, which will do on this machine alone"
            },
            &format!(
                "people will ask who runs the union, what it costs and how it earns: no text of yours for {unanswered}"
            ),
            "write them in the table [union] of your catalog",
        ),
        judge(
            "contact",
            union.contact_email.is_none(),
            if union.contact_email.is_none() { "none, which is fine on this machine" } else { "given" },
            "nobody can write to the union",
            "give an address in UNIONHALL_CONTACT_EMAIL",
        ),
        judge(
            "encryption",
            is_plain,
            if is_plain { "none, which is fine on this machine" } else { "the addresses are https://" },
            "keys, addresses and links are sent unencrypted",
            "give https:// addresses in UNIONHALL_BASE_URL and UNIONHALL_JOIN_SITE",
        ),
    ]
}

/// Variables that look like settings and are none.
pub(super) fn unknown_variables(names: impl Iterator<Item = String>, known: &BTreeSet<String>) -> Vec<Finding> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_no_setting_is_told() {
        let known = ["UNIONHALL_LISTEN", "UNIONHALL_LOG"].map(str::to_owned).into();
        let set = ["UNIONHALL_LISTN", "UNIONHALL_LOG", "UNIONHALL_SOMETHING_ELSE", "HOME"].map(str::to_owned);
        let message: Vec<_> = unknown_variables(set.into_iter(), &known).iter().map(Finding::sentence).collect();
        assert_eq!(
            message,
            [
                "UNIONHALL_LISTN is not a setting and has no effect; did you mean UNIONHALL_LISTEN?",
                "UNIONHALL_SOMETHING_ELSE is not a setting and has no effect; `unionhall serve --help` lists them",
            ]
        );
    }

    #[test]
    fn an_error_is_what_is_wrong_and_what_would_be_right() {
        let message = |text: &str| Finding::of_error("x", Grade::Fail, &anyhow::anyhow!(text.to_owned()));
        let both = message("it is full (a; b);\nmake room; or not");
        assert_eq!((both.message.as_str(), both.fix.as_deref()), ("it is full (a; b)", Some("make room; or not")));
        assert_eq!(message("it is full").fix, None);
    }
}
