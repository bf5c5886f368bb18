//! Holds a history against the records: whatever was acknowledged must be there, and whatever is there must come from
//! somewhere. A pure function; what it cannot know (a request that got no answer) it takes both ways.

mod answers;
mod counts;
mod decisions;
mod switches;
#[cfg(test)]
mod tests;

use super::events::{Deed, Event, Outcome, SignUp, Time, Why};
use super::snapshot::{Person, SignUpRow, Snapshot};
use crate::prelude::*;

/// What must hold. Each is told by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Rule {
    PersonLost,
    PersonFromNowhere,
    CodeChanged,
    SignUpLost,
    SignUpFromNowhere,
    RefusedForNothing,
    TwoPending,
    AnswersWrong,
    /// A sign-up was said to be attributed and could not be, or the other way round.
    AttributionWrong,
    MemberLost,
    MemberFromNowhere,
    /// Somebody else is credited with a member than their sign-up names.
    CreditWrong,
    /// A sign-up is decided otherwise than was told.
    DecisionChanged,
    DecisionFromNowhere,
    /// Somebody declined and their mailbox is not left in peace.
    PeaceBroken,
    CountWrong,
    CountImpossible,
    RevokedKeyWorked,
    GoodKeyRefused,
    PauseIgnored,
    PauseMadeUp,
    MailLost,
    MailTwice,
    /// A decided sign-up has a mail waiting, or a mail is about nobody's.
    MailPointless,
}

#[derive(Debug, Clone)]
pub(super) struct Violation {
    pub rule: Rule,
    pub what: String,
}

/// Everything that does not hold.
pub(super) fn check(history: &[Event], records: &Snapshot) -> Vec<Violation> {
    let case = Case::new(history, records);
    let mut found = Findings::default();
    people(&case, &mut found);
    answers::check(&case, &mut found);
    decisions::check(&case, &mut found);
    counts::check(&case, &mut found);
    switches::check(&case, &mut found);
    mail(&case, &mut found);
    for event in history {
        let strange = matches!(event.outcome, Outcome::Refused(Why::Other(_)));
        found.unless(!strange, Rule::RefusedForNothing, || format!("{event}"));
    }
    found.0
}

#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, rule: Rule, what: impl Into<String>) {
        self.0.push(Violation { rule, what: what.into() });
    }

    fn unless(&mut self, holds: bool, rule: Rule, what: impl FnOnce() -> String) {
        if !holds {
            self.add(rule, what());
        }
    }
}

