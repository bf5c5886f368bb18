//! docs/settings.md: every setting, written from what clap knows of it.
//!
//! After a setting was changed: `UPDATE_DOCS=1 ./test.sh settings_page`.

use std::fmt::Write;

use crate::prelude::*;
use clap::{Arg, Command};
use unionhall::cli::command_line;

const FIRST: &str = "\
# Settings

Every setting of `unionhall serve`. Each is a variable and a flag; a flag overrides its variable, and a variable that is set to
nothing counts as not set. `unionhall settings` shows each with its value and where that comes from, `unionhall doctor` what is wrong
with them, and `unionhall serve --help` prints this text. Samples: [one machine](../deploy/one-machine.env), [many
nodes](../deploy/unionhall.env). This page is made from the program: a test compares the two.
";

fn variable(argument: &Arg) -> Option<&str> {
    argument.get_env()?.to_str()
}

fn flag(argument: &Arg) -> String {
    let value = argument.get_value_names().into_iter().flatten().map(|name| format!(" {name}")).collect::<String>();
    format!("`--{}{value}`", argument.get_long().unwrap())
}

/// What the setting is, and its default where the text has it.
fn text(argument: &Arg) -> (String, Option<String>) {
    let help = argument.get_long_help().or(argument.get_help()).unwrap().to_string();
    let (text, default) = match help.split_once("[default: ") {
        None => (help, None),
        Some((before, rest)) => {
            let (default, after) = rest.split_once(']').unwrap();
            (format!("{}{after}", before.trim_end()), Some(default.to_owned()))
        }
    };
    let end = if text.ends_with(['.', ':']) { "" } else { "." };
    (format!("{text}{end}"), default)
}

fn default(argument: &Arg, told: Option<String>) -> String {
    let fixed: Vec<_> = argument.get_default_values().iter().map(|value| value.to_str().unwrap()).collect();
    match (fixed.join(","), told) {
        (fixed, None) if fixed.is_empty() => "not set".to_owned(),
        (fixed, None) => format!("`{fixed}`"),
        (_, Some(told)) => told,
    }
}

/// One setting, with the file that may hold it.
fn write_setting(page: &mut String, argument: &Arg, file: Option<&Arg>) {
    let (text, told) = text(argument);
    writeln!(page, "\n### {}\n", variable(argument).unwrap()).unwrap();
    write!(page, "{}, default: {}.", flag(argument), default(argument, told)).unwrap();
    if let Some(file) = file {
        write!(page, " In a file: `{}`, {}.", variable(file).unwrap(), flag(file)).unwrap();
    }
    writeln!(page, "\n\n{text}").unwrap();
    let values = argument.get_possible_values();
    let described = values.iter().filter_map(|value| Some((value.get_name(), value.get_help()?)));
    for (place, (name, help)) in described.enumerate() {
        writeln!(page, "{}- `{name}`: {help}", if place == 0 { "\n" } else { "" }).unwrap();
    }
}

/// Variables of other commands that `serve` does not read.
fn others(command: &Command, name: &str, known: &mut BTreeSet<String>, page: &mut String) {
    for argument in command.get_arguments() {
        let new = variable(argument).filter(|variable| known.insert((*variable).to_owned()));
        if let Some(variable) = new {
            let help = argument.get_help().unwrap().to_string();
            let end = if help.ends_with('.') { "" } else { "." };
            writeln!(page, "- `{variable}`, {} of `{name}`: {help}{end}", flag(argument)).unwrap();
        }
    }
    for command in command.get_subcommands() {
        others(command, &format!("{name} {}", command.get_name()), known, page);
    }
}

fn page() -> String {
    let line = command_line();
    let serve = line.find_subcommand("serve").unwrap();
    let settings: Vec<_> = serve.get_arguments().filter(|argument| variable(argument).is_some()).collect();
    let find = |variable_of: &str| settings.iter().copied().find(|argument| variable(argument) == Some(variable_of));
    let is_file_of_another = |argument: &Arg| {
        variable(argument).unwrap().strip_suffix("_FILE").is_some_and(|variable| find(variable).is_some())
    };
    let mut groups: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for argument in settings.iter().copied().filter(|argument| !is_file_of_another(argument)) {
        let heading = argument.get_help_heading().expect("every setting has a heading");
        match groups.iter_mut().find(|(known, _)| *known == heading) {
            Some((_, group)) => group.push(argument),
            None => groups.push((heading, vec![argument])),
        }
    }
    let mut page = FIRST.to_owned();
    page.push('\n');
    for (heading, group) in &groups {
        let link = |argument: &&Arg| {
            let variable = variable(argument).unwrap();
            format!("[{}](#{})", variable.trim_start_matches("UNIONHALL_"), variable.to_lowercase())
        };
        writeln!(page, "- {heading}: {}", group.iter().map(link).collect::<Vec<_>>().join(", ")).unwrap();
    }
    for (heading, group) in &groups {
        writeln!(page, "\n## {heading}").unwrap();
        for argument in group {
            write_setting(&mut page, argument, find(&format!("{}_FILE", variable(argument).unwrap())));
        }
    }
    page.push_str("\n## Other commands\n\n");
    page.push_str(
        "Other commands read the settings above that they need. `--help` of a command lists them. Besides:\n\n",
    );
    let mut known = settings.iter().filter_map(|argument| variable(argument)).map(str::to_owned).collect();
    others(&line, "unionhall", &mut known, &mut page);
    page
}

#[test]
fn the_page_of_settings_is_what_the_program_reads() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, page()).unwrap();
    }
    let (written, now) = (std::fs::read_to_string(&file).unwrap(), page());
    let differs = now.lines().zip(written.lines()).find(|(now, written)| now != written);
    assert!(now == written, "docs/settings.md: run this test with UPDATE_DOCS=1; {differs:#?}");
    for variable in crate::server::settings() {
        assert!(now.contains(&variable), "{variable}");
    }
}

/// A group of settings that a command takes over gives its heading to nothing else.
#[test]
fn flags_of_commands_are_in_no_group_of_settings() {
    fn collect(command: &Command, faults: &mut Vec<String>) {
        let own = command.get_arguments().filter(|argument| argument.get_env().is_none() && !argument.is_hide_set());
        let wrong = own.filter(|argument| argument.get_help_heading().is_some());
        faults.extend(wrong.map(|argument| format!("{} {}", command.get_name(), argument.get_id())));
        command.get_subcommands().for_each(|command| collect(command, faults));
    }
    let mut faults = Vec::new();
    collect(&command_line(), &mut faults);
    assert_eq!(faults, Vec::<String>::new());
}
