//! What an operator looks at before paying: patterns among the members whom one person referred. Shown, never judged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::campaign::CampaignSlug;
use super::super::email::EmailAddress;
use super::super::email::disposable::DisposableDomains;
use super::super::time::Timestamp;
use crate::domain::campaign::acceptance::Ended;

/// So many who joined within [`BURST_WITHIN`] are a burst.
pub const BURST: usize = 3;
pub const BURST_WITHIN: Duration = Duration::from_secs(3600);

/// So many who accepted an offer within [`BURST_WITHIN`] did so together.
pub const TOGETHER: usize = 3;

/// More than half of a referrer's members, and at least so many, who joined through one partner are a cluster.
pub const CLUSTER: usize = 3;

/// How far it is followed who referred whom.
pub const MOST_STEPS: usize = 10;

/// A referrer with groups that are not paid, or paid for somebody who no longer counts, and the members in them.
#[derive(Clone, PartialEq, Eq)]
pub struct ReviewedReferrer {
    pub person: i64,
    /// None once they are erased.
    pub email: Option<String>,
    pub groups: u32,
    pub cents: i64,
    /// In the order of groups; the first [`Self::MOST_MEMBERS`].
    pub members: Vec<ReviewedMember>,
    /// Those who no longer count, in groups that are paid or being paid; the first [`Self::MOST_MEMBERS`].
    pub ended: Vec<ReviewedMember>,
    /// How many partners the union has.
    pub partners: u64,
    /// Who referred them, who referred that one, and so on, as far as [`MOST_STEPS`].
    pub referred_by: Vec<ReviewedPerson>,
}

impl ReviewedReferrer {
    /// Members of one referrer that are looked at.
    pub const MOST_MEMBERS: u32 = 2000;
}

#[derive(Clone, PartialEq, Eq)]
pub struct ReviewedPerson {
    pub id: i64,
    /// None once they are erased.
    pub email: Option<String>,
}

/// A member of a group.
#[derive(Clone, PartialEq, Eq)]
pub struct ReviewedMember {
    pub person: ReviewedPerson,
    pub joined_at: Option<Timestamp>,
    /// The partner that they joined through; none: by the form, or it is not known any more.
    pub partner: Option<String>,
    /// When they accepted the offer.
    pub accepted_at: Option<Timestamp>,
    /// The day on which they ceased to count, and why.
    pub ended: Option<(Timestamp, Ended)>,
    pub campaign: CampaignSlug,
    /// Its number among the groups of their referrer in that campaign, from 1.
    pub group: i64,
    /// The batch that its payout is in.
    pub batch: Option<i64>,
}

/// A pattern, with the rows behind it.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern<'a> {
    pub kind: PatternKind,
    /// A member is here once for each group that they are in.
    pub members: Vec<&'a ReviewedMember>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatternKind {
    /// So many people joined within [`BURST_WITHIN`].
    Burst(usize),
    /// So many people accepted the same offer within [`BURST_WITHIN`].
    Together(usize),
    /// So many people no longer count whose group is paid or being paid.
    Ended(usize),
    /// Their addresses are at domains whose mailboxes are made to be thrown away.
    Disposable,
    /// So many of all joined through one partner.
    Cluster { partner: String, people: usize, of: usize },
    /// So many people were erased since they counted.
    Erased(usize),
    /// So many steps, from each to the one who referred them, lead back to the referrer.
    Ring(usize),
}

