//! Leases mail about campaigns, receipts first. This mail has no source and no mailbox caps: its pace was applied when it was queued.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::campaigns::mailing::{campaign_of_id, recipient, recipient_columns};
use crate::domain::campaign::CampaignMail;
use crate::domain::campaign::acceptance::Reference;
use crate::domain::campaign::mailing::MailingRecipient;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::language::Language;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::{CampaignNews, DueMail, Leased, MailAbout, MailId, MailKind, PersonRef, Receipt};
use crate::domain::referral::ReferralCode;
use crate::domain::time::Timestamp;
use crate::mail::outbox::candidate::never;
use crate::mail::outbox::lease::take;
use crate::membership::records::joined_by;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};
use crate::store::{Store, StoreReply};

/// Takes up to `most` due mails about campaigns, and drops those that no longer concern their person.
pub struct LeaseCampaignMail {
    pub worker: String,
    pub most: u32,
    pub now: Timestamp,
}

/// For the mail worker.
pub fn lease(store: &Store, worker: String, most: u32, now: Timestamp) -> StoreReply<'_, Leased> {
    store.run(LeaseCampaignMail { worker, most, now })
}

/// A due mail; what it is about is not yet known.
struct CampaignCandidate {
    id: i64,
    /// None: a receipt, for what they have accepted.
    kind: Option<CampaignMail>,
    acceptance: Option<(Reference, Timestamp)>,
    campaign: i64,
    person: PersonRef,
    to: MailingRecipient,
    recipient: String,
    asked_at: Timestamp,
    code: ReferralCode,
    attempts: u32,
    first_attempt_at: Timestamp,
    language: Option<Language>,
}

fn candidate(row: &Row<'_>) -> Result<CampaignCandidate, Failure> {
    Ok(CampaignCandidate {
        id: row.get("id")?,
        kind: CampaignMail::from_name(row.get("kind")?),
        acceptance: match row.get::<Option<&str>>("reference")? {
            Some(_) => Some((row.parsed("reference", Reference::parse)?, row.get("accepted_at")?)),
            None => None,
        },
        campaign: row.get("campaign_id")?,
        person: PersonRef { id: row.get("person_id")?, created_at: row.get("person_created_at")? },
        to: recipient(row)?,
        recipient: row.get("recipient")?,
        asked_at: row.get("created_at")?,
        code: row.get("code")?,
        attempts: row.get("attempts")?,
        first_attempt_at: row.get("first_attempt_at")?,
        language: row.get::<Option<&str>>("language")?.and_then(Language::from_code),
    })
}

/// Due mails of some kinds, as [`candidate`] reads them.
macro_rules! due {
    ($which:literal) => {
        concat!(
            "SELECT o.id, o.kind, o.recipient, o.created_at, o.attempts, coalesce(o.first_attempt_at, $1) AS first_attempt_at,
                    q.campaign_id, p.code, p.language, a.reference, a.accepted_at, ",
            recipient_columns!(),
            " FROM outbox o JOIN campaign_mails q ON q.id = o.campaign_mail_id JOIN people p ON p.id = q.person_id ",
            joined_by!(),
            " LEFT JOIN participations part ON part.campaign_id = q.campaign_id AND part.person_id = p.id
              LEFT JOIN acceptances a ON a.campaign_id = q.campaign_id AND a.person_id = p.id AND a.ended_at IS NULL
                  AND a.offer_number >= (SELECT c.offer_number FROM campaigns c WHERE c.id = q.campaign_id)
              WHERE ",
            $which,
            " AND o.given_up_at IS NULL AND o.held_at IS NULL AND o.send_after <= $1
                AND (o.leased_until <= $1 OR o.leased_until > $2)
              ORDER BY o.send_after LIMIT $3 FOR UPDATE OF o SKIP LOCKED"
        )
    };
}

impl Unit for LeaseCampaignMail {
    type Done = Leased;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Leased, Failure> {
        let (receipts, others) =
            (due!("o.kind = 'receipt'"), due!("o.campaign_mail_id IS NOT NULL AND o.kind <> 'receipt'"));
        let mut due = Vec::new();
        for which in [receipts, others] {
            let values = values![self.now, never(self.now), self.most - due.len() as u32];
            due.extend(sql.rows(which, values, candidate).await?);
        }
        let (mut leased, mut campaigns) = (Leased::default(), BTreeMap::new());
        for candidate in due {
            if !campaigns.contains_key(&candidate.campaign) {
                let campaign = campaign_of_id(sql, candidate.campaign).await?;
                campaigns.extend(campaign.map(|campaign| (candidate.campaign, Arc::new(campaign))));
            }
            let (id, campaign) = (candidate.id, campaigns.get(&candidate.campaign));
            match campaign.and_then(|campaign| candidate.mail(campaign, self.now)) {
                Some(mut mail) => {
                    take(sql, &mut mail, &self.worker, self.now).await?;
                    leased.mails.push(mail);
                }
                None => {
                    sql.execute("DELETE FROM outbox WHERE id = $1", values![id]).await?;
                    leased.deferred = true;
                }
            }
        }
        Ok(leased)
    }
}

impl CampaignCandidate {
    /// The mail, if it is still true and its reader can be reached.
    fn mail(self, campaign: &Arc<CampaignRecord>, now: Timestamp) -> Option<DueMail> {
        let (person, of) = (self.person, Arc::clone(campaign));
        let (kind, about) = match (self.kind, self.acceptance) {
            (Some(mail), _) if mail.is_for(campaign, &self.to, now) => {
                (mail.into(), MailAbout::Campaign(CampaignNews { mail, campaign: of, person }))
            }
            (None, Some((reference, accepted_at))) if campaign.offer.is_some() && self.to.is_reachable(now) => {
                (MailKind::Receipt, MailAbout::Receipt(Receipt { campaign: of, person, reference, accepted_at }))
            }
            _ => return None,
        };
        Some(DueMail {
            id: MailId(self.id),
            kind,
            about,
            recipient: self.recipient,
            partner_id: None,
            partner: None,
            asked_at: self.asked_at,
            code: self.code,
            attempts: self.attempts,
            first_attempt_at: self.first_attempt_at,
            lane: Lane::from_number(0),
            language: self.language,
            is_reminder: false,
        })
    }
}
