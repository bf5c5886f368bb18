//! Facts about the union: its name, its addresses, its figures.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, FromArgMatches};
use lettre::Address;
use lettre::message::Mailbox;

use super::own_text::own_texts;
use super::theme::{self, Theme};
use super::{listen_address, read_text, web_address, whole};
use crate::domain::catalog::Catalog;
use crate::domain::email::EmailAddress;
use crate::domain::union::notice::Notices;
use crate::domain::union::service::ServiceFacts;
use crate::domain::union::{Sender, Standing, Union};
use crate::site::branding::Branding;

/// What a union is called that was given no name.
const NO_NAME: &str = "Consumer Union";

/// And where it listens without an address.
const NO_LISTEN: &str = "127.0.0.1:8080";

/// What the union says of itself; enough to print its documents.
#[derive(Clone, Args)]
#[command(next_help_heading = "The union")]
pub struct UnionSettings {
    /// The union's name, in documents and mails.
    #[arg(long, env = "UNIONHALL_NAME", value_name = "NAME", default_value = NO_NAME, value_parser = one_line)]
    pub name: String,

    /// The address to listen on: 8080 or localhost:8080 for this machine alone, :8080 for all of its addresses, or one of them
    /// with its port. Port 0 takes any free port.
    #[arg(
        long,
        env = "UNIONHALL_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = NO_LISTEN,
        value_parser = listen_address
    )]
    pub listen: SocketAddr,

    /// Where callers reach this API, as every document says it [default: http://LISTEN, https:// with a certificate].
    #[arg(long, env = "UNIONHALL_BASE_URL", value_name = "URL", value_parser = web_address)]
    pub base_url: Option<String>,

    /// Where people join: the site that referral links lead to [default: BASE_URL].
    #[arg(long, env = "UNIONHALL_JOIN_SITE", value_name = "URL", value_parser = web_address)]
    pub join_site: Option<String>,

    /// The address that people write to with questions, and partners for a key; shown on pages, in mails and in the documents.
    #[arg(long, env = "UNIONHALL_CONTACT_EMAIL", value_name = "EMAIL", value_parser = contact)]
    pub contact_email: Option<String>,

    /// The sender of all mail: `Consumer Union <hello@union.example>` [default: no-reply at the host of the join site].
    ///
    /// The documents say it too, so that people know which mail to look for.
    #[arg(long, env = "UNIONHALL_MAIL_FROM", value_name = "SENDER", value_parser = sender)]
    pub mail_from: Option<Mailbox>,

    #[command(flatten)]
    pub postal: PostalSettings,

    #[command(flatten)]
    pub figures: CatalogSettings,

    /// A folder with the union's own texts for people, in Markdown: about.md, privacy.md, terms.md, and the same in other
    /// languages, about.es.md.
    ///
    /// They stand above the program's own text: what it keeps, for how long, and what joining means. Read at the
    /// start. HTML in them is shown as text, and pictures are left out [default: none].
    #[arg(long, env = "UNIONHALL_PAGES", value_name = "FOLDER")]
    pub pages: Option<PathBuf>,

    /// How pages, mails and shared links look: a TOML file with `main` and `highlight`, two colors such as "#0a4d3f", and
    /// pictures beside it: `logo`, a PNG or SVG, and `card`, a PNG of 1200 by 630 pixels that chats show beside a shared link.
    ///
    /// Colors that could not be read on each other are refused. Read at the start [default: the built-in look].
    #[arg(long, env = "UNIONHALL_THEME", value_name = "FILE")]
    pub theme: Option<PathBuf>,

    /// Pages show the number of members once there are this many: "1 member" convinces no one.
    #[arg(long, env = "UNIONHALL_SHOW_MEMBERS_FROM", value_name = "N", default_value_t = 100, value_parser = whole::<u64>(0, u32::MAX))]
    pub show_members_from: u64,

    /// Requests a minute to public data, for each address, or for each key that is sent.
    #[arg(
        long,
        env = "UNIONHALL_PUBLIC_PER_MINUTE",
        value_name = "N",
        default_value_t = 60,
        value_parser = whole::<u32>(1, 1_000_000),
        help_heading = "Rate limits"
    )]
    pub public_per_minute: u32,

    /// Agent actions a minute for keys that were issued without a figure of their own.
    #[arg(
        long,
        env = "UNIONHALL_KEY_PER_MINUTE",
        value_name = "N",
        default_value_t = 30,
        value_parser = whole::<u32>(1, 1_000_000),
        help_heading = "Rate limits"
    )]
    pub key_per_minute: u32,

    /// Whether everybody in it is invented.
    #[arg(skip)]
    pub is_demonstration: bool,
}

/// The union's postal address. A command that mails people asks for it too.
#[derive(Clone, Args)]
pub struct PostalSettings {
    /// The union's postal address, shown at the foot of its mails and pages.
    #[arg(long, env = "UNIONHALL_POSTAL_ADDRESS", value_name = "ADDRESS", value_parser = one_line)]
    pub postal_address: Option<String>,
}

/// The union's name and addresses, for a command that prints them. What is not given is what the service says of itself.
#[derive(Clone, Args)]
#[command(next_help_heading = "The union")]
pub struct ServiceSettings {
    /// The union's name [default: the running service's].
    #[arg(long, env = "UNIONHALL_NAME", value_name = "NAME", value_parser = one_line)]
    pub name: Option<String>,
    /// Where people join [default: the running service's].
    #[arg(long, env = "UNIONHALL_JOIN_SITE", value_name = "URL", value_parser = web_address)]
    pub join_site: Option<String>,
    /// The address that people write to [default: the running service's].
    #[arg(long, env = "UNIONHALL_CONTACT_EMAIL", value_name = "EMAIL", value_parser = contact)]
    pub contact_email: Option<String>,
}

