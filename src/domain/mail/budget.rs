//! The mail budget: a source's daily quota of mail, which grows with a good reputation.
//!
//! A source is the form, or a partner over all its keys. It begins with what the operator allows it; confirmations earn more,
//! and a source whose mail is declined, ignored or bounced is held to a tenth. The operator may fix a partner's quota instead.
//! Mail past the budget is held for the operator; a person at the form can pay for theirs with a proof of work, within bounds.

use crate::domain::figure::grouped;
use crate::domain::time::Timestamp;

/// The days that a source is judged by, today among them.
pub const DAYS: i64 = 7;

/// So many mails of the days before must there be for a source to be judged at all.
pub const ENOUGH: u64 = 50;

/// One in so many must be confirmed, and no more than one in so many unwanted; a few unwanted ones are one person's doing.
pub const ONE_IN: u64 = 20;
pub const FEW_UNWANTED: u64 = 5;

/// Each confirmation on the days before adds so many, up to so many times what a source begins with: anyone can confirm addresses
/// of their own.
pub const EARNED: u64 = 2;
pub const MOST_TIMES: u64 = 10;

/// What is left to a source of bad reputation: one in so many of what it begins with.
pub const LEFT_ONE_IN: u64 = 10;

/// So many times the form's budget may be passed with proofs of work: they cost those who mean harm little.
const PROVEN_TIMES: u64 = 10;

/// And so many of them from one site.
pub const PROOFS_OF_A_SITE: u64 = 30;

/// The name of the form among the sources, which are partners otherwise.
pub const FORM: &str = "";

/// A source, as operators read it.
pub fn source_name(source: &str) -> &str {
    if source == FORM { "the form" } else { source }
}

/// A day of UTC, counted from 1970.
pub fn day_of(time: Timestamp) -> i64 {
    time.as_millis().div_euclid(86_400_000)
}

/// What a source may cause in a day to begin with; 0 for no end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MailBudget {
    pub form_a_day: u32,
    pub key_a_day: u32,
}

/// What came of a source's mail in the last days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reputation {
    /// Mails that were begun, whether they left or not: what the budget is spent on.
    pub mailed_today: u64,
    /// Sign-ups whose mail left and asks to be confirmed, each once.
    pub asked: u64,
    /// Of these, those of the days before, because who was mailed today has had no time to decide; without those that an outage kept
    /// for long.
    pub asked_before: u64,
    pub proven_today: u64,
    /// Confirmed by people who were no members before, on the days before and today.
    pub confirmed_before: u64,
    pub confirmed: u64,
    pub declined: u64,
    /// Hard bounces.
    pub bounced: u64,
    pub complained: u64,
}

/// A source, as the operator is shown it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceStatus {
    pub source: String,
    /// What the operator gave its partner in place of the general rule.
    pub fixed: Option<u64>,
    /// Whether its partner is suspended: all of its mail is held.
    pub is_suspended: bool,
    pub reputation: Reputation,
    /// Mails that wait for the operator's decision, of those that were counted.
    pub held: u64,
    /// More mail is held than was counted, of this source or another.
    pub held_in_part: bool,
}

impl SourceStatus {
    /// How many are held, as operators read it: 12, or 12+ where there may be more.
    pub fn held_text(&self) -> String {
        format!("{}{}", grouped(self.held), if self.held_in_part { "+" } else { "" })
    }
}

impl MailBudget {
    pub const NONE: Self = Self { form_a_day: 0, key_a_day: 0 };

    /// How many mails a source may cause today; none for no end. A `fixed` quota is the operator's own figure for the partner:
    /// neither the settings nor its reputation change it.
    pub fn quota(&self, source: &str, fixed: Option<u64>, reputation: &Reputation) -> Option<u64> {
        if fixed.is_some() {
            return fixed;
        }
        let base = u64::from(if source == FORM { self.form_a_day } else { self.key_a_day });
        match base {
            0 => None,
            _ if reputation.is_bad() => Some((base / LEFT_ONE_IN).max(1)),
            _ => Some((base + reputation.confirmed_before * EARNED).min(base * MOST_TIMES)),
        }
    }

    /// How many more mails a source may cause today; none for no end.
    pub fn left(&self, source: &str, fixed: Option<u64>, reputation: &Reputation) -> Option<u64> {
        Some(self.quota(source, fixed, reputation)?.saturating_sub(reputation.mailed_today))
    }

