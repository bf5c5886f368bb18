//! What the command line reads: variables that are set to nothing count as not set, and what is wrong is said in one line.

use std::collections::BTreeSet;

use clap::error::{ContextKind, ContextValue};

use super::{command_line, remedy};

pub(super) fn in_one_line(error: &clap::Error) -> String {
    let text = with_variable(error);
    let lines =
        text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    words.join(" ").trim_start_matches("error: ").to_owned() + &remedy::end(error)
}

/// What is wrong, by the name under which it was said: a variable's value is looked for there and not among the flags.
fn with_variable(error: &clap::Error) -> String {
    let text = error.to_string();
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return text };
    let flag = argument.split_whitespace().next().unwrap_or_default();
    let given = std::env::args().any(|word| word == flag || word.starts_with(&format!("{flag}=")));
    match variable_of(&command_line(), flag).filter(|_| !given) {
        Some(variable) if std::env::var_os(&variable).is_some() => text.replace(&format!("'{argument}'"), &variable),
        _ => text,
    }
}

pub(super) fn variable_name(argument: &clap::Arg) -> Option<String> {
    argument.get_env()?.to_str().map(str::to_owned)
}

/// Every variable that is a setting of some command.
pub fn variables() -> BTreeSet<String> {
    fn collect(command: &clap::Command, names: &mut BTreeSet<String>) {
        names.extend(command.get_arguments().filter_map(variable_name));
        command.get_subcommands().for_each(|command| collect(command, names));
    }
    let mut names = BTreeSet::new();
    collect(&command_line(), &mut names);
    names
}

/// The variable of a flag, in whichever command it is.
pub(super) fn variable_of(command: &clap::Command, flag: &str) -> Option<String> {
    let is_it = |argument: &&clap::Arg| argument.get_long().is_some_and(|long| format!("--{long}") == flag);
    let here = command.get_arguments().find(is_it).and_then(variable_name);
    here.or_else(|| command.get_subcommands().find_map(|command| variable_of(command, flag)))
}

pub(super) fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &std::ffi::OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command = command.mut_args(|argument| match argument.get_env() {
        Some(name) if is_empty(name) => argument.env(None::<&str>),
        _ => argument,
    });
    command.mut_subcommands(without_empty_variables)
}
