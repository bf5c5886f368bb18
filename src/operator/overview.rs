//! The overview: everything the operator's page shows in charts, read from stored figures.
//!
//! A bounded number of reads, each bounded by days, states, categories, sources and campaigns: none grows with people, sign-ups or the
//! ledger. One request reads, and the others get its result.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::demand::{self, DemandRow};
use super::{Demand, Funnel, Operator};
use crate::campaigns::records::ListCampaigns;
use crate::clock::Moment;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::mail::budget::{SourceStatus, day_of};
use crate::domain::referral::ReferralCode;
use crate::domain::reward::report::{OnTheWay, RewardTotals};
use crate::domain::time::{Tick, Timestamp};
use crate::figures::accounts::FindRewardTotals;
use crate::figures::{CountReferredMembers, ListDays, ListDemand, ListSources, ListTopReferrers};
pub use crate::mail::sources::MailFigures;
use crate::mail::sources::{FindMailFigures, ListSourceStatuses};
use crate::rewards::BatchRecord;
use crate::rewards::report::FindOnTheWay;
use crate::store::StoreError;

/// How long it is shown before it is read again. With the twenty seconds between two roll-ups, it is less than a minute old.
const BELIEVED_FOR: Duration = Duration::from_secs(30);

/// Days that the overview looks back: a year and today.
pub const DAYS: i64 = 366;

pub const MONTH: usize = 30;

pub const WEEK: usize = 7;

const TOP_REFERRERS: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayFigures {
    pub day: i64,
    pub funnel: Funnel,
    /// At the end of the day.
    pub members: u64,
}

pub struct Overview {
    pub read_at: Timestamp,
    pub members: u64,
    /// The last days without a gap, oldest first; the last one is today. Starts with the first day on which something happened.
    pub days: Vec<DayFigures>,
    /// What each source did in the last [`MONTH`] days, most sign-ups first. The form's name is empty.
    pub sources: Vec<(String, Funnel)>,
    pub by_state: Vec<DemandRow>,
    pub by_category: Vec<DemandRow>,
    pub referred: u64,
    pub top_referrers: Vec<(ReferralCode, u64)>,
    pub mail: MailFigures,
    pub senders: Vec<SourceStatus>,
    /// Running campaigns first, then the newest.
    pub campaigns: Vec<CampaignRecord>,
    pub rewards: RewardTotals,
    pub on_the_way: OnTheWay,
    /// Batches of payouts that are not settled, the oldest first.
    pub batches: Vec<BatchRecord>,
}

impl Overview {
    /// The figures of the last so many days and of as many before.
    pub fn periods(&self, length: usize) -> [Funnel; 2] {
        let mut days = self.days.iter().rev();
        [(); 2].map(|()| {
            let mut period = Funnel::default();
            days.by_ref().take(length).for_each(|day| period += day.funnel);
            period
        })
    }
}

impl Operator {
    /// Reads everything, one query after the other, because sign-ups need the other connections.
    async fn read_overview(&self, now: Timestamp) -> Result<Overview, StoreError> {
        let (store, today) = (&self.store, day_of(now));
        let members = store.member_count().await?;
        let demand: Vec<Demand> = store.run(ListDemand).await?;
        let mut sources = store.run(ListSources(today - MONTH as i64 + 1)).await?;
        sources.sort_by(|(one, a), (other, b)| (b.signed_up, b.mailed, one).cmp(&(a.signed_up, a.mailed, other)));
        let mut campaigns = store.run(ListCampaigns).await?;
        campaigns.sort_by_key(|campaign| (campaign.closed_at.is_some(), std::cmp::Reverse(campaign.id)));
        Ok(Overview {
            read_at: now,
            members,
            days: gapless(store.run(ListDays(today - DAYS + 1)).await?, today, members),
            sources,
            by_state: demand::by_state(&demand, None),
            by_category: demand::by_category(&demand, None),
            referred: store.run(CountReferredMembers).await?,
            top_referrers: store.run(ListTopReferrers(TOP_REFERRERS)).await?,
            mail: store.run(FindMailFigures).await?,
            senders: store.run(ListSourceStatuses(now)).await?,
            campaigns,
            rewards: store.run(FindRewardTotals).await?,
            on_the_way: store.run(FindOnTheWay(OnTheWay::MOST_FOR_PAGE)).await?,
            batches: self.rewards().open_batches().await?.0,
        })
    }
}

/// Every day from the first one to today, with the number of members at its end, counted backward from the current number.
fn gapless(days: Vec<(i64, Funnel)>, today: i64, members: u64) -> Vec<DayFigures> {
    let mut known = days.into_iter().filter(|(day, _)| (today - DAYS + 1..=today).contains(day)).peekable();
    let first = known.peek().map_or(today, |(day, _)| *day);
    let mut days = Vec::new();
    for day in first..=today {
        let funnel = known.next_if(|(at, _)| *at == day).map(|(_, funnel)| funnel).unwrap_or_default();
        days.push(DayFigures { day, funnel, members: 0 });
    }
    let mut at_end = members;
    for day in days.iter_mut().rev() {
        day.members = at_end;
        at_end = (at_end + day.funnel.left).saturating_sub(day.funnel.confirmed);
    }
    days
}

/// The last overview, shared by all operators. One request reads; the others wait for it.
#[derive(Default)]
pub struct KeptOverview(Mutex<Option<(Tick, Arc<Overview>)>>);

impl KeptOverview {
    pub async fn get(&self, operator: &Operator, now: Moment) -> Result<Arc<Overview>, StoreError> {
        let mut last = self.0.lock().await;
        if let Some((at, overview)) = &*last
            && now.tick.since(*at) < BELIEVED_FOR
            // A calendar can go ahead: of a demonstration, or corrected.
            && now.time.since(overview.read_at) < BELIEVED_FOR
        {
            return Ok(Arc::clone(overview));
        }
        let overview = Arc::new(operator.read_overview(now.time).await?);
        *last = Some((now.tick, Arc::clone(&overview)));
        Ok(overview)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_no_gap_and_members_are_counted_backwards() {
        let joined = |confirmed, left| Funnel { confirmed, left, ..Funnel::default() };
        let days = gapless(vec![(97, joined(5, 0)), (99, joined(3, 2)), (100, joined(1, 0))], 100, 17);
        let found: Vec<_> = days.iter().map(|day| (day.day, day.funnel.confirmed, day.members)).collect();
        assert_eq!(found, [(97, 5, 15), (98, 0, 15), (99, 3, 16), (100, 1, 17)]);
        assert_eq!(gapless(vec![], 100, 0), [DayFigures { day: 100, funnel: Funnel::default(), members: 0 }]);
        let odd = gapless(vec![(-700, joined(9, 0)), (98, joined(9, 0)), (200, joined(9, 0))], 100, 4);
        let found: Vec<_> = odd.iter().map(|day| (day.day, day.members)).collect();
        assert_eq!(found, [(98, 4), (99, 4), (100, 4)], "clocks that were wrong");
    }
}
