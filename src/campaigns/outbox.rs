//! Leases mail about campaigns. This mail has no source and no mailbox caps: its pace was applied when it was queued.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::campaigns::mailing::{campaign_of_id, recipient, recipient_columns};
use crate::domain::campaign::CampaignMail;
use crate::domain::campaign::mailing::MailingRecipient;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::language::Language;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::{CampaignNews, DueMail, Leased, MailAbout, MailId, PersonRef};
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
    kind: CampaignMail,
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
        kind: row.parsed("kind", CampaignMail::from_name)?,
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

impl Unit for LeaseCampaignMail {
    type Done = Leased;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Leased, Failure> {
        let due = concat!(
            "SELECT o.id, o.kind, o.recipient, o.created_at, o.attempts, coalesce(o.first_attempt_at, $1) AS first_attempt_at,
                    q.campaign_id, p.code, p.language, ",
            recipient_columns!(),
            " FROM outbox o JOIN campaign_mails q ON q.id = o.campaign_mail_id JOIN people p ON p.id = q.person_id ",
            joined_by!(),
            " LEFT JOIN participations part ON part.campaign_id = q.campaign_id AND part.person_id = p.id
              WHERE o.campaign_mail_id IS NOT NULL AND o.given_up_at IS NULL AND o.held_at IS NULL AND o.send_after <= $1
                AND (o.leased_until <= $1 OR o.leased_until > $2)
              ORDER BY o.send_after LIMIT $3 FOR UPDATE OF o SKIP LOCKED"
        );
        let (mut leased, mut campaigns) = (Leased::default(), BTreeMap::new());
        for candidate in sql.rows(due, values![self.now, never(self.now), self.most], candidate).await? {
            if !campaigns.contains_key(&candidate.campaign) {
                let campaign = campaign_of_id(sql, candidate.campaign).await?;
                campaigns.extend(campaign.map(|campaign| (candidate.campaign, Arc::new(campaign))));
            }
            let campaign = campaigns.get(&candidate.campaign);
            match campaign.filter(|campaign| candidate.kind.is_for(campaign, &candidate.to, self.now)) {
                Some(campaign) => {
                    let mut mail = candidate.about(Arc::clone(campaign));
                    take(sql, &mut mail, &self.worker, self.now).await?;
                    leased.mails.push(mail);
                }
                None => {
                    sql.execute("DELETE FROM outbox WHERE id = $1", values![candidate.id]).await?;
                    leased.deferred = true;
                }
            }
        }
        Ok(leased)
    }
}

impl CampaignCandidate {
    fn about(self, campaign: Arc<CampaignRecord>) -> DueMail {
        DueMail {
            id: MailId(self.id),
            kind: self.kind.into(),
            about: MailAbout::Campaign(CampaignNews { mail: self.kind, campaign, person: self.person }),
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
        }
    }
}
