//! What the start says of settings that work and should be otherwise.

use crate::cli::settings::secret_flags;
use crate::cli::{findings, print_aside};
use crate::config::{MailTransport, ServeSettings};
use crate::domain::union::Union;
use crate::log::{Level, Log};

pub(super) fn tell(settings: &ServeSettings, mail: &MailTransport, union: &Union, log: &Log) {
    let found = [findings::open_files(settings), secret_flags::findings(), findings::unknown_variables()];
    let warn = |finding| log.warning(&findings::sentence(finding));
    found.iter().flatten().filter(|finding| !finding.is_ok()).for_each(warn);
    for finding in findings::public_address(Some(mail), union).iter().filter(|finding| !finding.is_ok()) {
        match settings.log {
            // Nobody else would notice.
            Level::Off => print_aside(&format!("unionhall: WARNING: {}", findings::sentence(finding))),
            _ => warn(finding),
        }
    }
}
