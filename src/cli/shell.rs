//! `unionhall completions` and `unionhall manual`: what a shell and a reader are told of the commands, from their definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::{Arg, ValueEnum};
use clap_complete::Shell;

use super::{TryLater, command_line, print_line};

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum CompletedShell {
    Bash,
    Fish,
    Zsh,
}

pub(super) fn complete(shell: CompletedShell) -> anyhow::Result<()> {
    let shell = match shell {
        CompletedShell::Bash => Shell::Bash,
        CompletedShell::Fish => Shell::Fish,
        CompletedShell::Zsh => Shell::Zsh,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "unionhall", &mut script);
    print_line(String::from_utf8(script)?.trim_end())
}

pub(super) fn manual() -> anyhow::Result<()> {
    print_line(ManualPage::of(command_line()).0.trim_end())
}

/// A man page in roff: one for all commands, so that there is one place to search.
struct ManualPage(String);

impl ManualPage {
    fn of(mut program: clap::Command) -> Self {
        program.build();
        let mut page = Self(String::new());
        let version = format!("unionhall {}", program.get_version().unwrap_or_default());
        page.request(&format!(".TH UNIONHALL 1 \"\" \"{}\" \"User Commands\"", roff(&version)));
        // Names are to be found and pasted whole.
        page.request(".nh\n.ad l");
        page.section("NAME");
        let about = program.get_about().map(StyledStr::to_string).unwrap_or_default();
        page.text(&format!("unionhall - {}", about.trim_end_matches('.')));
        page.section("SYNOPSIS");
        page.text("`unionhall` COMMAND [OPTIONS]");
        page.section("DESCRIPTION");
        page.paragraphs(&said(program.get_long_about(), program.get_about()));
        let after = program.get_after_help().map(StyledStr::to_string).unwrap_or_default();
        page.paragraphs(&format!(
            "{after}\n\nA flag comes before its variable. A variable that is set to nothing counts as not set."
        ));
        page.section("COMMANDS");
        let serve = program.find_subcommand("serve").map(|serve| serve.get_arguments().collect()).unwrap_or_default();
        page.commands(&program, &serve);
        page.section("ENVIRONMENT");
        page.variables(&program);
        page.section("EXIT STATUS");
        for (code, meaning) in [
            (0, "It is done."),
            (1, "It could not be done; the last line says why, and what would fix it."),
            (2, "The command line or a variable has a mistake."),
            (TryLater::CODE, "It cannot be done now; whoever called keeps what it has and calls again."),
        ] {
            page.entry(&code.to_string(), meaning);
        }
        page.section("SIGNALS");
        page.entry("SIGTERM, SIGINT", "`serve` finishes what was begun and ends, within ten seconds.");
        page.entry(
            "SIGHUP",
            "`serve` reads the certificate and the catalog again; one with a mistake leaves the old one in use.",
        );
        page
    }

    /// The commands below this one. What is a setting of `serve` too is explained there alone.
    fn commands(&mut self, parent: &clap::Command, serve: &Vec<&Arg>) {
        for command in parent.get_subcommands().filter(|command| command.get_name() != "help") {
            let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
            self.request(&format!(".SS \"{}\"", roff(name)));
            if command.has_subcommands() {
                self.text(&said(command.get_long_about(), command.get_about()));
                self.commands(command, serve);
                continue;
            }
            let usage = command.clone().render_usage().to_string();
            self.text(&format!("`{}`", usage.trim_start_matches("Usage:").trim()));
            self.paragraphs(&said(command.get_long_about(), command.get_about()));
            let shown =
                command.get_arguments().filter(|argument| argument.get_id() != "help" && !argument.is_hide_set());
            let (same, own): (Vec<_>, Vec<_>) = shown.partition(|argument| {
                command.get_name() != "serve" && serve.iter().any(|known| is_same(known, argument))
            });
            own.into_iter().for_each(|argument| self.argument(argument));
            if !same.is_empty() {
                let names: Vec<_> = same.into_iter().map(|argument| format!("`{}`", name_of(argument))).collect();
                self.paragraphs(&format!("As for `serve`: {}.", names.join(", ")));
            }
        }
    }

