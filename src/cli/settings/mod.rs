//! `unionhall settings`: what each setting of `serve` is, and where it comes from. Needs no store, and shows no secret.

pub(in crate::cli) mod secret_flags;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args};
use serde_json::json;

use super::findings::{self, Finding};
use super::{command_line, print_json, print_line};
use crate::config::{LimitsAddress, MailTransport, ServeSettings};
use crate::domain::text::quote;

/// The command whose arguments are those of `serve`.
const NAME: &str = "settings";

#[derive(Args)]
pub(super) struct ShowSettings {
    /// As JSON for programs: {settings: a list of {flag, variable, value, source, file, follows}, warnings: a list of {message, fix}}.
    /// `follows` is the variable that the value derives from.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    serve: ServeSettings,
}

/// Where a value comes from.
enum Origin {
    Flag,
    Variable(String),
    /// The file that a flag or a variable names.
    File(String),
    Default,
    /// The variable of another setting.
    Follows(&'static str),
}

impl Origin {
    const fn name(&self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Variable(_) => "variable",
            Self::File(_) => "file",
            Self::Default => "default",
            Self::Follows(_) => "follows",
        }
    }

    const fn followed(&self) -> Option<&'static str> {
        if let Self::Follows(name) = self { Some(name) } else { None }
    }

    fn file(&self) -> Option<&str> {
        if let Self::File(path) = self { Some(path) } else { None }
    }

    fn words(&self) -> String {
        match self {
            Self::Variable(name) => name.clone(),
            Self::File(path) => format!("file {}", one_line(path)),
            Self::Follows(name) => format!("follows {name}"),
            Self::Flag | Self::Default => self.name().to_owned(),
        }
    }
}

struct ShownSetting {
    flag: String,
    variable: String,
    /// None where nothing is set, derived or fixed.
    value: Option<String>,
    /// What holds then.
    otherwise: String,
    origin: Origin,
}

/// `matches` is what the whole command line was parsed into.
pub(super) fn run(task: &ShowSettings, matches: &ArgMatches) -> anyhow::Result<()> {
    let line = command_line();
    let (Some(command), Some(matches)) = (line.find_subcommand(NAME), matches.subcommand_matches(NAME)) else {
        anyhow::bail!("the command line was not parsed for this command");
    };
    let all: Vec<_> =
        command.get_arguments().filter_map(|argument| shown(argument, command, matches, &task.serve)).collect();
    let mut warnings = findings::unknown_variables();
    warnings.extend(secret_flags::findings());
    if task.json {
        let settings: Vec<_> = all.iter().map(as_json).collect();
        let as_json = |warning: &Finding| json!({ "message": warning.message, "fix": findings::fix(warning) });
        let warnings: Vec<_> = warnings.iter().map(as_json).collect();
        return print_json(&json!({ "settings": settings, "warnings": warnings }));
    }
    let rows: Vec<_> = all.iter().map(as_row).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0) + 2;
    let (flags, origins) = (width(0), width(1));
    print_line(&format!("{:<flags$}{:<origins$}VALUE", "SETTING", "FROM"))?;
    for [flag, origin, value] in &rows {
        print_line(&format!("{flag:<flags$}{origin:<origins$}{value}"))?;
    }
    warnings.iter().try_for_each(|warning| print_line(&format!("\nWARNING: {}", findings::sentence(warning))))
}

fn as_json(setting: &ShownSetting) -> serde_json::Value {
    let ShownSetting { flag, variable, value, origin, .. } = setting;
    let (source, file, follows) = (origin.name(), origin.file(), origin.followed());
    json!({ "flag": flag, "variable": variable, "value": value, "source": source, "file": file, "follows": follows })
}

fn as_row(setting: &ShownSetting) -> [String; 3] {
    let value = one_line(setting.value.as_ref().unwrap_or(&setting.otherwise));
    [setting.flag.clone(), setting.origin.words(), value]
}

fn one_line(text: &str) -> String {
    if text.contains(char::is_control) { quote(text) } else { text.to_owned() }
}

