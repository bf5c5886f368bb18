//! What the operator switches: revoked keys and pauses, each seen within two seconds of real time.

use super::{Case, Findings, Rule};
use crate::history::events::{Deed, Event, Outcome, Time, Why};
use crate::prelude::*;

/// How long what the operator changed may go unseen.
const SEEN_WITHIN: Time = 2_000_000;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    keys(case, found);
    pauses(case, found);
}

fn keys(case: &Case<'_>, found: &mut Findings) {
    // When each was perhaps revoked first, and when surely.
    let mut revoked: HashMap<&str, (Time, Time)> = HashMap::new();
    for event in case.history.iter().filter(|event| event.may_have_happened()) {
        let Deed::Revoke { key } = &event.deed else { continue };
        let (perhaps, surely) = revoked.entry(key).or_insert((Time::MAX, Time::MAX));
        *perhaps = event.invoked.min(*perhaps);
        *surely = event.effective_by().min(*surely);
    }
    for event in case.history {
        let Some(key) = event.key() else { continue };
        let (perhaps, surely) = revoked.get(key).copied().unwrap_or((Time::MAX, Time::MAX));
        let worked = event.acknowledged().is_some();
        let over = event.invoked > surely.saturating_add(SEEN_WITHIN);
        found.unless(!(worked && over), Rule::RevokedKeyWorked, || format!("{event}"));
        let refused = matches!(event.outcome, Outcome::Refused(Why::Key));
        found.unless(!refused || perhaps < event.completed, Rule::GoodKeyRefused, || format!("{event}"));
    }
}

fn pauses(case: &Case<'_>, found: &mut Findings) {
    let all = |wanted: fn(&Deed) -> bool| -> Vec<&Event> {
        case.history.iter().filter(|event| event.may_have_happened() && wanted(&event.deed)).collect()
    };
    let (pauses, resumes) = (all(|deed| matches!(deed, Deed::Pause)), all(|deed| matches!(deed, Deed::Resume)));
    for event in case.history.iter().filter(|event| event.is_an_agent_action()) {
        // A pause that was surely on from before this began until after it ended.
        let on = |pause: &&&Event| {
            let from = pause.effective_by().saturating_add(SEEN_WITHIN);
            event.invoked > from
                && !resumes
                    .iter()
                    .any(|resume| resume.effective_by() > pause.invoked && resume.invoked < event.completed)
        };
        let ignored = event.acknowledged().and_then(|_| pauses.iter().find(on));
        found.unless(ignored.is_none(), Rule::PauseIgnored, || format!("{event} during {ignored:?}"));
        if matches!(event.outcome, Outcome::Refused(Why::Paused)) {
            // A pause that nothing is known to have ended before.
            let perhaps = |pause: &&Event| {
                let ended =
                    |resume: &&Event| resume.invoked > pause.effective_by() && resume.effective_by() < event.invoked;
                pause.invoked < event.completed && !resumes.iter().any(ended)
            };
            let explained = pauses.iter().any(perhaps);
            found.unless(explained, Rule::PauseMadeUp, || format!("{event}"));
        }
    }
}
