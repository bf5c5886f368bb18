//! What is wrong with the running service, where it can tell cheaply: what `unionhall doctor` and the alerts of `deploy/` would say, each
//! with the command that helps. Results are kept for a while, no matter how many look.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::Operator;
use super::findings::{self, BACKUP, Finding, Grade, MAIL};
use crate::domain::figure::capped;
use crate::domain::mail::MOST_COUNTED;
use crate::domain::remedy::Remedy;
use crate::domain::time::{Tick, Timestamp};
use crate::domain::union::Union;
use crate::installation::{AreSignUpsPaused, FindLastBackup};
use crate::mail::sources::FindMailFigures;
use crate::store::StoreError;

const BELIEVED_FOR: Duration = Duration::from_secs(15);

/// How long a check may take; a page does not wait longer for it.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);

/// Mail that has waited this long is stuck for a reason. The alert UnionhallMailOld uses the same limit.
const MAIL_IS_OLD: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy)]
pub struct RunningState<'a> {
    pub union: &'a Union,
    pub is_public: bool,
    pub takes_writes: bool,
    /// As `/readyz` reports them.
    pub mail: &'static str,
    pub limits: &'static str,
    pub now: Timestamp,
}

/// Checks settings and files, with the findings that a start would report too.
pub type LookAtSettings = Box<dyn Fn() -> Vec<Finding> + Send + Sync>;

#[derive(Clone)]
pub struct FoundProblems {
    pub at: Timestamp,
    /// Only problems, the worst first.
    pub findings: Arc<[Finding]>,
}

pub struct RunningFindings {
    settings: Arc<LookAtSettings>,
    mail_goes_to_a_folder: bool,
    backup_every: Duration,
    known: Mutex<Option<(Tick, FoundProblems)>>,
}

impl RunningFindings {
    pub fn new(settings: LookAtSettings, mail_goes_to_a_folder: bool, backup_every: Duration) -> Self {
        Self { settings: Arc::new(settings), mail_goes_to_a_folder, backup_every, known: Mutex::default() }
    }

    /// What is wrong. A caller that asks during a check waits for that check.
    pub async fn find(&self, operator: &Operator, state: RunningState<'_>, tick: Tick) -> FoundProblems {
        let mut known = self.known.lock().await;
        if let Some((at, found)) = &*known
            && tick.since(*at) < BELIEVED_FOR
            && state.now.since(found.at) < BELIEVED_FOR
        {
            return found.clone();
        }
        let mut findings = of_service(state);
        let records = of_records(operator, state, self.backup_every);
        findings.extend(match tokio::time::timeout(LOOK_TIMEOUT, records).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                vec![Finding::of_error("records", Grade::Fail, &error.into()).or_fix(Remedy::CheckStore)]
            }
            Err(_late) => {
                vec![Finding::warn("records", "they did not say in time how they are", Remedy::RunDoctor)]
            }
        });
        findings.extend(findings::of_address(state.union, state.is_public, self.mail_goes_to_a_folder));
        let settings = Arc::clone(&self.settings);
        findings.extend(tokio::task::spawn_blocking(move || settings()).await.unwrap_or_default());
        findings.retain(|finding| !finding.is_ok());
        // Failures first; otherwise in the order of the checks.
        findings.sort_by_key(|finding| finding.grade != Grade::Fail);
        let found = FoundProblems { at: state.now, findings: findings.into() };
        *known = Some((tick, found.clone()));
        found
    }

    /// Call this after a change: the next call checks again.
    pub async fn forget(&self) {
        *self.known.lock().await = None;
    }
}

/// What the service knows without reading the records.
fn of_service(state: RunningState<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    if !state.takes_writes {
        found.push(Finding::fail(
            "records",
            "the store takes no writes, or its disk is full: sign-ups fail",
            Remedy::RunDoctor,
        ));
    }
    match state.mail {
        "failing" => {
            found.push(Finding::fail(MAIL, "it cannot be sent: nobody who signs up can confirm", Remedy::ListMail));
        }
        "off" => found.push(Finding::fail(
            MAIL,
            "none is sent: nobody can sign up",
            "set UNIONHALL_MAIL to an smtp:// address",
        )),
        "held" => found.push(Finding::warn(
            MAIL,
            "it waits in the outbox and is not sent, as UNIONHALL_MAIL says",
            "set UNIONHALL_MAIL to an smtp:// address",
        )),
        _ => {}
    }
    if state.limits == "local" {
        found.push(Finding::warn("limits", "Redis is away: each node counts its requests alone", Remedy::StartRedis));
    }
    found
}

/// What the records show, one query after the other, so that the page takes one database connection and not all.
async fn of_records(
    operator: &Operator,
    state: RunningState<'_>,
    backup_every: Duration,
) -> Result<Vec<Finding>, StoreError> {
    let mut found = Vec::new();
    if operator.ask(AreSignUpsPaused).await? {
        let message = "they are paused: agents cannot sign anybody up";
        found.push(Finding::warn("sign-ups", message, Remedy::ResumeSignUps));
    }
    let mail = operator.store.run(FindMailFigures).await?;
    if mail.held > 0 {
        let message = match mail.held {
            1 => "1 mail is held until you decide".to_owned(),
            held => format!("{} mails are held until you decide", capped(held, MOST_COUNTED)),
        };
        found.push(Finding::warn(MAIL, message, Remedy::DecideOnHeldMail));
    }
    if let Some(oldest) = mail.oldest.filter(|oldest| state.mail != "held" && state.now.since(*oldest) > MAIL_IS_OLD) {
        let message = format!("the oldest that waits was asked for at {oldest}");
        found.push(Finding::warn(MAIL, message, Remedy::ListMail));
    }
    if state.is_public {
        found.push(match operator.ask(FindLastBackup).await {
            Ok(at) => findings::judge_backup(at, state.now, backup_every),
            Err(error) => Finding::of_error(BACKUP, Grade::Fail, &error.into()).or_fix(Remedy::CheckStore),
        });
    }
    found.extend(findings::of_payouts(operator, state.now).await);
    found.extend(findings::of_drafts(operator).await);
    Ok(found)
}
