//! `unionhall completions` and `unionhall manual`: shell completions and a man page, from the definitions of the commands.

use std::io::Write;

use clap::{Arg, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{command_line, print_line};

#[derive(Clone, Copy, ValueEnum)]
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

/// What the definitions of the commands do not say.
const MANUAL_END: &str = r"
.SH ENVIRONMENT
Every setting is a flag and a variable. A flag overrides its variable. A variable that is set to nothing counts as not set.
A setting that serve has, too, is explained there.
.SH EXIT STATUS
.IP 0
It is done.
.IP 1
It could not be done; the last line says why and how to fix it.
.IP 2
The command line or a variable has a mistake.
.IP 75
It cannot be done now; the caller keeps what it has and calls again.
.SH SIGNALS
.IP SIGTERM
serve finishes what was begun and ends, within ten seconds; so does SIGINT.
.IP SIGHUP
serve reads the certificate and the catalog again; one with a mistake leaves the old one in use.
";

/// One man page for all commands, so that there is one place to search.
pub(super) fn manual() -> anyhow::Result<()> {
    let mut program = command_line().disable_help_subcommand(true);
    program.build();
    let man = Man::new(program.clone()).title("UNIONHALL").date(" ").manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    // Names must be found by a search and pasted whole: no hyphenation, no justified lines.
    page.extend(b".nh\n.ad l\n");
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    page.extend(b".SH COMMANDS\n");
    let serve = program.find_subcommand("serve").map(|serve| serve.get_arguments().collect()).unwrap_or_default();
    add_commands(&mut page, &program, &serve)?;
    page.extend(MANUAL_END.trim_start().bytes());
    print_line(in_ascii(&String::from_utf8(page)?).trim_end())
}

/// The commands below this one. A setting that `serve` has too is explained there alone.
fn add_commands(page: &mut Vec<u8>, parent: &clap::Command, serve: &Vec<&Arg>) -> anyhow::Result<()> {
    for command in parent.get_subcommands() {
        let is_shared = |argument: &Arg| {
            let is_same =
                |known: &&Arg| known.get_long() == argument.get_long() && known.get_env() == argument.get_env();
            command.get_name() != "serve" && argument.get_env().is_some() && serve.iter().any(is_same)
        };
        let own = command.clone().mut_args(|argument| {
            let is_hidden = argument.is_hide_set() || argument.get_id() == "help" || is_shared(&argument);
            argument.hide(is_hidden)
        });
        let (whole, own) = (Man::new(command.clone()), Man::new(own));
        let mut sections = Vec::new();
        whole.render_synopsis_section(&mut sections)?;
        sections.extend(b".PP\n");
        whole.render_description_section(&mut sections)?;
        own.render_options_section(&mut sections)?;
        // Line by line: it is a file.
        sections.extend(b".PP\n.nf\n");
        whole.render_extra_section(&mut sections)?;
        sections.extend(b".fi\n");
        writeln!(page, ".SS \"{}\"", command.get_bin_name().unwrap_or_else(|| command.get_name()))?;
        // They are sections of a page of their own: without their headings, and what stands at its top.
        let is_heading = |line: &&str| [".SH ", ".ie ", ".el "].iter().any(|start| line.starts_with(start));
        for line in String::from_utf8(sections)?.lines().filter(|line| !is_heading(line)) {
            writeln!(page, "{line}")?;
        }
        add_commands(page, command, serve)?;
    }
    Ok(())
}

/// Characters as typesetters of every locale show them, and such that they can be pasted.
fn in_ascii(page: &str) -> String {
    let written = |character: char| match character {
        '`' => "\\(ga".to_owned(),
        // A line may end before it: addresses with parameters are longer than lines.
        '&' => "\\:&".to_owned(),
        '^' => "\\(ha".to_owned(),
        '~' => "\\(ti".to_owned(),
        '…' => "...".to_owned(),
        other if other.is_ascii() => other.to_string(),
        other => format!("\\[u{:04X}]", u32::from(other)),
    };
    page.chars().map(written).collect()
}
