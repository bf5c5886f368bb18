//! Confirming and declining: a sign-up is decided once, for good, and only by its person.

use super::{Case, Findings, Rule};
use crate::history::events::{Decision, Deed, Event};
use crate::prelude::*;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    for event in case.history {
        told(case, event, found);
    }
    let deciding = case.history.iter().filter(|event| event.may_have_happened()).filter_map(Event::decides);
    let deciding: HashSet<_> = deciding.map(|(id, decision)| (id, decision.name())).collect();
    for row in case.records.sign_ups.iter().filter(|row| row.state != "pending") {
        // A post of the form makes way for later ones.
        let later = case.rows_of.get(&(row.person, "")).into_iter().flatten().filter(|other| other.id > row.id).count();
        let deferred = row.partner.is_empty() && row.state == "expired" && later > 0;
        let explained = deferred || deciding.contains(&(row.id, row.state.as_str()));
        found.unless(explained, Rule::DecisionFromNowhere, || format!("{row:?}"));
    }
    members(case, found);
}

fn told(case: &Case<'_>, event: &Event, found: &mut Findings) {
    let (Some((id, decision)), Deed::Confirm { email, .. } | Deed::Decline { email, .. }) = (event.told(), &event.deed)
    else {
        return;
    };
    let person = case.person(email);
    let kept = case.rows.get(&id).filter(|row| person.is_some_and(|person| person.id == row.person));
    found.unless(kept.is_some(), Rule::SignUpLost, || format!("{event}"));
    let same = kept.is_none_or(|row| row.state == decision.name());
    found.unless(same, Rule::DecisionChanged, || format!("{kept:?}, {event}"));
    if decision == Decision::Confirmed {
        let member = person.is_some_and(|person| person.is_member);
        found.unless(member, Rule::MemberLost, || format!("{email}, {event}"));
    }
    if matches!(event.deed, Deed::Decline { .. }) {
        let peace = person.is_none_or(|person| case.records.suppressed.contains(&person.mailbox));
        found.unless(peace, Rule::PeaceBroken, || format!("{email}, {event}"));
    }
    let shown = event.acknowledged().and_then(|answer| answer.code.as_ref());
    let own = shown.is_none_or(|code| person.is_none_or(|person| person.code == *code));
    found.unless(own, Rule::CodeChanged, || format!("{event}"));
}

fn members(case: &Case<'_>, found: &mut Findings) {
    let mut credits: HashMap<i64, Vec<Option<i64>>> = HashMap::new();
    for row in case.records.sign_ups.iter().filter(|row| row.state == "confirmed") {
        credits.entry(row.person).or_default().push(row.referrer);
    }
    for person in case.records.people.iter().filter(|person| person.is_member) {
        let explained = case.confirming.contains(&person.email_normalized);
        found.unless(explained, Rule::MemberFromNowhere, || format!("{person:?}"));
        let right = credits.get(&person.id).is_some_and(|referrers| referrers.contains(&person.referrer));
        found.unless(right, Rule::CreditWrong, || format!("{person:?}"));
    }
}