    fn argument(&mut self, argument: &Arg) {
        let values: Vec<_> = argument.get_value_names().into_iter().flatten().map(ToString::to_string).collect();
        let takes = argument.get_action().takes_values() && argument.get_long().is_some();
        let value = if takes { format!(" {}", values.join(" ")) } else { String::new() };
        let mut text = said(argument.get_long_help(), argument.get_help());
        let known: Vec<_> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        if argument.get_action().takes_values() && !known.is_empty() {
            let _infallible = write!(text, " One of {}.", known.join(", "));
        }
        let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if takes && !defaults.is_empty() {
            let _infallible = write!(text, " [default: {}]", defaults.join(" "));
        }
        if let Some(variable) = argument.get_env().and_then(|name| name.to_str()) {
            let _infallible = write!(text, " [variable: {variable}]");
        }
        self.entry(&format!("{}{value}", name_of(argument)), &text);
    }

    /// Every variable with the flag that it stands for.
    fn variables(&mut self, program: &clap::Command) {
        fn collect(command: &clap::Command, found: &mut BTreeMap<String, BTreeSet<String>>) {
            for argument in command.get_arguments() {
                if let Some(variable) = argument.get_env().and_then(|name| name.to_str()) {
                    let help = said(None, argument.get_help());
                    found.entry(variable.to_owned()).or_default().insert(format!("`{}`: {help}", name_of(argument)));
                }
            }
            command.get_subcommands().for_each(|command| collect(command, found));
        }
        let mut found = BTreeMap::new();
        collect(program, &mut found);
        for (variable, meanings) in found {
            self.entry(&variable, &meanings.into_iter().collect::<Vec<_>>().join("\n\n"));
        }
    }

    fn section(&mut self, name: &str) {
        self.request(&format!(".SH {name}"));
    }

    /// A name and, further in, what it means.
    fn entry(&mut self, name: &str, text: &str) {
        self.request(".TP");
        self.text(&format!("`{name}`"));
        for (n, paragraph) in text.split("\n\n").enumerate() {
            if n > 0 {
                self.request(".IP");
            }
            self.text(paragraph);
        }
    }

    fn paragraphs(&mut self, text: &str) {
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
            self.request(".PP");
            self.text(paragraph);
        }
    }

    fn text(&mut self, text: &str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut out = String::with_capacity(line.len() + 16);
        for (n, piece) in line.split('`').enumerate() {
            let (before, after) = if n % 2 == 1 { ("\\fB", "\\fR") } else { ("", "") };
            out.extend([before, &roff(piece), after]);
        }
        // A line that begins with a dot is a request.
        let guard = if out.starts_with(['.', '\'']) { "\\&" } else { "" };
        self.request(&format!("{guard}{out}"));
    }

    fn request(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }
}

/// A text in full, or in short where there is no more. Clap takes the full stop away from short ones.
fn said(long: Option<&StyledStr>, short: Option<&StyledStr>) -> String {
    let mut text = long.or(short).map(StyledStr::to_string).unwrap_or_default();
    if !text.is_empty() && !text.ends_with(['.', ']']) {
        text.push('.');
    }
    text
}

/// As it is typed.
fn name_of(argument: &Arg) -> String {
    match (argument.get_long(), argument.get_value_names()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some([name, ..])) => name.to_string(),
        (None, _) => argument.get_id().to_string(),
    }
}

fn is_same(one: &Arg, other: &Arg) -> bool {
    one.get_long().is_some() && one.get_long() == other.get_long() && one.get_env() == other.get_env()
}

/// A text in which nothing is a command to the typesetter; hyphens stay those that can be pasted.
fn roff(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '"' => out.push_str("\\(dq"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '…' => out.push_str("..."),
            other if other.is_ascii() => out.push(other),
            other => {
                let _infallible = write!(out, "\\[u{:04X}]", u32::from(other));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_typesetter_would_take_for_its_own_is_text() {
        let mut page = ManualPage(String::new());
        page.text(".so /etc/passwd `--flag` \\fB é it's");
        assert_eq!(page.0, "\\&.so /etc/passwd \\fB\\-\\-flag\\fR \\efB \\[u00E9] it\\(aqs\n");
    }
}
