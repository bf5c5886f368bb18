//! Whether every setting can be read, and what the settings say of a union that is open to the public.

use crate::cli::command_line;
use crate::cli::command_line::without_empty_variables;
use crate::cli::findings::{self, Finding, Grade};
use crate::cli::serve::read_tls;
use crate::cli::settings::secret_flags;
use crate::clock::Clock;
use crate::config::{CatalogSettings, Keyring, LimitsAddress, MailTransport, ServeSettings, UnionSettings};
use crate::domain::union::Union;
use crate::http::connection::tls;

use super::or_ok;
use super::refused::{RefusedVariable, without_refused};

const SETTINGS: &str = "settings";

/// A certificate that ends within so many days is to be renewed.
const RENEW_DAYS: u64 = 14;

/// What the service would be given, as far as it can be read.
pub(super) struct ReadSettings {
    /// None where it cannot be read.
    pub secret: Option<Option<Keyring>>,
    pub mail: Option<MailTransport>,
    pub limits: Option<LimitsAddress>,
    pub union: Option<Union>,
    /// Whether the union has its own catalog, or the sample if none is set.
    pub has_catalog: bool,
    /// The pages of trust without a text of the union's own; none where its texts cannot be read.
    pub silent_pages: Vec<&'static str>,
}

impl ReadSettings {
    pub(super) fn read(settings: &ServeSettings) -> (Self, Vec<Finding>) {
        let mut found = Vec::new();
        for RefusedVariable { name, why } in without_refused(without_empty_variables(command_line())).1 {
            let fix =
                format!("correct {name}, which `unionhall serve --help` explains; the checks below ran without it");
            found.push(Finding::fail(SETTINGS, why, fix));
        }
        let scheme = if settings.tls_cert.is_some() { "https" } else { "http" };
        let base_url = settings.union.base_url(settings.union.listen, scheme);
        // Its catalog is read beside it: one that cannot be read hides nothing else.
        let bare = UnionSettings { figures: CatalogSettings { catalog: None }, ..settings.union.clone() };
        let union = kept(bare.facts(base_url), &mut found);
        // It reads the theme too: whose mistake is found already.
        let branding = union.as_ref().and_then(|_| kept(settings.union.branding(), &mut found));
        let catalog = kept(settings.union.figures.read(), &mut found);
        kept(settings.store.records(), &mut found);
        let read = Self {
            secret: kept(settings.secret.given(), &mut found),
            mail: kept(settings.mail.transport(), &mut found),
            limits: kept(settings.limits.address(), &mut found),
            has_catalog: catalog.is_some(),
            silent_pages: branding.map(|branding| branding.texts.silent()).unwrap_or_default(),
            union: union.map(|union| match catalog {
                Some(catalog) => Union { catalog, ..union },
                None => union,
            }),
        };
        kept(settings.mail.disposable.read(), &mut found);
        kept(settings.mail_hooks.hooks(), &mut found);
        kept(settings.notify.target(), &mut found);
        kept(read_tls(settings), &mut found);
        let mut all = or_ok(found, SETTINGS, "all of them are valid");
        all.extend(or_ok(findings::unknown_variables(), "variables", "each UNIONHALL_ variable is a setting"));
        all.extend(or_ok(secret_flags::findings(), "flags", "no secret is among them"));
        (read, all)
    }
}

/// The value, or a finding that says why there is none.
fn kept<T>(read: anyhow::Result<T>, found: &mut Vec<Finding>) -> Option<T> {
    let fault = |error| Finding::of_error(SETTINGS, Grade::Fail, &error).or_fix("`unionhall serve --help` explains it");
    read.map_err(|error| found.push(fault(error))).ok()
}

/// Whether the certificate is good for a while yet. One that cannot be read was told with the settings.
pub(super) fn certificate(settings: &ServeSettings) -> Vec<Finding> {
    const CHECK: &str = "certificate";
    let Some(path) = &settings.tls_cert else { return Vec::new() };
    let Ok(end) = tls::expiry(path) else { return Vec::new() };
    let now = Clock::start().now().time;
    let (shown, days) = (path.display(), end.since(now).as_secs() / 86_400);
    let fix = "renew it, then send the service SIGHUP, which reads it again";
    vec![if end <= now {
        Finding::fail(CHECK, format!("the one in {shown} ended on {}", end.day()), fix)
    } else if days < RENEW_DAYS {
        Finding::warn(CHECK, format!("the one in {shown} ends on {}, in {days} days", end.day()), fix)
    } else {
        Finding::ok(CHECK, format!("good until {}", end.day()))
    }]
}