/// None for what is no setting of `serve`, or is shown with another.
fn shown(
    argument: &Arg,
    command: &clap::Command,
    matches: &ArgMatches,
    settings: &ServeSettings,
) -> Option<ShownSetting> {
    let (variable, flag) = (argument.get_env()?.to_str()?.to_owned(), argument.get_long()?);
    let id = argument.get_id().as_str();
    let is_known = |id: &str| command.get_arguments().any(|argument| argument.get_id() == id);
    if id.strip_suffix("_file").is_some_and(is_known) {
        return None;
    }
    let file = Some(format!("{id}_file")).filter(|file| is_known(file)).and_then(|file| raw(matches, &file));
    let origin = match (matches.value_source(id), file) {
        (_, Some(file)) => Origin::File(file),
        (Some(ValueSource::EnvVariable), _) if !secret_flags::was_moved(&variable) => {
            Origin::Variable(variable.clone())
        }
        (Some(ValueSource::EnvVariable | ValueSource::CommandLine), _) => Origin::Flag,
        _ => Origin::Default,
    };
    let is_default = matches!(origin, Origin::Default);
    let value = match id {
        "listen" => Some(settings.union.listen.to_string()),
        _ if argument.is_hide_env_values_set() => concealed(id, settings, is_default),
        _ => raw(matches, id).map(|value| if secret_flags::has_password(&value) { "set".to_owned() } else { value }),
    };
    let derived = if is_default { derived(id, settings) } else { None };
    let (value, origin) = derived.map_or((value, origin), |(value, from)| (Some(value), Origin::Follows(from)));
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let told = help.split_once("[default: ").and_then(|(_, rest)| rest.split(']').next());
    let otherwise = told.unwrap_or("not set").to_owned();
    Some(ShownSetting { flag: format!("--{flag}"), variable, value, otherwise, origin })
}

/// What a setting that is not given follows from another, and the variable of that.
fn derived(id: &str, settings: &ServeSettings) -> Option<(String, &'static str)> {
    let union = &settings.union;
    let base_url = || union.base_url(union.listen, if settings.tls_cert.is_some() { "https" } else { "http" });
    Some(match id {
        "base_url" => (base_url(), "UNIONHALL_LISTEN"),
        "join_site" => (base_url(), "UNIONHALL_BASE_URL"),
        "mail_from" => {
            let join_site = union.join_site.clone().unwrap_or_else(base_url);
            (union.sender(&join_site).ok()?.to_string(), "UNIONHALL_JOIN_SITE")
        }
        "secret" => (format!("the file {}", settings.store.data.join("secret").display()), "UNIONHALL_DATA"),
        _ => return None,
    })
}

/// As it was written, several with commas between them.
fn raw(matches: &ArgMatches, id: &str) -> Option<String> {
    let values: Vec<_> = matches.get_raw(id)?.map(|value| value.to_string_lossy()).collect();
    Some(values.join(","))
}

/// What a setting that may hold a password comes to, without it.
fn concealed(id: &str, settings: &ServeSettings, is_default: bool) -> Option<String> {
    let value = match id {
        "store" => settings.store.records().map(|records| records.to_string()),
        "limits" => settings.limits.address().map(|limits| match limits {
            LimitsAddress::Memory => "memory:".to_owned(),
            LimitsAddress::Redis(target) => target.to_string(),
        }),
        "mail" => settings.mail.transport().map(|mail| match mail {
            MailTransport::Mailbox => "mailbox:".to_owned(),
            MailTransport::Hold => "hold".to_owned(),
            MailTransport::None => "none".to_owned(),
            MailTransport::Smtp(smtp) => smtp.to_string(),
        }),
        _ if is_default => return None,
        "notify" => settings.notify.target().map(|target| target.map_or_else(String::new, |target| target.to_string())),
        _ => Ok("set".to_owned()),
    };
    // Errors of these repeat nothing of the value.
    Some(value.unwrap_or_else(|error| format!("cannot be used: {error:#}")))
}
