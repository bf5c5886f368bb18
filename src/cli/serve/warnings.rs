//! What the start says of settings that work and should be otherwise.

use crate::cli::findings::Finding;
use crate::cli::settings::secret_flags;
use crate::cli::{findings, print_aside, variables};
use crate::config::{MailTransport, ServeSettings};
use crate::domain::union::Union;
use crate::log::{Level, Log};

/// What is wrong with the settings and the files beside the records.
pub(super) fn of_settings(settings: &ServeSettings) -> Vec<Finding> {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let found = findings::open_files(settings)
        .into_iter()
        .chain(secret_flags::findings())
        .chain(findings::unknown_variables(names, &variables()));
    found.filter(|finding| !finding.is_ok()).collect()
}

pub(super) fn tell(settings: &ServeSettings, mail: &MailTransport, union: &Union, log: &Log) {
    of_settings(settings).iter().for_each(|finding| log.warning(&finding.sentence()));
    for finding in findings::public_address(Some(mail), union).iter().filter(|finding| !finding.is_ok()) {
        match settings.log {
            // Nobody else would notice.
            Level::Off => print_aside(&format!("unionhall: WARNING: {}", finding.sentence())),
            _ => log.warning(&finding.sentence()),
        }
    }
}
