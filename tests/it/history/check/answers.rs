//! Sign-ups and their answers: what a partner sends replaces, what it leaves out stays, until the person decides; a post of the
//! form is a sign-up of its own.
//!
//! Requests overlap and some got no answer, so a sign-up has a set of values that each field may have; a value is out of it
//! once a later request is known to have replaced it.

use super::{Case, Findings, Rule, Window};
use crate::history::events::{Event, SignUp, Time};
use crate::history::snapshot::SignUpRow;
use unionhall::domain::sign_up::POSTS_PENDING;

pub(super) fn check(case: &Case<'_>, found: &mut Findings) {
    for ((email, partner), sent) in &case.sent {
        let Some(person) = case.people.get(email.as_str()) else { continue };
        if partner.is_empty() {
            posts(case, person.id, sent, found);
            continue;
        }
        let places = places(case, person.id, partner);
        for (event, _) in sent.iter().filter(|(event, _)| event.acknowledged().is_some()) {
            let kept = places.iter().any(|place| place.may_hold(event));
            found.unless(kept, Rule::SignUpLost, || format!("{event}"));
        }
        for place in &places {
            fields(case, place, sent, found);
        }
    }
    for row in &case.records.sign_ups {
        let person = case.by_id.get(&row.person);
        if row.partner.is_empty() {
            let asked = person.is_some_and(|person| case.sent.contains_key(&(person.email_normalized.clone(), "")));
            found.unless(asked, Rule::SignUpFromNowhere, || format!("{row:?}"));
            continue;
        }
        let sent = person.and_then(|person| case.sent.get(&(person.email_normalized.clone(), row.partner.as_str())));
        let places = places(case, row.person, &row.partner);
        let place = places.iter().find(|place| place.row.id == row.id);
        let from = |event: &Event| place.is_some_and(|place| place.may_hold(event));
        let explained = sent.is_some_and(|sent| sent.iter().any(|(event, _)| from(event)));
        found.unless(explained, Rule::SignUpFromNowhere, || format!("{row:?}"));
        let last = places.last().is_some_and(|last| last.row.id == row.id);
        found.unless(last || row.state != "pending", Rule::TwoPending, || format!("{row:?}"));
    }
    attributions(case, found);
}

/// Every post of the form that was acknowledged is a row of its own, every row is a post's, and few of them wait. No mail leaves while
/// this is written, so a post that makes way for later ones leaves nothing behind.
fn posts(case: &Case<'_>, person: i64, sent: &[(&Event, &SignUp)], found: &mut Findings) {
    let rows: Vec<_> = case.rows_of.get(&(person, "")).into_iter().flatten().collect();
    let wrote = |(event, sent): (&Event, &SignUp), row: &SignUpRow| {
        FIELDS.iter().all(|(_, sets, kept)| {
            let is = kept(case, row);
            match sets(event, sent) {
                Sets::Not => is.is_none(),
                Sets::Maybe(value) => is.is_none() || is == value,
                Sets::Surely(value) => is == value,
            }
        })
    };
    // Those that are known to have been kept choose first.
    let mut waiting: Vec<_> = sent.iter().copied().filter(|(event, _)| event.may_have_happened()).collect();
    waiting.sort_by_key(|(event, _)| event.acknowledged().is_none());
    let mut unexplained = Vec::new();
    for row in rows.iter().copied() {
        match waiting.iter().position(|post| wrote(*post, row)) {
            Some(post) => drop(waiting.remove(post)),
            None => unexplained.push(row),
        }
    }
    waiting.retain(|(event, _)| event.acknowledged().is_some());
    for row in unexplained {
        let rule = if waiting.pop().is_some() { Rule::AnswersWrong } else { Rule::SignUpFromNowhere };
        found.unless(false, rule, || format!("{row:?}"));
    }
    let gives_way = |event: &Event| {
        let later = sent.iter().filter(|(other, _)| other.may_have_happened() && other.completed > event.invoked);
        // One of them is itself.
        later.count() > POSTS_PENDING
    };
    // Which of them has a row that several may have written cannot be told, so they are counted.
    let gave_way = sent.iter().filter(|(event, _)| event.acknowledged().is_some() && gives_way(event)).count();
    for (event, _) in waiting.into_iter().skip(gave_way) {
        found.unless(false, Rule::SignUpLost, || format!("{event}"));
    }
    let pending = rows.iter().filter(|row| row.state == "pending").count();
    found.unless(pending <= POSTS_PENDING, Rule::TwoPending, || format!("{pending} posts of person {person}"));
}

/// A sign-up of a person by a partner, between the decision on the one before it and the decision on itself.
struct Place<'a> {
    row: &'a SignUpRow,
    before: Window,
    own: Window,
}

impl Place<'_> {
    fn may_hold(&self, event: &Event) -> bool {
        event.effective_by() > self.before.begins && event.invoked < self.own.ends
    }

    /// Whether it was written here and nowhere else.
    fn surely_holds(&self, event: &Event) -> bool {
        event.acknowledged().is_some() && event.invoked > self.before.ends && event.completed < self.own.begins
    }
}

