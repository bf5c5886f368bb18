//! The parts of the operator's page.

use std::sync::Arc;

use crate::cli::findings::Finding;
use crate::cli::remedy;
use crate::config::{MailTransport, OperatorSettings, ServeSettings};
use crate::domain::secret::Secret;
use crate::http::request::client_address::TrustedProxies;
use crate::http::request::identity_header::IdentityHeader;
use crate::operator::Operator;
use crate::operator::access::{AccessParts, OperatorAccess};
use crate::operator::running::RunningFindings;
use crate::partners::worker::ContactMail;
use crate::people::erasures::ErasureLog;
use crate::server::OperatorParts;

/// What `doctor` finds of this machine.
pub(in crate::cli) type LookAtMachine = fn(&ServeSettings) -> Vec<Finding>;

pub(super) fn make(
    settings: &ServeSettings,
    look: LookAtMachine,
    operator: Operator,
    secret: &Secret,
    (transport, mail): (&MailTransport, Option<ContactMail>),
) -> OperatorParts {
    let (kept, to_folder) = (settings.clone(), matches!(transport, MailTransport::Mailbox));
    let findings = RunningFindings::new(Box::new(move || look(&kept)), to_folder, settings.backup.backup_every);
    let (secret, erasures) = (secret.clone(), ErasureLog::beside(&settings.store.data));
    let OperatorSettings { require_second_factor, two_people, operator_header, operator_header_from, .. } =
        settings.operator.clone();
    let OperatorSettings { operator_groups_header, operator_groups, .. } = settings.operator.clone();
    let from = TrustedProxies::new(operator_header_from);
    let has_groups = operator_groups_header.is_some();
    let write_remedy = remedy::write;
    let parts = AccessParts {
        operator,
        secret,
        erasures,
        findings,
        write_remedy,
        mail,
        require_second_factor,
        has_groups,
        two_people,
    };
    OperatorParts {
        access: Some(Arc::new(OperatorAccess::new(parts))),
        header: operator_header.map(|name| IdentityHeader::new(name, from, operator_groups_header)),
        groups: operator_groups,
    }
}
