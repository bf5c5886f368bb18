//! Mailings about campaigns: they go through people in the order of their ids, in batches, and put mail into the outbox.

use std::time::Duration;

use crate::campaigns::acceptances::are_ending;
use crate::campaigns::records::{campaign, campaigns};
use crate::domain::campaign::mailing::{MailingPace, MailingRecipient};
use crate::domain::campaign::participation::ParticipationState;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{CampaignMail, CampaignSlug, CampaignState};
use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::choices::KeptChoices;
use crate::domain::person::PersonState;
use crate::domain::sign_up::PENDING_FOR;
use crate::domain::time::{DAY, Timestamp};
use crate::domain::us_state::UsState;
use crate::membership::records::joined_by;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// People that one step looks at. Kept small because sign-ups wait meanwhile.
const LOOKED_AT_ONCE: u32 = 100;

/// Rows that one step deletes. The second SQL statement of the step repeats this number.
const FORGOTTEN_AT_ONCE: u32 = 500;

/// How long after a receipt the same acceptance gets none again.
const RECEIPT_EVERY: Duration = DAY;

/// How long it is remembered that a receipt was mailed.
const RECEIPTS_KEPT_FOR: Duration = DAY.saturating_mul(30);

/// Puts the receipt for what somebody accepted into the outbox. Whoever withdraws and accepts again the same day had it already.
pub(crate) async fn queue_receipt(
    sql: &mut dyn Sql,
    campaign: i64,
    person: i64,
    is_new: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    let once = "INSERT INTO campaign_mails (campaign_id, kind, person_id, queued_at) VALUES ($1, 'receipt', $2, $3)
                ON CONFLICT (campaign_id, kind, person_id) DO UPDATE SET queued_at = excluded.queued_at
                WHERE CAST($4 AS BOOLEAN) OR campaign_mails.queued_at <= $5 RETURNING id";
    let again_after = now.minus(RECEIPT_EVERY);
    let Some(mail) = sql.value::<i64>(once, values![campaign, person, now, is_new, again_after]).await? else {
        return Ok(());
    };
    // One that still waits says what is true when it goes.
    let put = "INSERT INTO outbox (campaign_mail_id, kind, recipient, created_at, send_after)
               SELECT CAST($1 AS BIGINT), 'receipt', p.email, CAST($2 AS BIGINT), CAST($2 AS BIGINT)
               FROM people p WHERE p.id = $3 AND p.state = 'member' ON CONFLICT (campaign_mail_id) DO NOTHING";
    sql.execute(put, values![mail, now, person]).await.map(|_| ())
}

/// Columns of a person `p` with their part `part` in a campaign, as [`recipient`] reads them; `s` is the sign-up they joined by.
macro_rules! recipient_columns {
    () => {
        concat!(
            "p.id AS person_id, p.created_at AS person_created_at, p.state AS person_state, p.unwanted_mail, p.wanted_mail,
         EXISTS (SELECT 1 FROM notices n WHERE n.hash = s.notice AND n.names_campaign_mail) AS is_told, part.state AS part, ",
            $crate::membership::records::answer_now!("us_state"),
            ", ",
            $crate::membership::records::answer_now!("categories"),
            ", p.undeliverable_until, (SELECT m.suppressed_until FROM mailboxes m WHERE m.mailbox = p.mailbox) AS suppressed_until,
         EXISTS (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.complained_at IS NOT NULL) AS complained"
        )
    };
}
pub(crate) use recipient_columns;

pub(crate) fn recipient(row: &Row<'_>) -> Result<MailingRecipient, Failure> {
    let kept = KeptChoices { unwanted: row.get("unwanted_mail")?, wanted: row.get("wanted_mail")? };
    Ok(MailingRecipient {
        state: row.parsed("person_state", PersonState::from_name)?,
        choices: kept.read(row.get("is_told")?),
        part: row.get::<Option<&str>>("part")?.and_then(ParticipationState::from_name),
        us_state: row.get::<Option<&str>>("us_state")?.and_then(UsState::from_code),
        categories: row.get::<Option<&str>>("categories")?.map(CategorySet::from_slugs).unwrap_or_default(),
        undeliverable_until: row.get("undeliverable_until")?,
        suppressed_until: row.get("suppressed_until")?,
        complained: row.get("complained")?,
    })
}

pub(crate) async fn campaign_of_id(sql: &mut dyn Sql, id: i64) -> Result<Option<CampaignRecord>, Failure> {
    sql.row(campaigns!("WHERE c.id = $1"), values![id], campaign).await
}