/// The sign-ups of a person by a partner, in the order in which they were made.
fn places<'a>(case: &Case<'a>, person: i64, partner: &str) -> Vec<Place<'a>> {
    let mut before = Window { begins: 0, ends: 0 };
    let rows = case.rows_of.get(&(person, partner));
    rows.into_iter()
        .flatten()
        .map(|row| {
            let own = case.window(row.id);
            Place { row, before: std::mem::replace(&mut before, own), own }
        })
        .collect()
}

/// What a request does to a field.
enum Sets {
    Not,
    /// Perhaps: it rests on what was there at that moment, which was not told.
    Maybe(Option<String>),
    Surely(Option<String>),
}

type Field = (&'static str, fn(&Event, &SignUp) -> Sets, fn(&Case<'_>, &SignUpRow) -> Option<String>);

const FIELDS: [Field; 4] = [
    ("us_state", us_state, |_, row| row.us_state.clone()),
    ("categories", categories, |_, row| row.categories.clone()),
    ("comments", comments, |_, row| row.comments.clone()),
    ("referrer", referrer, |case, row| {
        // One that is nobody's is no code that anybody sent.
        let code = |id| case.by_id.get(&id).map_or_else(|| format!("nobody, {id}"), |person| person.code.clone());
        row.referrer.map(code)
    }),
];

/// Our form has a field for everything, so it leaves nothing out.
fn us_state(_: &Event, sent: &SignUp) -> Sets {
    if sent.partner.is_empty() || sent.us_state.is_some() { Sets::Surely(sent.us_state.clone()) } else { Sets::Not }
}

fn categories(_: &Event, sent: &SignUp) -> Sets {
    or_left_out(sent, sent.categories.as_ref())
}

fn comments(_: &Event, sent: &SignUp) -> Sets {
    or_left_out(sent, sent.comments.as_ref())
}

fn or_left_out(sent: &SignUp, value: Option<&String>) -> Sets {
    match value {
        Some(value) => Sets::Surely(Some(value.clone())),
        None if sent.partner.is_empty() => Sets::Surely(Some(String::new())),
        None => Sets::Not,
    }
}

/// An attribution gives way only to another, and a code that is nobody's is none.
fn referrer(event: &Event, sent: &SignUp) -> Sets {
    let Some(code) = &sent.ref_code else { return Sets::Not };
    match event.acknowledged().and_then(|answer| answer.attributed) {
        Some(true) => Sets::Surely(Some(code.clone())),
        Some(false) => Sets::Not,
        None => Sets::Maybe(Some(code.clone())),
    }
}

fn fields(case: &Case<'_>, place: &Place<'_>, sent: &[(&Event, &SignUp)], found: &mut Findings) {
    for (name, sets, kept) in FIELDS {
        let is = kept(case, place.row);
        // When requests that are sure to have written here, and to have written this field, began.
        let surely = sent
            .iter()
            .filter(|(event, sent)| place.surely_holds(event) && matches!(sets(event, sent), Sets::Surely(_)));
        let last: Option<Time> = surely.map(|(event, _)| event.invoked).max();
        let possible = (is.is_none() && last.is_none())
            || sent.iter().any(|(event, sent)| {
                let same = match sets(event, sent) {
                    Sets::Not => false,
                    Sets::Maybe(value) | Sets::Surely(value) => value == is,
                };
                same && place.may_hold(event) && last.is_none_or(|last| event.effective_by() >= last)
            });
        found.unless(possible, Rule::AnswersWrong, || {
            let sent: Vec<_> = sent.iter().map(|(event, _)| format!("\n  {event}")).collect();
            format!("{name} of {:?} after {}", place.row, sent.concat())
        });
    }
}

/// A code counts once its owner is there, and never for the owner's own mailbox.
fn attributions(case: &Case<'_>, found: &mut Findings) {
    let mut made: std::collections::HashMap<&str, (Time, Time)> = std::collections::HashMap::new();
    for event in case.history.iter().filter(|event| event.may_have_happened()) {
        let Some(person) = super::named(event).and_then(|email| case.person(email)) else { continue };
        let (begun, done) = made.entry(person.code.as_str()).or_insert((Time::MAX, Time::MAX));
        *begun = event.invoked.min(*begun);
        *done = event.effective_by().min(*done);
    }
    for ((email, _), sent) in &case.sent {
        for (event, sign_up) in sent {
            let Some(attributed) = event.acknowledged().and_then(|answer| answer.attributed) else { continue };
            let code = sign_up.ref_code.as_deref();
            let owner = code.and_then(|code| case.by_code.get(code)).filter(|owner| {
                // Only whose mailbox it is counts.
                case.people.get(email.as_str()).is_none_or(|person| person.mailbox != owner.mailbox)
            });
            let (begun, done) = owner.and_then(|owner| made.get(owner.code.as_str())).copied().unwrap_or_default();
            let may = owner.is_some() && begun < event.completed;
            let must = owner.is_some() && done < event.invoked;
            let right = if attributed { may } else { !must };
            found.unless(right, Rule::AttributionWrong, || format!("{event}"));
        }
    }
}