impl ReviewedReferrer {
    /// The patterns among their members.
    pub fn patterns(&self, disposable: &DisposableDomains) -> Vec<Pattern<'_>> {
        let mut found = self.bursts();
        found.extend(self.together());
        let is_disposable = |member: &&ReviewedMember| {
            let email = member.person.email.as_deref().and_then(|email| EmailAddress::kept(email).ok());
            email.is_some_and(|email| disposable.holds(&email))
        };
        let members: Vec<_> = self.members.iter().filter(is_disposable).collect();
        if !members.is_empty() {
            found.push(Pattern { kind: PatternKind::Disposable, members });
        }
        found.extend(self.cluster());
        found.extend(self.erased());
        found.extend(self.ended());
        found.extend(self.ring());
        found
    }

    /// Each person once: somebody may be in a group of each campaign.
    fn people(&self) -> BTreeMap<i64, &ReviewedMember> {
        self.members.iter().map(|member| (member.person.id, member)).collect()
    }

    fn rows_of(&self, people: &BTreeSet<i64>) -> Vec<&ReviewedMember> {
        self.members.iter().filter(|member| people.contains(&member.person.id)).collect()
    }

    fn bursts(&self) -> Vec<Pattern<'_>> {
        let people = self.people();
        let joined = people.iter().filter_map(|(id, member)| Some((member.joined_at?, *id))).collect();
        let found = within_an_hour(joined, BURST);
        found.map(|ids| Pattern { kind: PatternKind::Burst(ids.len()), members: self.rows_of(&ids) }).collect()
    }

    fn together(&self) -> Vec<Pattern<'_>> {
        let mut campaigns = BTreeMap::<&str, Vec<_>>::new();
        for member in &self.members {
            if let Some(at) = member.accepted_at {
                campaigns.entry(member.campaign.as_str()).or_default().push((at, member.person.id));
            }
        }
        let mut found = Vec::new();
        for (campaign, accepted) in campaigns {
            found.extend(within_an_hour(accepted, TOGETHER).map(|ids| {
                let rows = self.rows_of(&ids).into_iter();
                let members = rows.filter(|member| member.campaign.as_str() == campaign).collect();
                Pattern { kind: PatternKind::Together(ids.len()), members }
            }));
        }
        found
    }

    fn ended(&self) -> Option<Pattern<'_>> {
        let people: BTreeSet<_> = self.ended.iter().map(|member| member.person.id).collect();
        let kind = PatternKind::Ended(people.len());
        (!people.is_empty()).then(|| Pattern { kind, members: self.ended.iter().collect() })
    }

    fn cluster(&self) -> Option<Pattern<'_>> {
        // Where there is one partner, everybody came by it.
        if self.partners < 2 {
            return None;
        }
        let people = self.people();
        let mut partners = BTreeMap::<&str, BTreeSet<i64>>::new();
        for (id, member) in &people {
            if let Some(partner) = &member.partner {
                partners.entry(partner).or_default().insert(*id);
            }
        }
        let of = people.len();
        let (partner, ids) = partners.into_iter().find(|(_, ids)| ids.len() >= CLUSTER && ids.len() * 2 > of)?;
        let kind = PatternKind::Cluster { partner: partner.to_owned(), people: ids.len(), of };
        Some(Pattern { kind, members: self.rows_of(&ids) })
    }

    fn erased(&self) -> Option<Pattern<'_>> {
        let people = self.members.iter().map(|member| &member.person);
        let ids: BTreeSet<_> = people.filter(|person| person.email.is_none()).map(|person| person.id).collect();
        let kind = PatternKind::Erased(ids.len());
        (!ids.is_empty()).then(|| Pattern { kind, members: self.rows_of(&ids) })
    }

    fn ring(&self) -> Option<Pattern<'_>> {
        let steps = 1 + self.referred_by.iter().position(|by| by.id == self.person)?;
        let ids = self.referred_by[..steps].iter().map(|by| by.id).collect();
        Some(Pattern { kind: PatternKind::Ring(steps), members: self.rows_of(&ids) })
    }
}

