//! The parts of the operator's page.

use std::sync::Arc;

use crate::cli::findings::Finding;
use crate::cli::remedy;
use crate::config::{MailTransport, ServeSettings};
use crate::domain::secret::Secret;
use crate::http::request::client_address::TrustedProxies;
use crate::http::request::identity_header::IdentityHeader;
use crate::operator::Operator;
use crate::operator::access::OperatorAccess;
use crate::operator::running::RunningFindings;
use crate::people::erasures::ErasureLog;
use crate::server::OperatorParts;

/// What `doctor` finds of this machine.
pub(in crate::cli) type LookAtMachine = fn(&ServeSettings) -> Vec<Finding>;

pub(super) fn make(
    settings: &ServeSettings,
    look: LookAtMachine,
    operator: Operator,
    secret: &Secret,
    mail: &MailTransport,
) -> OperatorParts {
    let (kept, to_folder) = (settings.clone(), matches!(mail, MailTransport::Mailbox));
    let findings = RunningFindings::new(Box::new(move || look(&kept)), to_folder, settings.backup.backup_every);
    let (secret, erasures) = (secret.clone(), ErasureLog::beside(&settings.store.data));
    let from = TrustedProxies::new(settings.operator.operator_header_from.clone());
    OperatorParts {
        access: Some(Arc::new(OperatorAccess::new(operator, secret, erasures, findings, remedy::write))),
        header: settings.operator.operator_header.clone().map(|name| IdentityHeader::new(name, from)),
    }
}
