//! Which mail goes next, as functions of plain values: `mail/outbox/` fetches the values, asks here and writes the outcome.

use std::cmp::Reverse;

use super::budget::{MailBudget, Reputation};
use super::choices::MailChoices;
use super::{MAX_WAITING_PER_MAILBOX, MIN_MAIL_GAP, MailId, MailKind, MailboxRecord};
use crate::domain::person::PersonState;
use crate::domain::sign_up::SignUpState;
use crate::domain::time::Timestamp;

/// What a mail bypasses, as the column `priority` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Asked for on the way to one's own page: the budget of its source counts it, and does not hold it.
    Reminder = -1,
    Normal = 0,
    /// Released by the operator, or paid for with a proof of work: it bypasses the budget, and that its key was revoked or its
    /// partner suspended.
    Released = 1,
    /// Retried by the operator: it bypasses the caps of its mailbox too.
    Forced = 2,
}

impl Priority {
    pub const fn number(self) -> i64 {
        self as i64
    }

    pub fn from_number(number: i64) -> Self {
        match number {
            ..=-1 => Self::Reminder,
            0 => Self::Normal,
            1 => Self::Released,
            2.. => Self::Forced,
        }
    }
}

/// What decides whether a mail that is due may go.
#[derive(Clone, PartialEq, Eq)]
pub struct MailFacts {
    pub kind: MailKind,
    pub priority: Priority,
    /// Before this one.
    pub attempts: u32,
    pub key_revoked: bool,
    pub partner_suspended: bool,
    /// The partner's own mail budget, where it has one.
    pub fixed_quota: Option<u64>,
    /// Of the sign-up that it is about, if it is about one.
    pub sign_up: Option<SignUpState>,
    pub person: PersonState,
    /// Of the request to sign in that it is about, if it is about one.
    pub sign_in_expires_at: Option<Timestamp>,
    pub sign_in_used: bool,
    pub choices: MailChoices,
    /// Somebody there asked for no more mail of this source.
    pub source_stopped: bool,
    pub undeliverable_until: Option<Timestamp>,
    pub suppressed_until: Option<Timestamp>,
    pub complained: bool,
}

/// Why a mail waits for the operator's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldReason {
    OverBudget,
    KeyRevoked,
    /// It is decided about anew when the suspension is lifted.
    PartnerSuspended,
}

impl MailFacts {
    /// Whether the person or the mailbox has no use for it, or no longer.
    pub fn is_pointless(&self, now: Timestamp) -> bool {
        let is_over = |until: Option<Timestamp>| until.is_none_or(|until| until <= now);
        let of_its_kind = match self.kind {
            MailKind::Confirm => self.person == PersonState::Member,
            MailKind::AlreadyMember => !self.choices.wants(self.kind),
            MailKind::SignIn => {
                self.person == PersonState::Invited || self.sign_in_used || is_over(self.sign_in_expires_at)
            }
            // `CampaignMail::is_for` decides about these.
            MailKind::CampaignOpened | MailKind::CampaignOffer | MailKind::CampaignResult | MailKind::Receipt => false,
        };
        of_its_kind
            || self.sign_up.is_some_and(|state| state != SignUpState::Pending)
            || self.source_stopped
            || self.complained
            || !is_over(self.undeliverable_until)
            || !is_over(self.suppressed_until)
    }

    /// Whatever kept mail from its mailbox counts no more, nor that its person is a member by now: the simulator's addresses confirm
    /// each time.
    pub fn make_free(&mut self) {
        self.person = PersonState::Invited;
        (self.source_stopped, self.complained) = (false, false);
        (self.undeliverable_until, self.suppressed_until) = (None, None);
    }

    /// Whether it has to wait for the operator. A mail that was tried before was counted then; without a budget nothing is held.
    pub fn hold(&self, source: &str, budget: Option<MailBudget>, reputation: &Reputation) -> Option<HoldReason> {
        let budget = budget?;
        let nobody_decided = self.priority <= Priority::Normal;
        // First: the other two are judged when the suspension is lifted.
        if self.partner_suspended && nobody_decided {
            return Some(HoldReason::PartnerSuspended);
        }
        let is_new = self.priority == Priority::Normal && self.attempts == 0;
        if is_new && budget.holds(source, self.fixed_quota, reputation) {
            return Some(HoldReason::OverBudget);
        }
        (self.key_revoked && nobody_decided).then_some(HoldReason::KeyRevoked)
    }
}

/// A mail that waits for a mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxCandidate {
    pub mail: MailId,
    pub source: String,
    /// It goes to the mailbox's plain name and not to a tagged one (`ana+x@`).
    pub to_plain_name: bool,
    pub created_at: Timestamp,
    pub is_due: bool,
}

