//! What is wrong with the running service, where it can tell cheaply: what `unionhall doctor` and the alerts of `deploy/` would say, each
//! with the command that helps. Results are kept for a while, no matter how many look.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::Operator;
use super::findings::{self, Finding, Grade, TrialSettings};
use crate::clock::Moment;
use crate::domain::health::{Health, MailState};
use crate::domain::remedy::Remedy;
use crate::domain::time::{Tick, Timestamp};
use crate::domain::union::Union;

const BELIEVED_FOR: Duration = Duration::from_secs(15);

/// How long the records may take; a page does not wait longer for them, and less where the store is known to fail.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);
const FAILING_LOOK_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
pub struct RunningState<'a> {
    pub union: &'a Union,
    pub is_public: bool,
    pub health: Health,
    pub now: Moment,
}

/// Checks settings and files, with the findings that a start would report too.
pub type LookAtSettings = Box<dyn Fn() -> Vec<Finding> + Send + Sync>;

#[derive(Clone)]
pub struct FoundProblems {
    pub at: Timestamp,
    /// Only problems, the worst first.
    pub findings: Arc<[Finding]>,
    /// Whether the records could tell: what is missing here may still be wrong otherwise.
    pub is_whole: bool,
}

pub struct RunningFindings {
    settings: Arc<LookAtSettings>,
    trial: TrialSettings,
    backup_every: Duration,
    known: Mutex<Option<(Tick, FoundProblems)>>,
}

impl RunningFindings {
    pub fn new(settings: LookAtSettings, trial: TrialSettings, backup_every: Duration) -> Self {
        Self { settings: Arc::new(settings), trial, backup_every, known: Mutex::default() }
    }

    /// What is wrong. A caller that asks during a check waits for that check.
    pub async fn find(&self, operator: &Operator, state: RunningState<'_>) -> FoundProblems {
        let Moment { time, tick } = state.now;
        let mut known = self.known.lock().await;
        if let Some((at, found)) = &*known
            && tick.since(*at) < BELIEVED_FOR
            && time.since(found.at) < BELIEVED_FOR
        {
            return found.clone();
        }
        let mut findings = findings::of_health(&state.health, state.is_public);
        let is_held = state.health.mail == MailState::Held;
        let records = findings::of_records(operator, is_held, state.is_public.then_some(self.backup_every), time);
        let mut is_whole = false;
        let timeout = if state.health.not_ready.is_some() { FAILING_LOOK_TIMEOUT } else { LOOK_TIMEOUT };
        findings.extend(match tokio::time::timeout(timeout, records).await {
            Ok(Ok(found)) => {
                is_whole = true;
                found
            }
            Ok(Err(error)) => {
                vec![Finding::of_error("records", Grade::Fail, &error.into()).or_fix(Remedy::CheckStore)]
            }
            Err(_late) => {
                vec![Finding::warn("records", "they did not say in time how they are", Remedy::RunDoctor)]
            }
        });
        findings.extend(findings::of_address(state.union, state.is_public, &self.trial));
        let settings = Arc::clone(&self.settings);
        findings.extend(tokio::task::spawn_blocking(move || settings()).await.unwrap_or_default());
        findings.retain(|finding| !finding.is_ok());
        // Failures first; otherwise in the order of the checks.
        findings.sort_by_key(|finding| finding.grade != Grade::Fail);
        let found = FoundProblems { at: time, findings: findings.into(), is_whole };
        *known = Some((tick, found.clone()));
        found
    }

    /// Call this after a change: the next call checks again.
    pub async fn forget(&self) {
        *self.known.lock().await = None;
    }
}
