//! Variables whose values the parser of the command line refuses, found one after the other: it would end at the first.

use clap::error::{ContextKind, ContextValue};

use crate::cli::command_line::{in_one_line, variable_name, variable_of};

/// A variable that was left out, and why.
pub(in crate::cli) struct RefusedVariable {
    pub name: String,
    pub why: String,
}

/// The command line without the variables whose values are refused. What is wrong with the flags stays wrong.
pub(in crate::cli) fn without_refused(mut command: clap::Command) -> (clap::Command, Vec<RefusedVariable>) {
    let mut refused = Vec::new();
    while let Err(error) = command.clone().try_get_matches() {
        let why = in_one_line(&error);
        let without = |name: String| command_without(&command, &name, &why).map(|without_it| (name, without_it));
        let Some((name, without_it)) = candidates(&command, &error).into_iter().find_map(without) else { break };
        command = without_it;
        refused.push(RefusedVariable { name, why });
    }
    (command, refused)
}

/// Every variable of this command that is set, the one that the error names first.
fn candidates(command: &clap::Command, error: &clap::Error) -> Vec<String> {
    let named = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.split_whitespace().next(),
        _ => None,
    };
    let named = named.and_then(|flag| variable_of(command, flag));
    let doctor = command.find_subcommand("doctor");
    let arguments = doctor.into_iter().flat_map(clap::Command::get_arguments);
    let all = arguments.filter_map(variable_name);
    named.into_iter().chain(all).filter(|name| std::env::var_os(name).is_some()).collect()
}

/// The command line without a variable, if that makes a difference to what is wrong.
fn command_without(command: &clap::Command, name: &str, why: &str) -> Option<clap::Command> {
    let forget = |argument: clap::Arg| match argument.get_env() {
        Some(variable) if variable == name => argument.env(None::<&str>),
        _ => argument,
    };
    let without_it = command.clone().mut_subcommand("doctor", |doctor| doctor.mut_args(forget));
    let still = without_it.clone().try_get_matches().is_err_and(|other| in_one_line(&other) == why);
    (!still).then_some(without_it)
}
