//! The settings of a demonstration: those of `serve`, of which nothing is taken from variables.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Context, ensure};
use clap::{Args, FromArgMatches};

use super::folder::CATALOG;
use crate::cli::{files, print_aside, serve, variables};
use crate::config::ServeSettings;
use crate::domain::catalog::SAMPLE;

/// Where it listens if that is free and nothing else was said.
const USUAL_PORT: u16 = 8080;

/// What the sample's catalog leaves to a real union to say, as an invented one says it.
const ANSWERS: [(&str, &str); 6] = [
    ("Sample text. A real union names the people or company behind it here.", "Example Cooperative, Springfield."),
    (
        "Texto de muestra. Una unión real dice aquí qué personas o empresa están detrás.",
        "Example Cooperative, de Springfield.",
    ),
    ("Sample text. A real union gives its price here.", "Nothing."),
    ("Texto de muestra. Una unión real dice aquí su precio.", "Nada."),
    (
        "Sample text. A real union says here who pays it and who pays for rewards.",
        "Suppliers pay a fee for each member who switches, and rewards come out of it.",
    ),
    (
        "Texto de muestra. Una unión real dice aquí quién le paga y quién paga las recompensas.",
        "Los proveedores pagan por cada miembro que se cambia, y de ahí salen las recompensas.",
    ),
];

/// The sample's figures with answers of its own.
pub(super) fn write_catalog(data: &Path) -> anyhow::Result<()> {
    let text = ANSWERS.iter().fold(SAMPLE.to_owned(), |text, (sample, answer)| text.replace(sample, answer));
    files::write_private_file(&data.join(CATALOG), &text)
}

/// The settings of `serve` for it. Nothing is read from variables, so no mail server, store or secret of somebody's is ever used.
pub(super) fn settings(data: &Path, listen: SocketAddr) -> anyhow::Result<ServeSettings> {
    let catalog = data.join(CATALOG);
    let flags: [&std::ffi::OsStr; 16] = [
        "demo".as_ref(),
        "--data".as_ref(),
        data.as_os_str(),
        "--catalog".as_ref(),
        catalog.as_os_str(),
        "--listen".as_ref(),
        &std::ffi::OsString::from(listen.to_string()),
        "--name=Example Consumer Union".as_ref(),
        "--contact-email=hello@union.example".as_ref(),
        "--mail-from=Example Consumer Union <hello@union.example>".as_ref(),
        "--postal-address=12 Mill Street, Springfield, IL 62701".as_ref(),
        // Campaigns' mail is there at once, and everybody can be asked as often as they like.
        "--campaign-mails-an-hour=100000".as_ref(),
        "--public-per-minute=600".as_ref(),
        "--key-per-minute=600".as_ref(),
        "--log=errors".as_ref(),
        "--mail=mailbox:".as_ref(),
    ];
    let command = ServeSettings::augment_args(clap::Command::new("demo")).mut_args(|flag| flag.env(None::<&str>));
    let mut settings = ServeSettings::from_arg_matches(&command.try_get_matches_from(flags)?)?;
    settings.union.is_demonstration = true;
    settings.outbound.only_this_machine = true;
    Ok(settings)
}

/// Says which variables would be settings of a real service.
pub(super) fn tell_ignored() {
    let set: Vec<_> = variables().into_iter().filter(|name| std::env::var_os(name).is_some()).collect();
    if !set.is_empty() {
        print_aside(&format!(
            "unionhall: {} {} ignored: a demonstration takes no settings, and no mail leaves this machine",
            set.join(", "),
            if set.len() == 1 { "is" } else { "are" }
        ));
    }
}

/// An address of this machine that is free, and stays ours while its listener is kept.
pub(super) fn choose_address(given: Option<SocketAddr>) -> anyhow::Result<TcpListener> {
    if let Some(address) = given {
        ensure!(
            address.ip().is_loopback(),
            "a demonstration is for this machine alone, and {} is more than that: write --listen 127.0.0.1:{}",
            address.ip(),
            address.port()
        );
    }
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, USUAL_PORT));
    match given {
        Some(address) => TcpListener::bind(address).map_err(|error| serve::unusable(address, "--listen", &error)),
        None => TcpListener::bind(usual)
            .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
            .context("no port of this machine is free"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::catalog::Catalog;

    #[test]
    fn nothing_of_a_demonstration_calls_itself_a_sample() {
        let folder = tempfile::tempdir().unwrap();
        write_catalog(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join(CATALOG)).unwrap();
        assert!(!text.contains("Sample text") && !text.contains("Texto de muestra"), "{text}");
        Catalog::parse(&text).unwrap();
    }
}
