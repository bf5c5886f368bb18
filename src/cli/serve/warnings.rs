//! What the start says of settings that work and should be otherwise.

use std::os::unix::fs::PermissionsExt;

use crate::config::ServeSettings;
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