#[derive(Clone, Default, PartialEq, Eq)]
pub struct MailingStep {
    pub queued: u32,
    /// Whether there may be more to do right away.
    pub more: bool,
    /// A mailing that ran out of time before it got through everyone.
    pub ended_early: Option<(CampaignSlug, CampaignMail)>,
}

/// Advances a mailing by some people, and as many mails as the pace allows. Saves its position in the same transaction.
pub struct StepMailing {
    pub pace: MailingPace,
    pub now: Timestamp,
}

struct Mailing {
    id: i64,
    campaign: i64,
    kind: CampaignMail,
    after: i64,
    started_at: Timestamp,
}

impl Unit for StepMailing {
    type Done = MailingStep;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<MailingStep, Failure> {
        // The node that locks this row takes the step; the other nodes have nothing to do meanwhile.
        let pace = "SELECT used_to FROM campaign_pace WHERE id = 1 FOR UPDATE SKIP LOCKED";
        let Some(used_to) = sql.value(pace, values![]).await? else { return Ok(MailingStep::default()) };
        let most = self.pace.most_waiting();
        let waiting =
            "SELECT count(*) FROM (SELECT 1 FROM outbox WHERE campaign_mail_id IS NOT NULL AND given_up_at IS NULL
                                             AND held_at IS NULL LIMIT $1) waiting";
        let waiting: u32 = sql.value(waiting, values![most]).await?.unwrap_or(most);
        let room = self.pace.room(used_to, self.now);
        let mails = room.mails.min(most - waiting.min(most));
        if mails == 0 {
            return Ok(MailingStep::default());
        }
        let Some((mailing, campaign)) = self.next(sql).await? else { return Ok(MailingStep::default()) };
        if !mailing.kind.is_timely(&campaign, self.now) {
            mailing.note(sql, mailing.after, 0, Some(self.now)).await?;
            sql.execute("UPDATE campaign_mailings SET ended_early = TRUE WHERE id = $1", values![mailing.id]).await?;
            let ended_early = Some((campaign.slug().clone(), mailing.kind));
            return Ok(MailingStep { queued: 0, more: true, ended_early });
        }
        let window = mailing.window(sql).await?;
        let is_last = (window.len() as u64) < u64::from(LOOKED_AT_ONCE);
        let (mut after, mut queued, mut is_stopped) = (mailing.after, 0, false);
        for (person, recipient) in window {
            if mailing.kind.is_for(&campaign, &recipient, self.now) {
                if queued == mails {
                    is_stopped = true;
                    break;
                }
                queued += u32::from(self.queue(sql, &mailing, person).await?);
            }
            after = person;
        }
        let finished_at = (is_last && !is_stopped).then_some(self.now);
        mailing.note(sql, after, queued, finished_at).await?;
        if queued > 0 {
            let pace = "UPDATE campaign_pace SET used_to = $1 WHERE id = 1";
            sql.execute(pace, values![room.after(queued)]).await?;
        }
        Ok(MailingStep { queued, more: !is_stopped, ended_early: None })
    }
}

impl StepMailing {
    /// Offers go first. Among the others, the mailing that has sent the least goes first, so that none waits for a large one.
    async fn next(&self, sql: &mut dyn Sql) -> Result<Option<(Mailing, CampaignRecord)>, Failure> {
        let unfinished =
            "SELECT id, campaign_id, kind, after_id, started_at FROM campaign_mailings WHERE finished_at IS NULL
                          ORDER BY CASE WHEN kind = 'campaign_offer' THEN 0 ELSE 1 END, queued, id";
        let read = |row: &Row<'_>| {
            Ok(Mailing {
                id: row.get("id")?,
                campaign: row.get("campaign_id")?,
                kind: row.parsed("kind", CampaignMail::from_name)?,
                after: row.get("after_id")?,
                started_at: row.get("started_at")?,
            })
        };
        for mailing in sql.rows(unfinished, values![], read).await? {
            let Some(campaign) = campaign_of_id(sql, mailing.campaign).await? else { continue };
            // The mail quotes the last sheet, so it waits until that sheet is counted.
            let is_result = mailing.kind == CampaignMail::Result && campaign.state == CampaignState::Closed;
            if is_result && (campaign.is_counting || super::sheet::is_uncounted(sql, campaign.id).await?) {
                continue;
            }
            // Who accepted the offer before is in again once their acceptance has ended.
            if mailing.kind == CampaignMail::Offer && are_ending(sql, mailing.campaign).await? {
                continue;
            }
            return Ok(Some((mailing, campaign)));
        }
        Ok(None)
    }

    /// Puts the mail for a person into the outbox. False if they already got it or are gone by now.
    async fn queue(&self, sql: &mut dyn Sql, mailing: &Mailing, person: i64) -> Result<bool, Failure> {
        let once = "INSERT INTO campaign_mails (campaign_id, kind, person_id, queued_at) VALUES ($1, $2, $3, $4)
                    ON CONFLICT (campaign_id, kind, person_id) DO UPDATE SET queued_at = excluded.queued_at
                    WHERE campaign_mails.queued_at < $5 RETURNING id";
        let kind = mailing.kind.name();
        let values = values![mailing.campaign, kind, person, self.now, mailing.started_at];
        let Some(mail) = sql.value::<i64>(once, values).await? else {
            return Ok(false);
        };
        // A person who is being erased at this moment leaves no address behind.
        let put = "INSERT INTO outbox (campaign_mail_id, kind, recipient, created_at, send_after)
                   SELECT CAST($1 AS BIGINT), CAST($2 AS TEXT), p.email, CAST($3 AS BIGINT), CAST($3 AS BIGINT)
                   FROM people p WHERE p.id = $4 AND p.state = 'member' FOR SHARE
                   ON CONFLICT (campaign_mail_id) DO NOTHING";
        Ok(sql.execute(put, values![mail, kind, self.now, person]).await? == 1)
    }
}

