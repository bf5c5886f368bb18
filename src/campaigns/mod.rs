//! Campaigns: what everybody sees of them, which buttons members press, what the operator and the negotiator do, and the worker that acts
//! by date, counts and mails.
//!
//! It must never know HTTP, MCP or a command line.

pub mod acceptances;
pub mod admin;
pub mod bids;
pub mod drafts;
pub mod handover;
pub mod mailing;
pub mod mailing_worker;
pub mod negotiation;
pub mod negotiator;
pub mod offer_facts;
pub mod operator_step;
pub mod outbox;
pub mod participation;
pub mod pause;
pub mod public;
pub mod qualify;
pub mod records;
pub mod rounds;
pub mod sheet;
pub mod states;
pub mod worker;

use std::sync::Arc;

use self::public::{KeptPublic, PublicCampaigns};
use crate::campaigns::acceptances::{Agreed, SayTrouble};
pub use crate::campaigns::negotiation::Noted;
use crate::campaigns::participation::PressButton;
pub use crate::campaigns::participation::Pressed;
use crate::campaigns::records::RememberCampaign;
pub use crate::campaigns::states::{Edited, Made, Stepped, TakenStep};
use crate::clock::Moment;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::acceptance::Reference;
use crate::domain::campaign::participation::{Press, PressAnswers};
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::secret::session::Nonce;
use crate::domain::time::Timestamp;
use crate::random;
use crate::store::{Store, StoreError};

/// What the pages do with campaigns.
pub struct Campaigns {
    store: Store,
    public: KeptPublic,
}

impl Campaigns {
    pub fn new(store: Store) -> Self {
        Self { store, public: KeptPublic::default() }
    }

    /// The campaigns that everybody may see, at most about a second out of date.
    pub async fn public(&self, now: Moment) -> Result<Arc<PublicCampaigns>, StoreError> {
        self.public.get(&self.store, now.tick).await
    }

    /// A member presses a button of a campaign; a state that they say with it counts where they have named none before.
    pub async fn press(
        &self,
        session: &Nonce,
        slug: &CampaignSlug,
        press: Press,
        said: PressAnswers,
        (mark, language): (String, Language),
        now: Timestamp,
    ) -> Result<Pressed, StoreError> {
        let agreed = Agreed { mark, language, reference: Reference::from_random(&random::bytes()?) };
        self.store.run(PressButton { session: session.clone(), slug: slug.clone(), press, said, agreed, now }).await
    }

    /// A member says whether what they accepted works. False if they accepted nothing there.
    pub async fn say_trouble(
        &self,
        session: &Nonce,
        slug: &CampaignSlug,
        works: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.store.run(SayTrouble { session: session.clone(), slug: slug.clone(), works, now }).await
    }

    /// Remembers that a person who signed up with the form came from a campaign's page.
    pub async fn remember(&self, email: &EmailAddress, slug: &CampaignSlug) -> Result<(), StoreError> {
        self.store.run(RememberCampaign(email.normalized(), slug.clone())).await
    }
}
