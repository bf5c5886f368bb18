//! What the start says of settings that work and should be otherwise.

use crate::cli::{findings, secret_flags, variables};
use crate::config::{MailTransport, ServeSettings};
use crate::domain::union::Union;
use crate::log::Log;

pub(super) fn tell(settings: &ServeSettings, mail: &MailTransport, union: &Union, log: &Log) {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let quiet = findings::open_files(settings)
        .into_iter()
        .chain(secret_flags::findings())
        .chain(findings::unknown_variables(names, &variables()));
    quiet.for_each(|finding| log.problem(None, &finding.sentence()));
    // As loud as anything is, for nobody else would notice.
    for finding in findings::public_address(Some(mail), union).iter().filter(|finding| !finding.is_ok()) {
        eprintln!("unionhall: WARNING: {}", finding.sentence());
        log.problem(None, &finding.sentence());
    }
}
