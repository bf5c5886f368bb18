//! What the start says of settings that work and should be otherwise.

use crate::cli::settings::secret_flags;
use crate::cli::{findings, print_aside, variables};
use crate::config::{MailTransport, ServeSettings};
use crate::domain::union::Union;
use crate::log::{Level, Log};

pub(super) fn tell(settings: &ServeSettings, mail: &MailTransport, union: &Union, log: &Log) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let found = findings::open_files(settings)
        .into_iter()
        .chain(secret_flags::findings())
        .chain(findings::unknown_variables(names, &variables()));
    found.filter(|finding| !finding.is_ok()).for_each(|finding| log.warning(&finding.sentence()));
    for finding in findings::public_address(Some(mail), union).iter().filter(|finding| !finding.is_ok()) {
        match settings.log {
            // Nobody else would notice.
            Level::Off => print_aside(&format!("unionhall: WARNING: {}", finding.sentence())),
            _ => log.warning(&finding.sentence()),
        }
    }
}