    /// Whether a source has had its day's mail: what it asks for now is held.
    pub fn holds(&self, source: &str, fixed: Option<u64>, reputation: &Reputation) -> bool {
        self.left(source, fixed, reputation) == Some(0)
    }

    /// Whether a proof of work still passes the form's budget.
    pub fn takes_proofs(&self, reputation: &Reputation) -> bool {
        reputation.proven_today < u64::from(self.form_a_day) * PROVEN_TIMES
    }
}

impl Reputation {
    /// Declined, bounced, or complained about.
    pub fn unwanted(&self) -> u64 {
        self.declined + self.bounced + self.complained
    }

    /// Whether those who were mailed wanted it so seldom that it cannot have been their wish.
    pub fn is_bad(&self) -> bool {
        let Self { asked_before, confirmed, .. } = *self;
        let unwanted = self.unwanted();
        let ignored = confirmed * ONE_IN < asked_before;
        asked_before >= ENOUGH && (ignored || (unwanted >= FEW_UNWANTED && unwanted * ONE_IN > asked_before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: MailBudget = MailBudget { form_a_day: 60, key_a_day: 1000 };

    #[test]
    fn good_reputation_earns_more_and_bad_reputation_a_tenth() {
        let of = |source, asked_before, confirmed, declined| {
            let reputation =
                Reputation { asked_before, confirmed, confirmed_before: confirmed, declined, ..Reputation::default() };
            BUDGET.quota(source, None, &reputation)
        };
        assert_eq!(of(FORM, 0, 0, 0), Some(60));
        assert_eq!(of("Acme", 0, 0, 0), Some(1000));
        assert_eq!(of("Acme", 49, 0, 49), Some(1000), "too few to judge");
        assert_eq!(of("Acme", 1000, 600, 10), Some(2200));
        assert_eq!(of("Acme", 100_000, 60_000, 0), Some(10_000), "ten times as much at the most");
        assert_eq!(of("Acme", 1000, 49, 0), Some(100), "hardly anybody confirms");
        assert_eq!(of("Acme", 50, 30, 4), Some(1060), "one person with a few addresses");
        assert_eq!(of("Acme", 1000, 600, 51), Some(100), "many decline");
        assert_eq!(of(FORM, 60, 0, 0), Some(6));
        assert_eq!(MailBudget::NONE.quota(FORM, None, &Reputation::default()), None);
    }

    #[test]
    fn whatever_is_unwanted_counts_alike() {
        let sent = Reputation { asked_before: 100, confirmed: 60, ..Reputation::default() };
        let bad = Reputation { declined: 2, bounced: 2, complained: 2, ..sent };
        assert_eq!((bad.unwanted(), bad.is_bad()), (6, true));
        assert!(!Reputation { complained: 1, ..bad }.is_bad() && !sent.is_bad());
    }

    #[test]
    fn a_fixed_quota_replaces_settings_and_reputation() {
        let bad = Reputation { asked_before: 1000, mailed_today: 7, ..Reputation::default() };
        let good = Reputation { confirmed: 600, confirmed_before: 600, ..bad };
        for reputation in [bad, good, Reputation::default()] {
            for budget in [BUDGET, MailBudget::NONE] {
                assert_eq!(budget.quota("Acme", Some(8), &reputation), Some(8));
            }
        }
        assert_eq!(BUDGET.left("Acme", Some(8), &bad), Some(1));
        assert!(BUDGET.holds("Acme", Some(7), &bad) && !BUDGET.holds("Acme", Some(8), &bad));
        assert!(MailBudget::NONE.holds("Acme", Some(0), &Reputation::default()), "0 is no mail at all");
    }

    #[test]
    fn what_is_left_ends_at_nothing() {
        let spent = Reputation { mailed_today: 70, ..Reputation::default() };
        let left = |budget: MailBudget, source| budget.left(source, None, &spent);
        assert_eq!((left(BUDGET, FORM), left(BUDGET, "Acme")), (Some(0), Some(930)));
        assert_eq!(left(MailBudget::NONE, FORM), None);
        let holds = |budget: MailBudget, source| budget.holds(source, None, &spent);
        assert!(holds(BUDGET, FORM) && !holds(BUDGET, "Acme") && !holds(MailBudget::NONE, FORM));
        let proven = |proven_today| BUDGET.takes_proofs(&Reputation { proven_today, ..Reputation::default() });
        assert!(proven(599) && !proven(600));
    }
}
