//! Reports from mail servers and mail services, stored with the people they are about.

use crate::domain::campaign::CampaignMail;
use crate::domain::mail::UNDELIVERABLE_FOR;
use crate::domain::mail::report::{MailReport, ReportKind, ReportOutcome, ReportedMail};
use crate::domain::partner::name::PartnerId;
use crate::domain::sign_up::PENDING_FOR;
use crate::domain::time::Timestamp;
use crate::mail::sources;
use crate::mail::sources::SourceEvent;
use crate::membership::answers::switch_mail;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Stores what a mail server or mail service reports about a mail that was sent.
pub struct NoteReport {
    pub report: MailReport,
    pub now: Timestamp,
}

/// The person that a report is about, and the source that their mail came through.
struct Reported {
    person: i64,
    mailbox: String,
    source: Option<PartnerId>,
    /// When the mail was requested; none if no one requested it.
    asked_at: Option<Timestamp>,
}

impl Unit for NoteReport {
    type Done = ReportOutcome;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<ReportOutcome, Failure> {
        let Some(Reported { mailbox, .. }) = self.find(sql).await? else { return Ok(ReportOutcome::Unknown) };
        // Decisions about one mailbox run one at a time, so that a person who is being erased leaves no address behind.
        sql.lock(&mailbox).await?;
        let Some(Reported { person, mailbox, source, asked_at }) = self.find(sql).await? else {
            return Ok(ReportOutcome::Unknown);
        };
        if let Some((name, ends_at)) = &self.report.once
            && !sources::use_once(sql, name, *ends_at).await?
        {
            return Ok(ReportOutcome::Repeated);
        }
        // The report counts against the source once, however often it is repeated.
        let (at_source, first) = match self.report.kind {
            ReportKind::HardBounce => {
                let ends = "UPDATE people SET undeliverable_until = $2
                            WHERE id = $1 AND coalesce(undeliverable_until <= $3, TRUE)";
                let until = self.now.plus(UNDELIVERABLE_FOR);
                (SourceEvent::Bounced, sql.execute(ends, values![person, until, self.now]).await? == 1)
            }
            ReportKind::SoftBounce => {
                let count = "UPDATE people SET soft_bounces = soft_bounces + 1 WHERE id = $1";
                sql.execute(count, values![person]).await?;
                (SourceEvent::SoftBounced, true)
            }
            ReportKind::Complaint => {
                sql.execute("INSERT INTO mailboxes (mailbox) VALUES ($1) ON CONFLICT DO NOTHING", values![&mailbox])
                    .await?;
                let campaigns = CampaignMail::ALL.map(|kind| (kind.into(), false));
                switch_mail(sql, person, &campaigns).await?;
                let complain = "UPDATE mailboxes SET complained_at = $2 WHERE mailbox = $1 AND complained_at IS NULL";
                (SourceEvent::Complained, sql.execute(complain, values![&mailbox, self.now]).await? == 1)
            }
        };
        // A person may keep mails for months and report them all in one day.
        if first && asked_at.is_some_and(|asked_at| self.now.since(asked_at) <= PENDING_FOR) {
            sources::count(sql, source, at_source, self.now).await?;
        }
        Ok(if first { ReportOutcome::Noted } else { ReportOutcome::Repeated })
    }
}

impl NoteReport {
    async fn find(&self, sql: &mut dyn Sql) -> Result<Option<Reported>, Failure> {
        let reported = |row: &Row<'_>| {
            Ok(Reported {
                person: row.get("id")?,
                mailbox: row.get("mailbox")?,
                source: row.get("partner_id")?,
                asked_at: row.get("updated_at")?,
            })
        };
        match &self.report.mail {
            ReportedMail::OfSignUp(sign_up) => {
                let find = "SELECT p.id, p.mailbox, s.partner_id, s.updated_at FROM sign_ups s JOIN people p ON p.id = s.person_id
                            WHERE s.id = $1 AND s.created_at = $2";
                sql.row(find, values![sign_up.id.0, sign_up.created_at], reported).await
            }
            ReportedMail::OfPerson(person) => {
                let find = "SELECT id, mailbox, CAST(NULL AS BIGINT) AS partner_id, CAST(NULL AS BIGINT) AS updated_at FROM people
                            WHERE id = $1 AND created_at = $2 AND erased_at IS NULL";
                sql.row(find, values![person.id, person.created_at], reported).await
            }
            ReportedMail::To(email_normalized) => {
                let find = "SELECT p.id, p.mailbox, s.partner_id, s.updated_at
                            FROM people p JOIN sign_ups s ON s.person_id = p.id WHERE p.email_normalized = $1
                            ORDER BY s.updated_at DESC, s.id DESC LIMIT 1";
                sql.row(find, values![email_normalized], reported).await
            }
        }
    }
}
