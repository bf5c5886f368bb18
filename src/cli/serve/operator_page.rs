//! The parts of the operator's page.

use std::sync::Arc;

use lettre::message::Mailbox;
use tokio::sync::watch;

use crate::cli::findings::Finding;
use crate::cli::remedy;
use crate::config::{MailTransport, OperatorSettings, ServeSettings};
use crate::domain::base32;
use crate::domain::catalog::Catalog;
use crate::domain::secret::Secret;
use crate::domain::secret::token::TokenMaker;
use crate::domain::union::Union;
use crate::domain::union::notice::Notices;
use crate::http::request::client_address::TrustedProxies;
use crate::http::request::identity_header::IdentityHeader;
use crate::mail::Transport;
use crate::mail::compose::Composer;
use crate::mail::preview::PREVIEW_SITE;
use crate::operator::Operator;
use crate::operator::access::{AccessParts, OperatorAccess};
use crate::operator::findings::TrialSettings;
use crate::operator::running::RunningFindings;
use crate::operator::service::{BackupMaker, HourlyLimit, OpensTestRecords, ServiceParts};
use crate::people::erasures::ErasureLog;
use crate::random;
use crate::server::OperatorParts;

/// What `doctor` finds of this machine.
type LookAtMachine = fn(&ServeSettings) -> Vec<Finding>;

/// What the page has of other commands.
#[derive(Clone, Copy)]
pub(in crate::cli) struct OfOtherCommands {
    pub look: LookAtMachine,
    pub backups: fn(&ServeSettings) -> anyhow::Result<Option<BackupMaker>>,
}

/// What the page has in common with the rest of the service.
pub(super) struct Shared<'a> {
    pub secret: &'a Secret,
    pub union: &'a Arc<Union>,
    pub catalog: &'a watch::Receiver<Catalog>,
    pub mail: &'a MailTransport,
    pub trial: &'a TrialSettings,
    pub transport: Option<Arc<dyn Transport>>,
    pub sandbox: Arc<dyn OpensTestRecords>,
    pub backups: Option<Arc<BackupMaker>>,
}

pub(super) fn make(
    settings: &ServeSettings,
    look: LookAtMachine,
    operator: Operator,
    shared: Shared<'_>,
) -> anyhow::Result<OperatorParts> {
    let (kept, trial) = (settings.clone(), shared.trial.clone());
    let findings = RunningFindings::new(Box::new(move || look(&kept)), trial, settings.backup.backup_every);
    let OperatorSettings { require_second_factor, two_people, operator_header, operator_header_from, .. } =
        settings.operator.clone();
    let OperatorSettings { operator_groups_header, operator_groups, .. } = settings.operator.clone();
    let from = TrustedProxies::new(operator_header_from);
    let parts = AccessParts {
        operator,
        secret: shared.secret.clone(),
        erasures: ErasureLog::beside(&settings.store.data),
        findings,
        write_remedy: remedy::write,
        service: service(settings, shared)?,
        require_second_factor,
        has_groups: operator_groups_header.is_some(),
        two_people,
    };
    Ok(OperatorParts {
        access: Some(Arc::new(OperatorAccess::new(parts))),
        header: operator_header.map(|name| IdentityHeader::new(name, from, operator_groups_header)),
        groups: operator_groups,
        roles_of: None,
    })
}

fn service(settings: &ServeSettings, shared: Shared<'_>) -> anyhow::Result<ServiceParts> {
    let Shared { secret, union, catalog, mail, transport, sandbox, backups, trial: _ } = shared;
    let from = Mailbox::new(union.sender.name.clone(), union.sender.address.parse()?);
    let composer = Composer {
        union: Arc::clone(union),
        catalog: catalog.clone(),
        from,
        tokens: TokenMaker::new(secret),
        bounces: None,
    };
    let nobodys = Secret::new(&String::from_utf8_lossy(&base32::encode::<52>(&random::bytes::<32>()?)))?;
    let elsewhere = Union {
        notices: Notices::of(&union.name, PREVIEW_SITE),
        base_url: PREVIEW_SITE.to_owned(),
        join_site: PREVIEW_SITE.to_owned(),
        ..Union::clone(union)
    };
    Ok(ServiceParts {
        sandbox,
        client: Arc::new(settings.outbound.client(&union.base_url)),
        previews: Composer { union: Arc::new(elsewhere), tokens: TokenMaker::new(&nobodys), ..composer.clone() },
        composer,
        transport,
        mail_goes_to: match mail {
            MailTransport::Smtp(smtp) => format!("to {smtp}"),
            MailTransport::Mailbox => "into the folder mailbox of the data folder, and to nobody's inbox".to_owned(),
            MailTransport::Hold => "nowhere from here: it waits for another node (UNIONHALL_MAIL)".to_owned(),
            MailTransport::None => "nowhere: none is sent (UNIONHALL_MAIL)".to_owned(),
        },
        backups,
        test_mails: HourlyLimit::new(5, 20),
        test_messages: HourlyLimit::new(30, 60),
    })
}
