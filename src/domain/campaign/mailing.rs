//! Mail about campaigns: who gets which, asked when it is queued and again before it goes; and how fast it is queued.

use std::time::Duration;

use super::participation::ParticipationState;
use super::record::CampaignRecord;
use super::{CampaignMail, CampaignState};
use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::choices::MailChoices;
use crate::domain::person::PersonState;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;

/// What decides whether somebody is mailed about a campaign.
#[derive(Clone, PartialEq, Eq)]
pub struct MailingRecipient {
    pub state: PersonState,
    pub choices: MailChoices,
    /// Their part in the campaign.
    pub part: Option<ParticipationState>,
    pub us_state: Option<UsState>,
    pub categories: CategorySet,
    pub undeliverable_until: Option<Timestamp>,
    pub suppressed_until: Option<Timestamp>,
    /// Somebody reported our mail to their mailbox as unwanted.
    pub complained: bool,
}

impl MailingRecipient {
    /// Whether they are a member to whose mailbox mail may go.
    pub fn is_reachable(&self, now: Timestamp) -> bool {
        let is_over = |until: Option<Timestamp>| until.is_none_or(|until| until <= now);
        self.state == PersonState::Member && is_over(self.undeliverable_until) && is_over(self.suppressed_until)
    }
}

impl CampaignMail {
    /// Whether the campaign is still where such a mail says it is.
    pub fn is_timely(self, campaign: &CampaignRecord, now: Timestamp) -> bool {
        match self {
            Self::Opened => campaign.state.gathers(),
            Self::Offer => campaign.takes_acceptances(now) || campaign.withdrawn.is_some() && campaign.state.gathers(),
            Self::Result => matches!(campaign.state, CampaignState::Closed | CampaignState::Cancelled),
        }
    }

    /// Whether somebody is to get it, who has not decided yet what it asks of them.
    pub fn is_for(self, campaign: &CampaignRecord, to: &MailingRecipient, now: Timestamp) -> bool {
        use ParticipationState::{Accepted, In, Passed};
        let takes_part = match self {
            // A member who named no state may live in one that it is for.
            Self::Opened => {
                let fits = to.us_state.is_none() || campaign.draft.is_for(to.us_state);
                to.part.is_none() && fits && to.categories.contains(campaign.draft.category)
            }
            Self::Offer if campaign.withdrawn.is_some() => matches!(to.part, Some(In | Accepted)),
            Self::Offer => to.part == Some(In) && campaign.offer_is_for(to.us_state),
            Self::Result => matches!(to.part, Some(In | Accepted | Passed)),
        };
        takes_part
            && to.choices.wants(self.into())
            && !to.complained
            && to.is_reachable(now)
            && self.is_timely(campaign, now)
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// So long before its time a mail may be queued, because the worker looks only now and then.
const TOLERANCE: Duration = Duration::from_secs(10);

/// No time further ahead was written by a right clock.
const FURTHEST_AHEAD: Duration = Duration::from_secs(2 * 3600);

/// How much campaign mail is queued, over all campaigns and nodes (GCRA).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MailingPace {
    /// At most in any hour; 0 for none at all.
    pub an_hour: u32,
}

/// What may be queued now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MailingRoom {
    pub mails: u32,
    from: i64,
    interval: i64,
}

impl MailingPace {
    /// The pace that keeps `an_hour` in every hour, the tolerance included. `used_to` is what [`MailingRoom::after`] said last.
    pub fn room(self, used_to: i64, now: Timestamp) -> MailingRoom {
        let (now, tolerance) = (now.as_millis(), TOLERANCE.as_millis() as i64);
        let used_to = if used_to > now + FURTHEST_AHEAD.as_millis() as i64 { now } else { used_to };
        let from = used_to.max(now);
        if self.an_hour == 0 {
            return MailingRoom { mails: 0, from: used_to, interval: 0 };
        }
        let interval = (HOUR + TOLERANCE).as_millis().div_ceil(u128::from(self.an_hour)) as i64;
        let ahead = now + tolerance - from;
        let mails = if ahead < 0 { 0 } else { u32::try_from(ahead / interval + 1).unwrap_or(u32::MAX) };
        MailingRoom { mails, from, interval }
    }

    /// Campaign mail that waits at the most: an outage leaves no more than an hour's worth.
    pub fn most_waiting(self) -> u32 {
        self.an_hour.min(1000)
    }
}

impl MailingRoom {
    /// What is used up once so many were queued.
    pub fn after(self, mails: u32) -> i64 {
        if mails == 0 { self.from } else { self.from + i64::from(mails) * self.interval }
    }
}

#[cfg(test)]
mod tests {
    use super::super::offer::Deal;
    use super::super::participation::ParticipationState::{Accepted, In, Out, Passed};
    use super::super::tests::{campaign, offered};
    use super::*;
    use crate::domain::catalog::category::Category;
    use crate::domain::mail::MailKind;
    use crate::domain::mail::choices::KeptChoices;

    const NOW: Timestamp = Timestamp::from_millis(1_794_743_200_000);

    fn member() -> MailingRecipient {
        MailingRecipient {
            state: PersonState::Member,
            choices: KeptChoices::default().read(true),
            part: None,
            us_state: None,
            categories: CategorySet::from_slugs(Category::Internet.slug()),
            undeliverable_until: None,
            suppressed_until: None,
            complained: false,
        }
    }