/// The mails that wait for a mailbox, in the order in which it should get them: for the source that it has heard least of,
/// to its plain name before its tagged ones, the newest. And those that are too many: what a stranger asks for in thirty
/// spellings does not delay the owner's own.
pub fn mailbox_queue(
    record: &MailboxRecord,
    mut waiting: Vec<MailboxCandidate>,
) -> (Vec<MailboxCandidate>, Vec<MailboxCandidate>) {
    waiting.sort_by_cached_key(|one| {
        (record.sent_for(&one.source), !one.to_plain_name, Reverse(one.created_at), Reverse(one.mail))
    });
    let too_many = waiting.split_off(MAX_WAITING_PER_MAILBOX.min(waiting.len()));
    (waiting, too_many)
}

/// What becomes of a mail at its mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailboxDecision {
    /// It goes; `is_another` if it counts as another mail of the mailbox.
    Send { is_another: bool },
    /// It waits until then, and others of its source with it.
    Defer { until: Timestamp, others: Vec<MailId> },
}

/// Whether a mail of a source is next at its mailbox. `queue` is what waits for the mailbox, in order; with `bypasses_caps` it
/// does not count.
pub fn at_mailbox(
    (mail, source): (MailId, &str),
    record: &MailboxRecord,
    queue: &[MailboxCandidate],
    bypasses_caps: bool,
    now: Timestamp,
) -> MailboxDecision {
    let is_holder = |one: &&MailboxCandidate| record.holder == Some(one.mail);
    // Nothing goes before what may be on its way.
    let first = queue.iter().find(is_holder).or_else(|| queue.iter().find(|one| one.is_due));
    if !bypasses_caps && first.is_some_and(|first| first.mail != mail) {
        return MailboxDecision::Defer { until: now.plus(MIN_MAIL_GAP), others: Vec::new() };
    }
    // Trying the last one again is no other mail.
    let is_another = record.holder != Some(mail);
    let until = record.next_allowed(source, now);
    if !is_another || bypasses_caps || until <= now {
        return MailboxDecision::Send { is_another };
    }
    let others = queue.iter().filter(|one| one.source == source && one.mail != mail && !is_holder(one));
    MailboxDecision::Defer { until, others: others.map(|one| one.mail).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::budget::FORM;
    use super::super::choices::KeptChoices;
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    const NOW: i64 = 100_000;

    fn confirm() -> MailFacts {
        MailFacts {
            kind: MailKind::Confirm,
            priority: Priority::Normal,
            attempts: 0,
            key_revoked: false,
            partner_suspended: false,
            fixed_quota: None,
            sign_up: Some(SignUpState::Pending),
            person: PersonState::Invited,
            sign_in_expires_at: None,
            sign_in_used: false,
            choices: KeptChoices::default().read(true),
            source_stopped: false,
            undeliverable_until: None,
            suppressed_until: None,
            complained: false,
        }
    }

    #[test]
    fn mail_that_nobody_can_use_is_pointless() {
        let again = MailFacts { kind: MailKind::AlreadyMember, person: PersonState::Member, ..confirm() };
        let sign_in = MailFacts {
            kind: MailKind::SignIn,
            person: PersonState::Member,
            sign_up: None,
            sign_in_expires_at: Some(at(NOW + 1)),
            ..confirm()
        };
        let mut kept = KeptChoices::default();
        kept.choose(MailKind::AlreadyMember, false);
        let choices = kept.read(true);
        let (past, future) = (Some(at(NOW)), Some(at(NOW + 1)));
        for (name, facts, is_pointless) in [
            ("a sign-up that waits", confirm(), false),
            ("one that was declined", MailFacts { sign_up: Some(SignUpState::Declined), ..confirm() }, true),
            ("one that was confirmed", MailFacts { sign_up: Some(SignUpState::Confirmed), ..confirm() }, true),
            ("one of somebody who left", MailFacts { person: PersonState::Left, ..confirm() }, false),
            ("one of a member by now", MailFacts { person: PersonState::Member, ..confirm() }, true),
            ("a member signed up again", again.clone(), false),
            ("who wants none of it", MailFacts { choices, ..again }, true),
            ("which is nothing to others", MailFacts { choices, ..confirm() }, false),
            ("a stopped source", MailFacts { source_stopped: true, ..confirm() }, true),
            ("a complaint", MailFacts { complained: true, ..confirm() }, true),
            ("a silence", MailFacts { suppressed_until: future, ..confirm() }, true),
            ("a silence that is over", MailFacts { suppressed_until: past, ..confirm() }, false),
            ("an address that bounced", MailFacts { undeliverable_until: future, ..confirm() }, true),
            ("and may be tried again", MailFacts { undeliverable_until: past, ..confirm() }, false),
            ("a way to sign in", sign_in.clone(), false),
            ("that was used", MailFacts { sign_in_used: true, ..sign_in.clone() }, true),
            ("that expired", MailFacts { sign_in_expires_at: past, ..sign_in.clone() }, true),
            ("of somebody who left since", MailFacts { person: PersonState::Left, ..sign_in.clone() }, false),
            ("of somebody who never joined", MailFacts { person: PersonState::Invited, ..sign_in }, true),
        ] {
            assert_eq!(facts.is_pointless(at(NOW)), is_pointless, "{name}");
        }
    }

    #[test]
    fn a_spent_budget_and_a_revoked_key_hold_mail_unless_somebody_decided() {
        use HoldReason::{KeyRevoked, OverBudget};
        use Priority::{Forced, Normal, Released, Reminder};
        let budget = MailBudget { form_a_day: 10, key_a_day: 10 };
        for (priority, attempts, key_revoked, mailed_today, expected) in [
            (Normal, 0, false, 9, None),
            (Normal, 0, false, 10, Some(OverBudget)),
            (Normal, 1, false, 10, None),
            (Normal, 0, true, 0, Some(KeyRevoked)),
            (Normal, 3, true, 10, Some(KeyRevoked)),
            (Normal, 0, true, 10, Some(OverBudget)),
            (Reminder, 0, false, 10, None),
            (Reminder, 0, true, 0, Some(KeyRevoked)),
            (Released, 0, true, 10, None),
            (Forced, 0, true, 10, None),
        ] {
            let facts = MailFacts { priority, attempts, key_revoked, ..confirm() };
            let reputation = Reputation { mailed_today, ..Reputation::default() };
            let held = facts.hold(FORM, Some(budget), &reputation);
            assert_eq!(held, expected, "{priority:?} {attempts} {key_revoked} {mailed_today}");
            assert_eq!(facts.hold(FORM, None, &reputation), None, "nothing is held where mail goes nowhere");
            let suspended = MailFacts { partner_suspended: true, ..facts };
            let held = (priority <= Normal).then_some(HoldReason::PartnerSuspended);
            assert_eq!(
                suspended.hold("Acme", Some(budget), &reputation),
                held,
                "{priority:?}, before all other reasons"
            );
            assert_eq!(suspended.hold("Acme", None, &reputation), None);
        }
        let own = MailFacts { fixed_quota: Some(1), ..confirm() };
        let one = Reputation { mailed_today: 1, ..Reputation::default() };
        assert_eq!(own.hold("Acme", Some(budget), &one), Some(OverBudget));
        for priority in [Reminder, Normal, Released, Forced] {
            assert_eq!(Priority::from_number(priority.number()), priority);
        }
    }

    fn waiting(mail: i64, source: &str, to_plain_name: bool, created_at: i64) -> MailboxCandidate {
        MailboxCandidate {
            mail: MailId(mail),
            source: source.to_owned(),
            to_plain_name,
            created_at: at(created_at),
            is_due: true,
        }
    }

    fn ids(queue: &[MailboxCandidate]) -> Vec<i64> {
        queue.iter().map(|one| one.mail.0).collect()
    }

    #[test]
    fn a_mailbox_hears_the_rarest_source_first_then_its_plain_name_then_the_newest() {
        let record = MailboxRecord { sent: vec![(at(10), "Acme".to_owned())], holder: None };
        let all = vec![
            waiting(1, "Acme", true, 90),
            waiting(2, "Zoe", false, 80),
            waiting(3, "Zoe", true, 50),
            waiting(4, "Zoe", true, 60),
            waiting(5, "", false, 99),
            waiting(6, "Acme", true, 95),
        ];
        let (queue, too_many) = mailbox_queue(&record, all);
        assert_eq!((ids(&queue), ids(&too_many)), (vec![4, 3, 5, 2], vec![6, 1]));
        assert_eq!(mailbox_queue(&record, Vec::new()), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_mail_goes_when_it_is_first_and_its_mailbox_had_a_rest() {
        use MailboxDecision::{Defer, Send};
        let sent = |seconds, holder: Option<i64>| MailboxRecord {
            sent: vec![(at(seconds), "Acme".to_owned())],
            holder: holder.map(MailId),
        };
        let (one, two) = (waiting(1, "Acme", true, 90), waiting(2, "Acme", true, 80));
        let later = MailboxCandidate { is_due: false, ..one.clone() };
        let rest = |mail: &[i64]| Defer { until: at(NOW + 590), others: mail.iter().copied().map(MailId).collect() };
        let behind = Defer { until: at(NOW + 600), others: Vec::new() };
        let gap = MIN_MAIL_GAP.as_secs() as i64;
        let (none, first, both) = (MailboxRecord::default(), vec![one.clone()], vec![one, two.clone()]);
        let cases = [
            ("nothing went yet", none.clone(), first, 1, false, Send { is_another: true }),
            ("another is first", none.clone(), both.clone(), 2, false, behind.clone()),
            ("the first is not due", none, vec![later, two], 2, false, Send { is_another: true }),
            ("too soon", sent(NOW - 10, None), both.clone(), 1, false, rest(&[2])),
            ("after the gap", sent(NOW - gap, None), both.clone(), 1, false, Send { is_another: true }),
            ("once more", sent(NOW - 10, Some(1)), both.clone(), 1, false, Send { is_another: false }),
            ("behind one on its way", sent(NOW - gap, Some(2)), both, 1, false, behind),
            ("forced", sent(NOW - 10, None), Vec::new(), 1, true, Send { is_another: true }),
        ];
        for (name, record, queue, mail, bypasses, expected) in cases {
            assert_eq!(at_mailbox((MailId(mail), "Acme"), &record, &queue, bypasses, at(NOW)), expected, "{name}");
        }
    }
}
