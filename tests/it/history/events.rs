//! What was done to the service and what it said: a history, as the clients wrote it down.
//!
//! Plain data. Times are microseconds of this machine's steady clock since the run began, so that moving the calendar's
//! clock under the service changes nothing here.

use crate::prelude::*;

/// Microseconds since the run began.
pub(super) type Time = u64;

/// One request, or one command of the operator's.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub client: usize,
    /// Before anything was sent.
    pub invoked: Time,
    /// After the answer was read, or given up.
    pub completed: Time,
    pub deed: Deed,
    pub outcome: Outcome,
}

#[derive(Debug, Clone)]
pub(super) enum Deed {
    SignUp(SignUp),
    Link { email: String, key: String },
    Confirm { sign_up: i64, email: String },
    Decline { sign_up: i64, email: String },
    Stats,
    Issue,
    Revoke { key: String },
    Pause,
    Resume,
}

/// What a sign-up said. What is none was left out, except that a form leaves nothing out.
#[derive(Debug, Clone)]
pub(super) struct SignUp {
    pub email: String,
    /// Empty where the person filled in the form.
    pub partner: String,
    /// The id of the key; none for the form.
    pub key: Option<String>,
    pub us_state: Option<String>,
    /// As the records keep them.
    pub categories: Option<String>,
    pub comments: Option<String>,
    pub ref_code: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Acknowledged(Answer),
    /// It was told, or is plain, that nothing was done.
    Refused(Why),
    /// The connection broke, nothing came in time, or the service says that something failed: it may have been done, and
    /// may still be.
    Unknown(String),
}

/// What an acknowledgement said, where it says it.
#[derive(Debug, Clone, Default)]
pub(super) struct Answer {
    pub code: Option<String>,
    pub count: Option<u64>,
    pub attributed: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    Unreachable,
    Paused,
    Key,
    /// The sign-up was decided before, in this way.
    Decided(Decision),
    /// The person is shown other answers than they had seen.
    Changed,
    /// They are a member by another sign-up, and this one is decided.
    Member,
    Other(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Confirmed,
    Declined,
}

impl Decision {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Declined => "declined",
        }
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = |time: Time| Duration::from_micros(time).as_secs_f64();
        let (from, to) = (seconds(self.invoked), seconds(self.completed));
        write!(f, "client {} from {from:.3} s to {to:.3} s: {:?}: {:?}", self.client, self.deed, self.outcome)
    }
}

impl Event {
    pub(super) fn acknowledged(&self) -> Option<&Answer> {
        match &self.outcome {
            Outcome::Acknowledged(answer) => Some(answer),
            Outcome::Refused(_) | Outcome::Unknown(_) => None,
        }
    }

    /// Whether it was done for all anybody knows.
    pub(super) fn may_have_happened(&self) -> bool {
        !matches!(self.outcome, Outcome::Refused(_))
    }

    /// When its effect was there at the latest; for ever open where nobody knows.
    pub(super) fn effective_by(&self) -> Time {
        if self.acknowledged().is_some() { self.completed } else { Time::MAX }
    }

    /// The sign-up that it decides, and how.
    pub(super) fn decides(&self) -> Option<(i64, Decision)> {
        match self.deed {
            Deed::Confirm { sign_up, .. } => Some((sign_up, Decision::Confirmed)),
            Deed::Decline { sign_up, .. } => Some((sign_up, Decision::Declined)),
            _ => None,
        }
    }

    /// What its answer tells of how a sign-up was decided: by this very request, or before it.
    pub(super) fn told(&self) -> Option<(i64, Decision)> {
        let (sign_up, deciding) = self.decides()?;
        match &self.outcome {
            Outcome::Acknowledged(_) => Some((sign_up, deciding)),
            Outcome::Refused(Why::Decided(before)) => Some((sign_up, *before)),
            Outcome::Refused(_) | Outcome::Unknown(_) => None,
        }
    }

    pub(super) fn key(&self) -> Option<&str> {
        match &self.deed {
            Deed::SignUp(sign_up) => sign_up.key.as_deref(),
            Deed::Link { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Whether it is what a pause switches off.
    pub(super) fn is_an_agent_action(&self) -> bool {
        matches!(self.deed, Deed::SignUp(_) | Deed::Link { .. })
    }
}