impl ServiceSettings {
    /// What was given, else what the service keeps, else the defaults.
    pub fn facts(&self, kept: Option<ServiceFacts>) -> ServiceFacts {
        let Self { name, join_site, contact_email } = self.clone();
        let here = format!("http://{NO_LISTEN}");
        let kept = kept.unwrap_or_else(|| ServiceFacts {
            name: NO_NAME.to_owned(),
            base_url: here.clone(),
            join_site: here,
            contact_email: None,
        });
        ServiceFacts {
            name: name.unwrap_or(kept.name),
            base_url: kept.base_url,
            join_site: join_site.unwrap_or(kept.join_site),
            contact_email: contact_email.or(kept.contact_email),
        }
    }
}

/// Which catalog is in use.
#[derive(Clone, Args)]
pub struct CatalogSettings {
    /// The catalog: a TOML file with the savings of each category, the referral terms, and who runs the union.
    ///
    /// Without one the sample is served, whose figures and texts are made up. `catalog.sample.toml` shows the form.
    /// Read again on SIGHUP [default: the built-in sample].
    #[arg(long, env = "UNIONHALL_CATALOG", value_name = "FILE")]
    pub catalog: Option<PathBuf>,
}

impl CatalogSettings {
    pub fn read(&self) -> anyhow::Result<Catalog> {
        let Some(path) = &self.catalog else { return Ok(Catalog::sample()) };
        let text = read_text(path).with_context(|| {
            format!("cannot read the catalog {}, which --catalog or UNIONHALL_CATALOG names", path.display())
        })?;
        Catalog::parse(&text).with_context(|| format!("the catalog {} has a mistake", path.display()))
    }
}

impl UnionSettings {
    /// A union with every setting at its default but for where it can be reached: for tests and benchmarks.
    pub fn sample() -> Union {
        let flags =
            ["", "--contact-email=hello@union.example", "--postal-address=12 Mill Street, Springfield, IL 62701"];
        let matches = Self::augment_args(clap::Command::new("sample")).get_matches_from(flags);
        let settings = Self::from_arg_matches(&matches).expect("the defaults are good settings");
        settings.facts("https://union.example".to_owned()).expect("the sample catalog reads")
    }

    /// The same, where what was not given is what the service says of itself.
    #[must_use]
    pub fn or_kept(self, kept: ServiceFacts, is_name_given: bool) -> Self {
        Self {
            name: if is_name_given { self.name } else { kept.name },
            base_url: self.base_url.or(Some(kept.base_url)),
            join_site: self.join_site.or(Some(kept.join_site)),
            contact_email: self.contact_email.or(kept.contact_email),
            ..self
        }
    }

    pub fn base_url(&self, listening: SocketAddr, scheme: &str) -> String {
        self.base_url.clone().unwrap_or_else(|| format!("{scheme}://{listening}"))
    }

    /// The facts about the union, for a service that is reached at `base_url`.
    pub fn facts(&self, base_url: String) -> anyhow::Result<Union> {
        let join_site = self.join_site.clone().unwrap_or_else(|| base_url.clone());
        Ok(Union {
            name: self.name.clone(),
            standing: match (self.is_demonstration, &self.figures.catalog) {
                (true, _) => Standing::Demonstration,
                (false, None) => Standing::Sample,
                (false, Some(_)) => Standing::Real,
            },
            sender: self.sender(&join_site)?,
            notices: Notices::of(&self.name, &join_site),
            colors: theme::read(self.theme.as_deref())?.colors,
            show_members_from: self.show_members_from,
            join_site,
            base_url,
            contact_email: self.contact_email.clone(),
            postal_address: self.postal.postal_address.clone(),
            catalog: self.figures.read()?,
            public_per_minute: self.public_per_minute,
            key_per_minute: self.key_per_minute,
        })
    }

    /// What the site shows of the operator's own.
    pub fn branding(&self) -> anyhow::Result<Branding> {
        let Theme { logo, card, .. } = theme::read(self.theme.as_deref())?;
        Ok(Branding { logo, card, texts: own_texts(self.pages.as_deref())? })
    }

    /// Whom mail comes from, for a union that is found at `join_site`.
    pub fn sender(&self, join_site: &str) -> anyhow::Result<Sender> {
        if let Some(Mailbox { name, email }) = &self.mail_from {
            return Ok(Sender { name: name.clone(), address: email.to_string() });
        }
        let uri: hyper::Uri = join_site.parse().context("the join site is not a web address")?;
        let host = uri.host().unwrap_or("localhost");
        // An address of this machine is no domain; mail from there stays here.
        let domain = if host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[') { "localhost" } else { host };
        let address = Address::new("no-reply", domain).with_context(|| {
            format!("no sender can be made for {join_site}; give one with --mail-from or UNIONHALL_MAIL_FROM")
        })?;
        Ok(Sender { name: Some(self.name.clone()), address: address.to_string() })
    }
}

fn one_line(text: &str) -> Result<String, String> {
    let text = text.trim();
    let sane = !text.is_empty() && text.chars().count() <= 200 && !text.chars().any(char::is_control);
    if sane { Ok(text.to_owned()) } else { Err("write 1 to 200 characters on one line".to_owned()) }
}

fn sender(text: &str) -> Result<Mailbox, String> {
    let wrong = "write an address, with a name before it if you like: Consumer Union <hello@union.example>";
    text.parse().map_err(|_| wrong.to_owned())
}

fn contact(text: &str) -> Result<String, String> {
    let email = EmailAddress::parse(text).map_err(|_| "write an address such as keys@union.example".to_owned())?;
    Ok(email.as_typed().to_owned())
}
