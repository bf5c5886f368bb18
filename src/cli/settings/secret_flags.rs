//! Secrets among the flags, where the list of processes shows them to anyone on the machine.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;

use crate::cli::findings::Finding;

/// Flags whose values are secrets, whatever they hold.
const SECRETS: [&str; 3] = ["--secret", "--resend-webhook-secret", "--postmark-webhook-login"];

/// Set for a program that was started again without its secrets, to the variables that hold them now.
const MOVED: &str = "_UNIONHALL_SECRETS_MOVED";

/// Adds to the help of each setting that may hold a secret where it is read.
pub(in crate::cli) fn say_so(command: clap::Command) -> clap::Command {
    let flags: Vec<_> = command.get_arguments().filter_map(|argument| argument.get_long().map(str::to_owned)).collect();
    let command = command.mut_args(|argument| match secret_variable(&argument) {
        None => argument,
        Some(variable) => {
            let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
            let end = if help.ends_with('.') { "" } else { "." };
            let flag = format!("--{}", argument.get_long().unwrap_or_default());
            let what = if SECRETS.contains(&flag.as_str()) { "It" } else { "A secret in it" };
            let file = format!("{}-file", argument.get_long().unwrap_or_default());
            let file = if flags.contains(&file) { format!(" or --{file}") } else { String::new() };
            argument.long_help(format!(
                "{help}{end}\n\n{what} belongs in {variable}{file}: anyone on this machine can read flags in the list of processes. A \
                 secret that is given as a flag is moved to its variable at once."
            ))
        }
    });
    command.mut_subcommands(say_so)
}

/// The variable of a setting that may hold a secret.
fn secret_variable(argument: &clap::Arg) -> Option<String> {
    let variable = argument.get_env().filter(|_| argument.is_hide_env_values_set())?;
    variable.to_str().map(str::to_owned)
}

/// Starts the program again without the secrets among its flags, each in its variable, which its owner alone can read. The
/// process stays the same. Where it cannot be started again, it runs as it was called.
pub(in crate::cli) fn hide(commands: fn() -> clap::Command) {
    let given: Vec<_> = std::env::args_os().collect();
    // Most calls have none, and need no second look at all commands.
    if !given.iter().any(|argument| shows_secret(argument)) {
        return;
    }
    let (kept, moved) = split(&given, &commands());
    let (Some(name), false) = (given.first(), moved.is_empty()) else { return };
    if let Ok(program) = std::env::current_exe() {
        let names: Vec<_> = moved.iter().map(|(name, _)| name.clone()).collect();
        let mut again = std::process::Command::new(program);
        let _refused = again.arg0(name).args(kept).envs(moved).env(MOVED, names.join(",")).exec();
    }
}

/// The arguments without secrets, and the variables that hold those.
fn split(given: &[OsString], commands: &clap::Command) -> (Vec<OsString>, Vec<(String, OsString)>) {
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    let words = given.iter().skip(1);
    let command = words
        .clone()
        .map_while(|word| word.to_str())
        .try_fold(commands, |command, word| command.find_subcommand(word).ok_or(command));
    let (Ok(command) | Err(command)) = command;
    let mut rest = words;
    while let Some(argument) = rest.next() {
        let text = argument.to_str().unwrap_or_default();
        if text == "--" {
            kept.push(argument.clone());
            break;
        }
        let (flag, value) = text.split_once('=').map_or((text, None), |(flag, value)| (flag, Some(value)));
        let value = match value {
            Some(value) => Some(OsString::from(value)),
            None => rest.clone().next().cloned(),
        };
        let is_it =
            |argument: &&clap::Arg| flag.strip_prefix("--").is_some_and(|name| argument.get_long() == Some(name));
        let variable = command.get_arguments().find(is_it).and_then(secret_variable);
        match (variable, value) {
            (Some(variable), Some(value)) if SECRETS.contains(&flag) || value.to_str().is_some_and(is_secret) => {
                moved.push((variable, value));
                if !text.contains('=') {
                    rest.next();
                }
            }
            _ => kept.push(argument.clone()),
        }
    }
    kept.extend(rest.cloned());
    (kept, moved)
}

/// Whether a secret is in an argument, or in the next because this is the flag of one.
fn shows_secret(argument: &OsStr) -> bool {
    let argument = argument.to_str().unwrap_or_default();
    let (flag, value) = argument.split_once('=').unwrap_or((argument, ""));
    SECRETS.contains(&flag) || is_secret(argument) || is_secret(value)
}

fn is_secret(text: &str) -> bool {
    // A partner's key is longer than the id that commands name it by.
    has_password(text) || text.starts_with("uh_")
}

/// Whether a variable was given as a flag.
pub(in crate::cli) fn was_moved(variable: &str) -> bool {
    std::env::var(MOVED).is_ok_and(|moved| moved.split(',').any(|name| name == variable))
}

pub(super) fn has_password(text: &str) -> bool {
    let authority = text.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let in_query =
        text.split_once('?').is_some_and(|(_, query)| query.split('&').any(|part| part.starts_with("password=")));
    in_query || authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// Secrets that stood among the flags, or still do.
pub(in crate::cli) fn findings() -> Vec<Finding> {
    let left = std::env::args_os().filter(|argument| shows_secret(argument));
    let left = left.map(|_| "a secret was given as a flag, where anyone on this machine can read it");
    let moved = std::env::var_os(MOVED).map(
        |_| "a secret was given as a flag: it was moved out of the list of processes, and may be in a shell's history",
    );
    left.chain(moved).map(|message| Finding::warn("flags", message, "use its variable or its file")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET_FLAGS: &[&[&str]] = &[
        &["serve", "--secret", "hunter2"],
        &["serve", "--secret=hunter2"],
        &["serve", "--store", "postgres://u:hunter2@h/d"],
        &["serve", "--mail=smtps://u:hunter2@h"],
        &["serve", "--limits", "redis://:hunter2@h"],
        &["mcp", "--key", "uh_hunter2"],
    ];

    #[test]
    fn secrets_among_the_flags_are_found() {
        let shows = |arguments: &[&str]| arguments.iter().any(|argument| shows_secret(OsStr::new(argument)));
        for open in SECRET_FLAGS {
            assert!(shows(open), "{open:?}");
        }
        assert!(!shows(&["serve", "--store", "postgres://u@h/d", "--base-url", "https://a:8443/x", "--mail", "hold"]));
    }

    #[test]
    fn each_secret_is_moved_to_its_variable_and_nothing_else_is() {
        let split = |arguments: &[&str]| {
            let given: Vec<_> = ["unionhall"].iter().chain(arguments).map(OsString::from).collect();
            super::split(&given, &crate::cli::command_line())
        };
        for open in SECRET_FLAGS {
            let (kept, moved) = split(open);
            assert!(kept == [open[0]] && moved.len() == 1, "{open:?}");
            assert!(moved[0].0.starts_with("UNIONHALL_") && moved[0].1.to_str().unwrap().contains("hunter2"));
        }
        let many =
            ["serve", "--listen", "a:1", "--secret", "s", "--mail", "hold", "--store=sqlite:", "--", "--secret", "x"];
        let (kept, moved) = split(&many);
        assert_eq!(moved, [("UNIONHALL_SECRET".to_owned(), OsString::from("s"))]);
        assert_eq!(split(&["members", "find", "--key", "uh_0123"]).1, [], "it has no variable there");
        assert_eq!(kept, ["serve", "--listen", "a:1", "--mail", "hold", "--store=sqlite:", "--", "--secret", "x"]);
    }
}
