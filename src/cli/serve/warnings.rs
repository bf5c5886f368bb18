//! What the start says of settings that work and should be otherwise.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use crate::config::{MailTransport, ServeSettings};
use crate::domain::union::Union;
use crate::http::request::host::is_local;
use crate::log::Log;

/// Files that others on this machine can read.
pub(super) fn of_open_files(settings: &ServeSettings, log: &Log) {
    let data = &settings.store.data;
    let files = [
        (data.clone(), "the data folder", 0o700),
        (data.join("secret"), "the secret", 0o600),
        (data.join("unionhall.db"), "the database", 0o600),
    ];
    let hooks = &settings.mail_hooks;
    let given = [
        &settings.secret.secret_file,
        &settings.mail.mail_file,
        &hooks.resend_webhook_secret_file,
        &hooks.postmark_webhook_login_file,
    ];
    let given = given.into_iter().flatten().map(|path| (path.clone(), "a file with a secret", 0o600));
    for (path, what, mode) in files.into_iter().chain(given) {
        // What is not there is nobody's; what cannot be looked at is told by whoever needs it.
        let Ok(found) = std::fs::metadata(&path) else { continue };
        if found.permissions().mode() & 0o077 != 0 {
            let path = path.display();
            log.problem(None, &format!("{what}, {path}, is open to others on this machine; chmod {mode:o} {path}"));
        }
    }
}

/// A public address with what only a trial should have: as loud as anything is, for nobody else would notice.
pub(super) fn of_a_public_address(settings: &ServeSettings, mail: &MailTransport, union: &Union, log: &Log) {
    if is_local(union) {
        return;
    }
    let plain = [&union.base_url, &union.join_site].iter().any(|address| address.starts_with("http://"));
    let trouble = [
        (
            matches!(mail, MailTransport::Mailbox),
            "mail goes into the folder `mailbox` and to nobody's inbox, though the base address is public: set UNIONHALL_MAIL to \
             an smtp:// address",
        ),
        (
            settings.union.catalog.is_none(),
            "the savings and rewards shown are the sample's, which are made up, though the base address is public: give yours in \
             UNIONHALL_CATALOG",
        ),
        (
            union.contact_email.is_none(),
            "nobody can write to the union, though the base address is public: give an address in UNIONHALL_CONTACT_EMAIL",
        ),
        (
            plain,
            "keys, addresses and links travel in the clear, though the base address is public: give https:// addresses in \
             UNIONHALL_BASE_URL and UNIONHALL_JOIN_SITE",
        ),
    ];
    for (_, warning) in trouble.iter().filter(|(met, _)| *met) {
        eprintln!("unionhall: WARNING: {warning}");
        log.problem(None, warning);
    }
}

/// Variables that look like settings and are none.
pub(super) fn of_variables(names: impl Iterator<Item = String>, known: &BTreeSet<String>, log: &Log) {
    for name in names.filter(|name| name.starts_with("UNIONHALL_") && !known.contains(name)) {
        let meant =
            known.iter().min_by_key(|setting| distance(setting, &name)).filter(|setting| distance(setting, &name) <= 3);
        let mend = meant
            .map_or_else(|| "`unionhall serve --help` lists them".to_owned(), |meant| format!("did you mean {meant}?"));
        log.problem(None, &format!("{name} is no setting, and changes nothing; {mend}"));
    }
}

/// How many letters have to be changed, put in or left out to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.bytes().enumerate() {
            let here = (before + usize::from(a != b)).min(row[j] + 1).min(row[j + 1] + 1);
            before = std::mem::replace(&mut row[j + 1], here);
        }
    }
    row[other.len()]
}

/// Flags whose values are secrets, whatever they hold.
const SECRETS: [&str; 3] = ["--secret", "--resend-webhook-secret", "--postmark-webhook-login"];

/// Secrets in the list of processes, which anyone on this machine can read.
pub(super) fn of_flags(arguments: impl Iterator<Item = String>, log: &Log) {
    for argument in arguments {
        let (flag, value) = argument.split_once('=').unwrap_or((&argument, ""));
        let password = |text: &str| {
            let authority = text.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
            authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
        };
        if SECRETS.contains(&flag) || password(&argument) || password(value) {
            log.problem(
                None,
                "a secret was given as a flag, where anyone on this machine can read it; use its variable or its file",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::log::{Format, Level};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_variable_that_is_no_setting_is_told() {
        let kept = Kept::default();
        let log = Log::start(Level::Errors, Format::Human, Clock::start(), kept.clone()).unwrap();
        let known = ["UNIONHALL_LISTEN", "UNIONHALL_LOG"].map(str::to_owned).into();
        let set = ["UNIONHALL_LISTN", "UNIONHALL_LOG", "UNIONHALL_SOMETHING_ELSE", "HOME"].map(str::to_owned);
        of_variables(set.into_iter(), &known, &log);
        log.close();
        let told = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(
            told.contains("UNIONHALL_LISTN is no setting, and changes nothing; did you mean UNIONHALL_LISTEN?"),
            "{told}"
        );
        assert!(told.contains("UNIONHALL_SOMETHING_ELSE is no setting, and changes nothing; `unionhall"), "{told}");
        assert_eq!(told.lines().count(), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn secrets_among_the_flags_are_told_and_not_repeated() {
        let told = |arguments: &[&str]| {
            let kept = Kept::default();
            let log = Log::start(Level::Errors, Format::Human, Clock::start(), kept.clone()).unwrap();
            of_flags(arguments.iter().map(|argument| (*argument).to_owned()), &log);
            log.close();
            String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
        };
        for open in [
            &["serve", "--secret", "hunter2"][..],
            &["serve", "--secret=hunter2"],
            &["serve", "--store", "postgres://u:hunter2@h/d"],
            &["serve", "--mail=smtps://u:hunter2@h"],
            &["serve", "--limits", "redis://:hunter2@h"],
        ] {
            let told = told(open);
            assert!(told.contains("given as a flag") && !told.contains("hunter2"), "{open:?}: {told}");
        }
        assert_eq!(
            told(&["serve", "--store", "postgres://u@h/d", "--base-url", "https://a:8443/x", "--mail", "hold"]),
            ""
        );
    }
}