    #[test]
    fn each_mail_goes_to_those_it_concerns_while_it_is_true() {
        let with = |part| MailingRecipient { part, ..member() };
        let gathering = campaign(CampaignState::Gathering);
        let offered_now = offered(CampaignState::Offered);
        for (part, opened, offer, result) in [
            (None, true, false, false),
            (Some(In), false, true, true),
            (Some(Out), false, false, false),
            (Some(Accepted), false, false, true),
            (Some(Passed), false, false, true),
        ] {
            let to = with(part);
            assert_eq!(CampaignMail::Opened.is_for(&gathering, &to, NOW), opened, "{part:?}");
            assert_eq!(CampaignMail::Offer.is_for(&offered_now, &to, NOW), offer, "{part:?}");
            for over in [CampaignState::Closed, CampaignState::Cancelled] {
                assert_eq!(CampaignMail::Result.is_for(&offered(over), &to, NOW), result, "{part:?}");
            }
        }
        assert!(CampaignMail::Opened.is_for(&campaign(CampaignState::Negotiating), &member(), NOW));
        assert!(!CampaignMail::Opened.is_for(&offered_now, &member(), NOW), "it gathers no more");
        let mut west = offered_now.clone();
        let Some(Deal::Reckoned(deal)) = west.offer.as_mut().map(|offer| &mut offer.deal) else {
            panic!("it is reckoned")
        };
        deal.bid.states = vec![UsState::CA];
        for (us_state, is_mailed) in [(None, true), (Some(UsState::CA), true), (Some(UsState::NY), false)] {
            let to = MailingRecipient { us_state, ..with(Some(In)) };
            assert_eq!(CampaignMail::Offer.is_for(&west, &to, NOW), is_mailed, "{us_state:?}");
        }
        let late = "2027-03-16T10:00:00Z".parse().unwrap();
        assert!(!CampaignMail::Offer.is_for(&offered_now, &with(Some(In)), late), "nobody can accept anymore");
        assert!(CampaignMail::Offer.is_for(&offered(CampaignState::Active), &with(Some(In)), NOW), "activated early");
        assert!(!CampaignMail::Result.is_for(&offered(CampaignState::Active), &with(Some(In)), NOW));
    }

    #[test]
    fn members_who_cannot_be_or_do_not_want_to_be_mailed_are_not() {
        let mut some = campaign(CampaignState::Gathering);
        some.draft.states = vec![UsState::CA];
        let mut kept = KeptChoices::default();
        kept.choose(MailKind::CampaignOpened, false);
        let (past, future) = (Some(NOW), Some(NOW.plus(HOUR)));
        for (name, to, is_mailed) in [
            ("a member who named no state", member(), true),
            ("one of another state", MailingRecipient { us_state: Some(UsState::NY), ..member() }, false),
            ("one of that state", MailingRecipient { us_state: Some(UsState::CA), ..member() }, true),
            ("another bill", MailingRecipient { categories: CategorySet::default(), ..member() }, false),
            ("who left", MailingRecipient { state: PersonState::Left, ..member() }, false),
            ("who wants none", MailingRecipient { choices: kept.read(true), ..member() }, false),
            ("an older notice", MailingRecipient { choices: KeptChoices::default().read(false), ..member() }, false),
            ("a complaint", MailingRecipient { complained: true, ..member() }, false),
            ("a bounce", MailingRecipient { undeliverable_until: future, ..member() }, false),
            ("a bounce of long ago", MailingRecipient { undeliverable_until: past, ..member() }, true),
            ("a silence", MailingRecipient { suppressed_until: future, ..member() }, false),
        ] {
            assert_eq!(CampaignMail::Opened.is_for(&some, &to, NOW), is_mailed, "{name}");
        }
    }

    #[test]
    fn no_hour_has_more_than_its_share_however_the_worker_comes_by() {
        for (an_hour, step) in [(500, 1000), (500, 30_000), (1, 1000), (7, 777), (3600, 100), (100_000, 5000)] {
            let pace = MailingPace { an_hour };
            let (mut used_to, mut queued) = (0, Vec::new());
            for at in (0..4 * 3_600_000).step_by(step) {
                // It sleeps for a while, and then has much to do.
                if (4_000_000..6_000_000).contains(&at) {
                    continue;
                }
                let now = NOW.plus(Duration::from_millis(at as u64));
                let room = pace.room(used_to, now);
                used_to = room.after(room.mails);
                queued.extend(std::iter::repeat_n(at, room.mails as usize));
            }
            let mut first = 0;
            for (n, at) in queued.iter().enumerate() {
                while queued[first] + 3_600_000 <= *at {
                    first += 1;
                }
                assert!(n - first < an_hour as usize, "{an_hour} an hour, {step} ms");
            }
            let in_first_hour = queued.iter().filter(|at| **at < 3_600_000).count();
            if TOLERANCE.as_millis() >= step as u128 {
                assert!(in_first_hour + 1 >= an_hour as usize * 9 / 10, "{an_hour}: {in_first_hour}");
            }
        }
        assert_eq!(MailingPace { an_hour: 0 }.room(0, NOW).mails, 0);
        let ahead = NOW.plus(HOUR * 24 * 8).as_millis();
        assert_eq!(MailingPace { an_hour: 500 }.room(ahead, NOW).mails, 2, "a wrong clock stops nothing");
    }
}