/// People at times within [`BURST_WITHIN`] of the first of them, where there are so many. Nobody is in two.
fn within_an_hour(mut times: Vec<(Timestamp, i64)>, many: usize) -> impl Iterator<Item = BTreeSet<i64>> {
    times.sort_unstable();
    let (mut found, mut rest) = (Vec::new(), times.as_slice());
    while let Some((first, _)) = rest.first() {
        let together = rest.iter().take_while(|(at, _)| at.since(*first) <= BURST_WITHIN).count();
        if together < many {
            rest = &rest[1..];
            continue;
        }
        found.push(rest[..together].iter().map(|(_, id)| *id).collect());
        rest = &rest[together..];
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: i64, minute: i64, partner: Option<&str>) -> ReviewedMember {
        ReviewedMember {
            person: ReviewedPerson { id, email: Some(format!("p{id}@example.com")) },
            joined_at: Some(Timestamp::from_millis(1_800_000_000_000 + minute * 60_000)),
            partner: partner.map(str::to_owned),
            accepted_at: None,
            ended: None,
            campaign: "internet-2027".parse().unwrap(),
            group: 1,
            batch: None,
        }
    }

    fn referrer(members: Vec<ReviewedMember>) -> ReviewedReferrer {
        let (ended, referred_by) = (Vec::new(), Vec::new());
        ReviewedReferrer { person: 1, email: None, groups: 1, cents: 100, members, ended, partners: 2, referred_by }
    }

    fn found(referrer: &ReviewedReferrer) -> Vec<(PatternKind, Vec<i64>)> {
        let patterns = referrer.patterns(&DisposableDomains::default());
        patterns.into_iter().map(|p| (p.kind, p.members.iter().map(|member| member.person.id).collect())).collect()
    }

    #[test]
    fn three_within_an_hour_are_a_burst_and_nobody_is_in_two() {
        let at =
            |minutes: &[i64]| referrer(minutes.iter().zip(2..).map(|(minute, id)| member(id, *minute, None)).collect());
        assert_eq!(found(&at(&[0, 60, 200, 230, 260])), [(PatternKind::Burst(3), vec![4, 5, 6])]);
        assert_eq!(found(&at(&[0, 30, 61, 120, 400])), [], "each hour has two at the most");
        let all = found(&at(&[0, 1, 2, 59, 61, 70, 80]));
        assert_eq!(all, [(PatternKind::Burst(4), vec![2, 3, 4, 5]), (PatternKind::Burst(3), vec![6, 7, 8])]);
    }

    #[test]
    fn somebody_in_two_campaigns_is_one_person() {
        let mut both: Vec<_> = [(2, 0), (3, 30), (2, 0), (3, 30)].map(|(id, at)| member(id, at, Some("Acme"))).into();
        both[2].campaign = "mobile-2027".parse().unwrap();
        assert_eq!(found(&referrer(both)), []);
    }

    #[test]
    fn more_than_half_through_one_partner_are_a_cluster() {
        let by = |partners: &[Option<&str>]| {
            referrer(partners.iter().zip(2..).map(|(partner, id)| member(id, id * 100, *partner)).collect())
        };
        let (acme, zenith) = (Some("Acme"), Some("Zenith"));
        let kind = PatternKind::Cluster { partner: "Acme".to_owned(), people: 3, of: 5 };
        assert_eq!(found(&by(&[acme, None, acme, zenith, acme])), [(kind, vec![2, 4, 6])]);
        assert_eq!(found(&by(&[acme, acme, None, None, acme, zenith])), [], "half is not most");
        assert_eq!(found(&by(&[acme, acme])), [], "two are few");
        assert_eq!(found(&by(&[None; 5])), [], "the form is no partner");
    }

    #[test]
    fn where_there_is_one_partner_everybody_came_by_it() {
        let mut one = referrer((2..6).map(|id| member(id, id * 100, Some("Acme"))).collect());
        assert_eq!(found(&one).len(), 1);
        one.partners = 1;
        assert_eq!(found(&one), []);
    }

    #[test]
    fn three_who_accept_an_offer_within_an_hour_are_together() {
        let at = |minute: i64| Some(Timestamp::from_millis(1_800_000_000_000 + minute * 60_000));
        let mut one = referrer((2..7).map(|id| member(id, id * 100, None)).collect());
        for (member, minute) in one.members.iter_mut().zip([0, 59, 60, 61, 400]) {
            member.accepted_at = at(minute);
        }
        assert_eq!(found(&one), [(PatternKind::Together(3), vec![2, 3, 4])]);
        one.members[1].campaign = "mobile-2027".parse().unwrap();
        assert_eq!(found(&one), [], "the three that are left take 61 minutes");
        one.members[3].accepted_at = at(60);
        assert_eq!(found(&one), [(PatternKind::Together(3), vec![2, 4, 5])], "each offer by itself");
    }

    #[test]
    fn who_no_longer_counts_where_it_was_paid_is_shown() {
        let mut one = referrer(Vec::new());
        one.ended = vec![member(2, 0, None), member(3, 500, None)];
        assert_eq!(found(&one), [(PatternKind::Ended(2), vec![2, 3])]);
    }

    #[test]
    fn disposable_domains_and_rings_are_shown() {
        let mut one = referrer(vec![member(2, 0, None), member(3, 500, None)]);
        one.members[1].person.email = Some("x@mailinator.com".to_owned());
        assert_eq!(found(&one), [(PatternKind::Disposable, vec![3])]);
        one.members[1].person.email = None;
        assert_eq!(found(&one), [(PatternKind::Erased(1), vec![3])]);
        one.members[1].person.email = Some("c@example.com".to_owned());
        one.referred_by = [5, 2, 1].map(|id| ReviewedPerson { id, email: None }).to_vec();
        assert_eq!(found(&one), [(PatternKind::Ring(3), vec![2])], "1 by 5 by 2 by 1");
        one.referred_by.pop();
        assert_eq!(found(&one), []);
    }
}
