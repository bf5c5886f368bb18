//! The form's mail budget as its page sees it: whether the form is throttled, and the proof of work that gets past it.

use std::time::Duration;

use tokio::sync::Mutex;

use crate::clock::Moment;
use crate::domain::mail::budget::{FORM, MailBudget};
use crate::domain::secret::Secret;
use crate::domain::secret::proof::{ENTROPY, ProofCheck, ProofMaker};
use crate::domain::time::Tick;
use crate::mail::sources::{FindFormReputation, SpendProof, SpentProof};
use crate::random;
use crate::store::{Store, StoreError};

/// How long a reading of the form's reputation stays valid, so that not every page view queries the store. A person who sends the
/// form this soon after the budget runs out is not asked for a proof of work, and waits.
const BELIEVED_FOR: Duration = Duration::from_millis(200);

/// How long the store may take to answer; after that the page does without.
const REPUTATION_TIMEOUT: Duration = Duration::from_millis(500);

pub struct FormThrottle {
    store: Store,
    budget: MailBudget,
    proofs: ProofMaker,
    /// When the store was last asked, and its answer.
    known: Mutex<Option<(Tick, FormState)>>,
}

/// Whether the form takes sign-ups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FormState {
    Open,
    Throttled,
    /// The operator paused sign-ups.
    Paused,
}

/// What the form's page shows.
#[derive(Clone, PartialEq, Eq)]
pub enum FormGate {
    Open,
    /// A question for the browser, while the form is throttled.
    Asks(String),
    /// No form at all.
    Shut,
}

/// What happens to a form that was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// Nothing holds it.
    Free,
    /// It came with a proof of work: its mail passes the budget.
    Proven,
    /// It is accepted, and its mail may be held.
    MayWait,
    /// The person must do a proof of work first.
    Ask,
}

impl FormThrottle {
    pub fn new(store: Store, budget: MailBudget, secret: &Secret) -> Self {
        Self { store, budget, proofs: ProofMaker::new(secret), known: Mutex::default() }
    }

    pub async fn gate(&self, now: Moment) -> Result<FormGate, StoreError> {
        Ok(match self.state(now).await? {
            FormState::Open => FormGate::Open,
            FormState::Paused => FormGate::Shut,
            FormState::Throttled => FormGate::Asks(self.proofs.ask(&random::bytes::<ENTROPY>()?, now.time)),
        })
    }

    /// Whether a form may pass, given the question that came with it, its answer, and the site that sent it.
    pub async fn passage(
        &self,
        question: Option<&str>,
        answer: &str,
        site: &[u8],
        now: Moment,
    ) -> Result<Passage, StoreError> {
        if self.state(now).await? != FormState::Throttled {
            return Ok(Passage::Free);
        }
        let proof = match self.proofs.check(question.unwrap_or_default(), answer, now.time) {
            ProofCheck::Wrong => return Ok(Passage::Ask),
            ProofCheck::Not => return Ok(Passage::MayWait),
            ProofCheck::Right(proof) => proof,
        };
        let site = self.proofs.site_name(site);
        match self.store.run(SpendProof { proof, site, budget: self.budget, now: now.time }).await? {
            SpentProof::Good => Ok(Passage::Proven),
            SpentProof::Used => Ok(Passage::Ask),
            SpentProof::TooMany => Ok(Passage::MayWait),
        }
    }

    /// Concurrent callers wait briefly for one answer from the store. A missing answer is remembered too.
    async fn state(&self, now: Moment) -> Result<FormState, StoreError> {
        let mut known = self.known.lock().await;
        if let Some((at, state)) = *known
            && now.tick.since(at) < BELIEVED_FOR
        {
            return Ok(state);
        }
        let late = |_| Err(StoreError::Unavailable("the form's reputation could not be read in time".to_owned()));
        let asked = tokio::time::timeout(REPUTATION_TIMEOUT, self.store.run(FindFormReputation(now.time)))
            .await
            .unwrap_or_else(late);
        let state = match &asked {
            Ok((_, true)) => FormState::Paused,
            Ok((reputation, false)) if self.budget.holds(FORM, None, reputation) => FormState::Throttled,
            Ok(_) | Err(_) => FormState::Open,
        };
        *known = Some((now.tick, state));
        asked.map(|_| state)
    }
}