impl Mailing {
    async fn window(&self, sql: &mut dyn Sql) -> Result<Vec<(i64, MailingRecipient)>, Failure> {
        let everybody = concat!(
            "SELECT ",
            recipient_columns!(),
            " FROM (SELECT * FROM people WHERE id > $2 ORDER BY id LIMIT $3) p ",
            joined_by!(),
            " LEFT JOIN participations part ON part.campaign_id = $1 AND part.person_id = p.id ORDER BY p.id"
        );
        let those_in_it = concat!(
            "SELECT ",
            recipient_columns!(),
            " FROM (SELECT * FROM participations WHERE campaign_id = $1 AND person_id > $2 ORDER BY person_id LIMIT $3) part
              JOIN people p ON p.id = part.person_id ",
            joined_by!(),
            " ORDER BY p.id"
        );
        let window = match self.kind {
            CampaignMail::Opened => everybody,
            CampaignMail::Offer | CampaignMail::Result => those_in_it,
        };
        let read = |row: &Row<'_>| Ok((row.get("person_id")?, recipient(row)?));
        sql.rows(window, values![self.campaign, self.after, LOOKED_AT_ONCE], read).await
    }

    async fn note(
        &self,
        sql: &mut dyn Sql,
        after: i64,
        queued: u32,
        finished_at: Option<Timestamp>,
    ) -> Result<(), Failure> {
        let note = "UPDATE campaign_mailings SET after_id = $2, queued = queued + $3, finished_at = $4 WHERE id = $1";
        sql.execute(note, values![self.id, after, queued, finished_at]).await.map(|_| ())
    }
}

/// Deletes some rows that finished mailings no longer need; returns how many.
pub struct ForgetMails(pub Timestamp);

impl Unit for ForgetMails {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let given_up = "DELETE FROM outbox WHERE id IN
                            (SELECT id FROM outbox WHERE campaign_mail_id IS NOT NULL AND given_up_at <= $1 LIMIT $2)";
        let long_ago = Timestamp::from_millis(self.0.as_millis() - PENDING_FOR.as_millis() as i64);
        let given_up = sql.execute(given_up, values![long_ago, FORGOTTEN_AT_ONCE]).await?;
        // A cross join, because SQLite reads its sides in this order; otherwise it reads the mails of every mailing still running. The
        // limit is a literal so that PostgreSQL plans with it; with a parameter it reads every mail.
        let gone = "DELETE FROM campaign_mails WHERE id IN
                        (SELECT m.id FROM campaign_mailings g CROSS JOIN campaign_mails m
                         WHERE g.finished_at IS NOT NULL AND m.campaign_id = g.campaign_id AND m.kind = g.kind
                             AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.campaign_mail_id = m.id)
                         LIMIT 500)";
        let gone = given_up + sql.execute(gone, values![]).await?;
        let receipts = "DELETE FROM campaign_mails WHERE id IN
                            (SELECT m.id FROM campaign_mails m WHERE m.kind = 'receipt' AND m.queued_at <= $1
                             AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.campaign_mail_id = m.id) LIMIT $2)";
        let receipts = sql.execute(receipts, values![self.0.minus(RECEIPTS_KEPT_FOR), FORGOTTEN_AT_ONCE]).await?;
        Ok(gone + receipts)
    }
}
