//! What the start says of settings that work and should be otherwise.

use crate::cli::findings::{self, TrialSettings};
use crate::cli::print_aside;
use crate::cli::settings::secret_flags;
use crate::config::ServeSettings;
use crate::domain::union::Union;
use crate::domain::union::service::{ChangedFact, ServiceFacts};
use crate::http::request::host::of_url;
use crate::log::{Level, Log};
use crate::loopback::is_loopback;

pub(super) fn tell(settings: &ServeSettings, trial: &TrialSettings, union: &Union, log: &Log) {
    let found = [findings::open_files(settings), secret_flags::findings(), findings::unknown_variables()];
    let warn = |finding| log.warning(&findings::sentence(finding));
    found.iter().flatten().filter(|finding| !finding.is_ok()).for_each(warn);
    for finding in findings::public_address(union, trial).iter().filter(|finding| !finding.is_ok()) {
        match settings.log {
            // Nobody else would notice.
            Level::Off => print_aside(&format!("unionhall: WARNING: {}", findings::sentence(finding))),
            _ => warn(finding),
        }
    }
}

/// Says what this start says of the service that the one before did not. Of an address on this machine that gives way nothing is lost.
pub(super) fn tell_changed(facts: &ServiceFacts, before: Option<&ServiceFacts>, log: &Log) {
    let changed = before.map(|before| facts.changed_since(before)).unwrap_or_default();
    let is_told = |fact: &&ChangedFact| !fact.before.starts_with("http") || !is_loopback(of_url(&fact.before));
    let changed: Vec<_> = changed
        .iter()
        .filter(is_told)
        .map(|ChangedFact { what, before, now }| format!("{what} {now} (before: {before})"))
        .collect();
    if !changed.is_empty() {
        log.warning(&format!(
            "the settings differ from those of the last start on these records: {}; commands print the new ones from now on, so give every \
             node the same",
            changed.join(", ")
        ));
    }
}
