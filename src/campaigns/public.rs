//! What everybody may see of campaigns, kept in memory: the join page shows it, so a request does not have to read it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::campaigns::records::{FindCampaignsVersion, ListCampaigns};
use crate::domain::campaign::participation::{ParticipationEntry, ParticipationState};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{CampaignSlug, CampaignState};
use crate::domain::catalog::category::CategorySet;
use crate::domain::time::{Tick, Timestamp};
use crate::domain::us_state::UsState;
use crate::store::{Store, StoreError};

/// How long it is shown before checking the store for changes.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// How long before everything is read again, even if the version has not changed.
const READ_EVERY: Duration = Duration::from_secs(60);

/// The campaigns that everybody may see.
#[derive(Default)]
pub struct PublicCampaigns {
    /// In the order they are listed: first those that members can act on.
    listed: Vec<CampaignRecord>,
    /// Campaigns cancelled after people had seen them. Only a person who has the address can find them.
    cancelled: Vec<CampaignRecord>,
}

impl PublicCampaigns {
    fn of(campaigns: Vec<CampaignRecord>) -> Self {
        let public = campaigns.into_iter().filter(CampaignRecord::was_public);
        let (cancelled, mut listed): (Vec<_>, Vec<_>) =
            public.partition(|campaign| campaign.state == CampaignState::Cancelled);
        // Closed campaigns: newest first. All others: earliest deadline first.
        listed.sort_by_key(|campaign| {
            let day = match campaign.state {
                CampaignState::Closed => -campaign.closed_at.map_or(0, |at| at.as_millis()),
                _ => campaign.last_day_to_accept().unwrap_or(campaign.draft.gather_until).number(),
            };
            (place(campaign.state), day, campaign.id)
        });
        Self { listed, cancelled }
    }

    pub fn listed(&self) -> &[CampaignRecord] {
        &self.listed
    }

    /// The campaigns a member sees, best match first: those whose offer they accepted, then open ones where they live, starting with those
    /// about a bill they ticked, and then how the ones they took part in ended.
    pub fn for_member<'a>(
        &'a self,
        us_state: Option<UsState>,
        ticked: CategorySet,
        parts: &'a [ParticipationEntry],
    ) -> Vec<(&'a CampaignRecord, Option<&'a ParticipationEntry>)> {
        let fit = |campaign: &CampaignRecord, part: Option<ParticipationState>| {
            let is_over = matches!(campaign.state, CampaignState::Closed | CampaignState::Cancelled);
            let is_here = us_state.is_none() || campaign.draft.is_for(us_state);
            match part {
                Some(ParticipationState::Accepted) => Some(0),
                Some(_) if is_over => Some(3),
                None if is_over || !is_here => None,
                Some(ParticipationState::In) => Some(1),
                _ if campaign.draft.is_about(ticked) => Some(1),
                _ => Some(2),
            }
        };
        let mut shown = Vec::new();
        for campaign in self.listed.iter().chain(&self.cancelled) {
            let part = parts.iter().find(|part| part.campaign == *campaign.slug());
            shown.extend(fit(campaign, part.map(|part| part.state)).map(|fit| (fit, campaign, part)));
        }
        shown.sort_by_key(|(fit, ..)| *fit);
        shown.into_iter().map(|(_, campaign, part)| (campaign, part)).collect()
    }

    /// What a new member can take part in: the campaign they came from, then those that match. If they ticked no bill, they see all that
    /// are open where they live.
    pub fn after_joining(
        &self,
        came_from: Option<&CampaignSlug>,
        us_state: Option<UsState>,
        ticked: CategorySet,
        now: Timestamp,
    ) -> Vec<&CampaignRecord> {
        let came_from = came_from.and_then(|slug| self.listed.iter().find(|campaign| campaign.slug() == slug));
        let can_take_part = |campaign: &CampaignRecord| campaign.state.gathers() || campaign.takes_acceptances(now);
        let came_from = came_from.filter(|campaign| can_take_part(campaign));
        let any_bill = ticked == CategorySet::default();
        let fits = self.for_member(us_state, ticked, &[]).into_iter().map(|(campaign, _)| campaign);
        let fits = fits.filter(|campaign| (any_bill || campaign.draft.is_about(ticked)) && can_take_part(campaign));
        let others = fits.filter(|campaign| came_from.is_none_or(|first| first.id != campaign.id));
        came_from.into_iter().chain(others).collect()
    }

    /// The campaign at an address, listed or cancelled.
    pub fn find(&self, slug: &CampaignSlug) -> Option<&CampaignRecord> {
        self.listed.iter().chain(&self.cancelled).find(|campaign| campaign.slug() == slug)
    }
}

const fn place(state: CampaignState) -> u8 {
    match state {
        CampaignState::Offered => 0,
        CampaignState::Gathering => 1,
        CampaignState::Negotiating => 2,
        CampaignState::Active => 3,
        CampaignState::Closed | CampaignState::Cancelled | CampaignState::Draft => 4,
    }
}

/// What this process shows.
#[derive(Default)]
pub(super) struct KeptPublic {
    last: RwLock<Option<Kept>>,
    /// One request asks the store; the others get what is kept.
    asking: Mutex<()>,
}

#[derive(Clone)]
struct Kept {
    at: Tick,
    /// When everything was last read. Changes that the version misses appear within a minute.
    read_at: Tick,
    version: [i64; 4],
    campaigns: Arc<PublicCampaigns>,
}

impl KeptPublic {
    pub(super) async fn get(&self, store: &Store, now: Tick) -> Result<Arc<PublicCampaigns>, StoreError> {
        if let Some(kept) = self.read().filter(|kept| now.since(kept.at) < BELIEVED_FOR) {
            return Ok(kept.campaigns);
        }
        let asking = match (self.asking.try_lock(), self.read()) {
            (Ok(asking), _) => asking,
            (Err(_), Some(kept)) => return Ok(kept.campaigns),
            (Err(_), None) => self.asking.lock().await,
        };
        let recent = self.read().filter(|kept| now.since(kept.read_at) < READ_EVERY);
        let kept = match (look(store, recent.as_ref(), now).await, recent) {
            (Ok(kept), _) => kept,
            // If the store fails, a page that works keeps working while the copy is this recent.
            (Err(_), Some(kept)) => return Ok(kept.campaigns),
            (Err(error), None) => return Err(error),
        };
        let campaigns = Arc::clone(&kept.campaigns);
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        drop(asking);
        Ok(campaigns)
    }

    fn read(&self) -> Option<Kept> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What the store has now; reads it again only if it has changed.
async fn look(store: &Store, recent: Option<&Kept>, now: Tick) -> Result<Kept, StoreError> {
    let version = store.run(FindCampaignsVersion).await?;
    Ok(match recent.filter(|kept| kept.version == version) {
        Some(kept) => Kept { at: now, ..kept.clone() },
        None => {
            let campaigns = Arc::new(PublicCampaigns::of(store.run(ListCampaigns).await?));
            Kept { at: now, read_at: now, version, campaigns }
        }
    })
}
