//! `unionhall completions` and `unionhall manual`: shell completions and a man page, from the definitions of the commands.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use clap::{Arg, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::{AFTER_HELP, TryLater, command_line, print_line};

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
    let mut program = command_line().disable_help_subcommand(true);
    program.build();
    print_line(manual_page(&program)?.trim_end())
}

/// One man page for all commands, so that there is one place to search.
fn manual_page(program: &clap::Command) -> anyhow::Result<String> {
    let man = Man::new(program.clone()).title("UNIONHALL").date(" ").manual("User Commands");
    let mut page = rendered(|out| man.render_title(out))?;
    // Names must be found by a search and pasted whole: no hyphenation, no justified lines.
    page.push_str(".nh\n.ad l\n");
    page.push_str(&rendered(|out| man.render_name_section(out))?);
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]).text([bold("unionhall"), roman(" COMMAND [OPTIONS]")]);
    roff.control("SH", ["DESCRIPTION"]).text([roman(format!(
        "{AFTER_HELP} A flag overrides its variable. A variable that is set to nothing counts as not set."
    ))]);
    roff.control("SH", ["COMMANDS"]);
    page.push_str(&roff.to_roff());
    let serve = program.find_subcommand("serve").map(|serve| serve.get_arguments().collect()).unwrap_or_default();
    add_commands(&mut page, program, &serve)?;
    let mut roff = Roff::new();
    add_variables(&mut roff, program);
    roff.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in [
        (0, "It is done."),
        (1, "It could not be done; the last line says why and how to fix it."),
        (2, "The command line or a variable has a mistake."),
        (TryLater::CODE, "It cannot be done now; the caller keeps what it has and calls again."),
    ] {
        add_entry(&mut roff, &code.to_string(), meaning);
    }
    roff.control("SH", ["SIGNALS"]);
    add_entry(&mut roff, "SIGTERM, SIGINT", "serve finishes what was begun and ends, within ten seconds.");
    add_entry(
        &mut roff,
        "SIGHUP",
        "serve reads the certificate and the catalog again; one with a mistake leaves the old one in use.",
    );
    page.push_str(&roff.to_roff());
    Ok(ascii(&page))
}

/// The commands below this one. A setting that `serve` has too is explained there alone.
fn add_commands(page: &mut String, parent: &clap::Command, serve: &Vec<&Arg>) -> anyhow::Result<()> {
    for command in parent.get_subcommands() {
        let is_shared = |argument: &Arg| {
            let is_same =
                |known: &&Arg| known.get_long() == argument.get_long() && known.get_env() == argument.get_env();
            command.get_name() != "serve" && argument.get_env().is_some() && serve.iter().any(is_same)
        };
        let mut roff = Roff::new();
        roff.control("SS", [command.get_bin_name().unwrap_or_else(|| command.get_name())]);
        let usage = command.clone().render_usage().to_string();
        roff.text([bold(usage.trim_start_matches("Usage:").trim())]).control("PP", []);
        page.push_str(&roff.to_roff());
        let shared: Vec<_> = command.get_arguments().filter(|argument| is_shared(argument)).map(flag_of).collect();
        let man = Man::new(command.clone().mut_args(|argument| {
            let hidden = argument.is_hide_set() || argument.get_id() == "help" || is_shared(&argument);
            argument.hide(hidden)
        }));
        page.push_str(&without_heading(&rendered(|out| man.render_description_section(out))?));
        page.push_str(&without_heading(&rendered(|out| man.render_options_section(out))?));
        // Line by line: it is a file.
        if let Some(file) = command.get_after_long_help().map(ToString::to_string) {
            let mut roff = Roff::new();
            roff.control("PP", []);
            for line in file.lines().filter(|line| !line.is_empty()) {
                roff.text([roman(line)]).control("br", []);
            }
            page.push_str(&roff.to_roff());
        }
        if !shared.is_empty() {
            let mut roff = Roff::new();
            roff.control("PP", []).text([roman(format!("As for unionhall serve: {}.", shared.join(", ")))]);
            page.push_str(&roff.to_roff());
        }
        add_commands(page, command, serve)?;
    }
    Ok(())
}

/// Every variable with the flags that it stands for.
fn add_variables(roff: &mut Roff, program: &clap::Command) {
    fn collect(command: &clap::Command, found: &mut BTreeMap<String, BTreeSet<String>>) {
        for argument in command.get_arguments() {
            if let Some(variable) = argument.get_env().and_then(|name| name.to_str()) {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                found.entry(variable.to_owned()).or_default().insert(format!("{}: {help}.", flag_of(argument)));
            }
        }
        command.get_subcommands().for_each(|command| collect(command, found));
    }
    let mut found = BTreeMap::new();
    collect(program, &mut found);
    roff.control("SH", ["ENVIRONMENT"]);
    for (variable, meanings) in found {
        add_entry(roff, &variable, &meanings.into_iter().collect::<Vec<_>>().join("\n\n"));
    }
}

/// A name and, further in, what it means.
fn add_entry(roff: &mut Roff, name: &str, text: &str) {
    roff.control("TP", []).text([bold(name)]).text([roman(text)]);
}

fn flag_of(argument: &Arg) -> String {
    argument.get_long().map_or_else(|| argument.get_id().to_string(), |long| format!("--{long}"))
}

/// What clap_mangen writes, without the definition of an apostrophe that it puts before every part.
fn rendered(render: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> anyhow::Result<String> {
    let mut out = Vec::new();
    render(&mut out)?;
    let text = String::from_utf8(out)?.replace("\\*(Aq", "'");
    let lines = text.lines().filter(|line| !line.starts_with(".ie ") && !line.starts_with(".el "));
    Ok(lines.flat_map(|line| [line, "\n"]).collect())
}

fn without_heading(section: &str) -> String {
    let lines = section.lines().filter(|line| !line.starts_with(".SH "));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Characters as typesetters of every locale show them; quotes and accents stay those that can be pasted. Code is bold.
fn ascii(page: &str) -> String {
    let mut out = String::with_capacity(page.len() + 1024);
    for line in page.lines() {
        let (is_paired, mut is_code) = (line.matches('`').count() % 2 == 0, false);
        for character in line.chars() {
            match character {
                '`' if is_paired => {
                    is_code = !is_code;
                    out.push_str(if is_code { "\\fB" } else { "\\fR" });
                }
                '`' => out.push_str("\\(ga"),
                '\'' => out.push_str("\\(aq"),
                '^' => out.push_str("\\(ha"),
                '~' => out.push_str("\\(ti"),
                '…' => out.push_str("..."),
                other if other.is_ascii() => out.push(other),
                other => out.push_str(&format!("\\[u{:04X}]", u32::from(other))),
            }
        }
        out.push('\n');
    }
    out
}
