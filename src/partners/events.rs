//! A partner's events page by page, and waiting for the next one (long polling).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::places::PartnerPlaces;
use super::worker::WebhookNotifier;
use crate::domain::api_key::Mode;
use crate::domain::partner::event::{BadCursor, EventCursors, MAX_WAITING, PartnerEvent};
use crate::domain::partner::name::PartnerId;
use crate::domain::secret::Secret;
use crate::domain::webhook::signature::message_id;
use crate::partners::event_log::{EventsAfter, NumberEvents};
use crate::store::{Store, StoreError};

/// How often a waiting request looks for events that other nodes committed, and how soon at the earliest it looks after
/// something happened on this node, which may have concerned another partner.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const MIN_LOOK_GAP: Duration = Duration::from_millis(200);

pub struct Events {
    store: Store,
    secret: Secret,
    cursors: EventCursors,
    notifier: Arc<WebhookNotifier>,
    /// Which records these events belong to.
    pub mode: Mode,
    /// Requests that wait for an event.
    waiting: PartnerPlaces,
}

/// Some of a partner's events, and where to continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    pub events: Vec<PartnerEvent>,
    pub cursor: String,
    /// There are more events after these.
    pub has_more: bool,
    /// How long the request did nothing but wait.
    pub waited: Duration,
}

impl Events {
    pub fn new(store: Store, secret: &Secret, notifier: Arc<WebhookNotifier>, mode: Mode) -> Self {
        let cursors = EventCursors::new(secret);
        let waiting = PartnerPlaces::new(MAX_WAITING, u32::MAX);
        Self { store, secret: secret.clone(), cursors, notifier, mode, waiting }
    }

    /// The event's id, which its webhook message has too.
    pub fn message_id(&self, event: &PartnerEvent) -> String {
        message_id(&self.secret, event.id, event.kind)
    }

    /// The partner's events after a cursor, or from the oldest that is kept. If there are none, waits for one, up to `wait`.
    pub async fn list(
        &self,
        partner: PartnerId,
        after: Option<&str>,
        most: u32,
        wait: Duration,
    ) -> Result<Result<EventPage, BadCursor>, StoreError> {
        let after = match after.map(|cursor| self.cursors.read(partner, cursor)).transpose() {
            Ok(after) => after,
            Err(bad) => return Ok(Err(bad)),
        };
        // Subscribes before the first look, so that nothing that happens during it is missed.
        let (begun, mut news) = (Instant::now(), self.notifier.news());
        let mut page = self.read(partner, after, most).await?;
        let is_empty = |page: &Result<EventPage, BadCursor>| page.as_ref().is_ok_and(|page| page.events.is_empty());
        if wait.is_zero() || !is_empty(&page) {
            return Ok(page);
        }
        let Some(_place) = self.waiting.take(partner) else { return Ok(page) };
        let (until, mut waited) = (begun + wait, Duration::ZERO);
        while is_empty(&page) && !*news.borrow() && Instant::now() < until {
            let looked = Instant::now();
            // Nothing in the store is held while this waits.
            if timeout_at(until.min(looked + LOOK_INTERVAL), news.changed()).await.is_ok() && !*news.borrow() {
                sleep_until(until.min(looked + MIN_LOOK_GAP)).await;
            }
            waited += looked.elapsed();
            page = self.read(partner, after, most).await?;
        }
        Ok(page.map(|page| EventPage { waited, ..page }))
    }

    /// Reads the page as it is now.
    async fn read(
        &self,
        partner: PartnerId,
        after: Option<i64>,
        most: u32,
    ) -> Result<Result<EventPage, BadCursor>, StoreError> {
        let from = after.unwrap_or(0);
        // One extra row shows whether there are more.
        let read = || self.store.run(EventsAfter { partner, after: from, most: most.saturating_add(1) });
        let mut list = read().await?;
        if list.has_unnumbered && list.events.len() <= most as usize {
            self.store.run(NumberEvents(partner)).await?;
            list = read().await?;
        }
        match after {
            Some(after) if after > list.numbered => return Ok(Err(BadCursor::Unknown)),
            Some(after) if after < list.deleted => return Ok(Err(BadCursor::TooOld)),
            _ => {}
        }
        let has_more = list.events.len() > most as usize || list.has_unnumbered;
        list.events.truncate(most as usize);
        let last = list.events.last().map(|last| last.position).or(after).unwrap_or(list.deleted);
        let cursor = self.cursors.write(partner, last);
        Ok(Ok(EventPage { events: list.events, cursor, has_more, waited: Duration::ZERO }))
    }
}