/// The history and the records, with what all rules look up in them.
struct Case<'a> {
    history: &'a [Event],
    records: &'a Snapshot,
    /// By the form in which addresses are the same or not.
    people: HashMap<&'a str, &'a Person>,
    by_id: HashMap<i64, &'a Person>,
    by_code: HashMap<&'a str, &'a Person>,
    rows: HashMap<i64, &'a SignUpRow>,
    /// A person's sign-ups by a partner, in the order in which they were made.
    rows_of: HashMap<(i64, &'a str), Vec<&'a SignUpRow>>,
    /// Who may have confirmed anything.
    confirming: HashSet<String>,
    windows: HashMap<i64, Window>,
    /// What was sent of a person by a partner, done or perhaps done.
    sent: BTreeMap<(String, &'a str), Vec<(&'a Event, &'a SignUp)>>,
}

/// When a sign-up was decided: not before the first, and by the second.
#[derive(Debug, Clone, Copy)]
struct Window {
    begins: Time,
    ends: Time,
}

impl Window {
    const NEVER: Self = Self { begins: Time::MAX, ends: Time::MAX };
}

impl<'a> Case<'a> {
    fn new(history: &'a [Event], records: &'a Snapshot) -> Self {
        let mut windows = HashMap::new();
        for event in history {
            let Some((sign_up, _)) = event.decides() else { continue };
            let window: &mut Window = windows.entry(sign_up).or_insert(Window::NEVER);
            if event.may_have_happened() {
                window.begins = window.begins.min(event.invoked);
            }
            if event.told().is_some() {
                window.ends = window.ends.min(event.completed);
            }
        }
        let mut sent: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for event in history.iter().filter(|event| event.may_have_happened()) {
            if let Deed::SignUp(sign_up) = &event.deed {
                let pair = (normalized(&sign_up.email), sign_up.partner.as_str());
                sent.entry(pair).or_default().push((event, sign_up));
            }
        }
        let mut rows_of: HashMap<_, Vec<_>> = HashMap::new();
        for row in &records.sign_ups {
            rows_of.entry((row.person, row.partner.as_str())).or_default().push(row);
        }
        let confirming = |event: &Event| match &event.deed {
            Deed::Confirm { email, .. } if event.may_have_happened() => Some(normalized(email)),
            _ => None,
        };
        let people = &records.people;
        Self {
            history,
            records,
            people: people.iter().map(|person| (person.email_normalized.as_str(), person)).collect(),
            by_id: people.iter().map(|person| (person.id, person)).collect(),
            by_code: people.iter().map(|person| (person.code.as_str(), person)).collect(),
            rows: records.sign_ups.iter().map(|row| (row.id, row)).collect(),
            rows_of,
            confirming: history.iter().filter_map(confirming).collect(),
            windows,
            sent,
        }
    }

    fn person(&self, email: &str) -> Option<&'a Person> {
        self.people.get(normalized(email).as_str()).copied()
    }

    fn window(&self, sign_up: i64) -> Window {
        self.windows.get(&sign_up).copied().unwrap_or(Window::NEVER)
    }
}

fn normalized(email: &str) -> String {
    EmailAddress::parse(email).unwrap().normalized()
}

/// Whom an agent action names, and what it was told of them.
fn named(event: &Event) -> Option<&str> {
    match &event.deed {
        Deed::SignUp(sign_up) => Some(&sign_up.email),
        Deed::Link { email, .. } => Some(email),
        _ => None,
    }
}

/// Whoever was acknowledged is there, under the one code that was ever told; and nobody else is.
fn people(case: &Case<'_>, found: &mut Findings) {
    let mut explained = HashSet::new();
    for event in case.history.iter().filter(|event| event.may_have_happened()) {
        let Some(email) = named(event) else { continue };
        explained.insert(normalized(email));
        let Some(answer) = event.acknowledged() else { continue };
        let Some(person) = case.person(email) else {
            found.add(Rule::PersonLost, format!("{email}, {event}"));
            continue;
        };
        let same = answer.code.as_ref().is_none_or(|code| *code == person.code);
        found.unless(same, Rule::CodeChanged, || format!("{email} has {}, {event}", person.code));
    }
    for person in &case.records.people {
        let known = explained.contains(&person.email_normalized);
        found.unless(known, Rule::PersonFromNowhere, || person.email_normalized.clone());
    }
}

/// With nobody to send mail, each undecided sign-up has one waiting and no other has any.
fn mail(case: &Case<'_>, found: &mut Findings) {
    let mut waiting: HashMap<i64, usize> = HashMap::new();
    for mail in &case.records.outbox {
        *waiting.entry(mail.sign_up).or_default() += 1;
        let row = case.rows.get(&mail.sign_up);
        let theirs = row.and_then(|row| case.by_id.get(&row.person)).is_some_and(|person| {
            EmailAddress::parse(&mail.recipient)
                .is_ok_and(|recipient| recipient.normalized() == person.email_normalized)
        });
        let useful = theirs && row.is_some_and(|row| row.state == "pending");
        found.unless(useful, Rule::MailPointless, || format!("{mail:?} of {row:?}"));
    }
    for row in &case.records.sign_ups {
        let mails = waiting.get(&row.id).copied().unwrap_or(0);
        found.unless(mails <= 1, Rule::MailTwice, || format!("{mails} for {row:?}"));
        found.unless(mails > 0 || row.state != "pending", Rule::MailLost, || format!("{row:?}"));
    }
}
