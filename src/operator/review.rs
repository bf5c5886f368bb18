//! The review of groups that are not paid yet, in words: for the command and the operator's page.

use crate::domain::campaign::acceptance::Ended;
use crate::domain::figure::{counted, money};
use crate::domain::reward::review::{PatternKind, ReviewedMember, ReviewedReferrer};

/// What a referrer's rows stand under.
pub fn heading(referrer: &ReviewedReferrer) -> String {
    let unpaid = match referrer.groups {
        0 => "no group waits to be paid".to_owned(),
        groups => format!("{} not paid yet, {}", counted(groups.into(), "group"), money(referrer.cents)),
    };
    format!("{}: {unpaid}", shown(referrer.email.as_deref()))
}

/// Says so where a referrer has more members than are looked at.
pub fn cut(referrer: &ReviewedReferrer) -> Option<String> {
    let is_cut = referrer.members.len() >= ReviewedReferrer::MOST_MEMBERS as usize;
    is_cut.then(|| format!("only the first {} members were looked at", ReviewedReferrer::MOST_MEMBERS))
}

pub fn words(kind: &PatternKind, referrer: &ReviewedReferrer) -> String {
    match kind {
        PatternKind::Burst(people) => format!("burst: {people} members joined within an hour"),
        PatternKind::Together(people) => format!("together: {people} members accepted the offer within an hour"),
        PatternKind::Ended(people) => {
            let people = counted(*people as u64, "member");
            format!("ended: {people} no longer counted, after the file of their group's payout")
        }
        PatternKind::Disposable => "disposable: addresses at domains of disposable mailboxes".to_owned(),
        PatternKind::Cluster { partner, people, of } => {
            format!("partner: {people} of {of} members joined through {partner}")
        }
        PatternKind::Erased(people) => {
            format!(
                "erased: {} erased since, so when and how they joined is not known",
                counted(*people as u64, "member")
            )
        }
        PatternKind::Ring(steps) => {
            let ring: Vec<_> = referrer.referred_by.iter().take(*steps).map(|by| shown(by.email.as_deref())).collect();
            format!("ring: referred by {}", ring.join(", referred by "))
        }
    }
}

pub fn shown(email: Option<&str>) -> &str {
    email.unwrap_or("someone who was erased")
}

/// Why and when somebody ceased to count whose group was paid by then.
pub fn ended(member: &ReviewedMember) -> Option<String> {
    let (on, why) = member.ended?;
    let why = match why {
        Ended::Passed => "passed",
        Ended::Left => "left",
        Ended::Erased => "erased",
        Ended::Offer => "the offer ended",
        Ended::Rejected => "order rejected",
        Ended::Cancelled => "order canceled",
    };
    Some(format!("{why} {}", on.day()))
}

/// What was looked at.
#[derive(Default)]
pub struct LookedAt {
    pub groups: u64,
    pub referrers: u64,
    /// Those of them with a pattern.
    pub shown: u64,
}

impl LookedAt {
    pub fn words(&self) -> String {
        let all = format!("{} of {}", counted(self.groups, "group"), counted(self.referrers, "referrer"));
        match (self.referrers, self.shown) {
            (0, 0) => "No group is waiting to be paid.".to_owned(),
            (0, _) => format!("No group is waiting to be paid: {} shown.", counted(self.shown, "referrer")),
            (_, 0) => format!("Looked at {all}, none of them paid yet: nothing to report."),
            (_, _) => format!("Looked at {all}, none of them paid yet: {} shown.", counted(self.shown, "referrer")),
        }
    }
}
