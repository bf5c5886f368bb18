//! Records the outcome of an attempt to send a mail.

use std::time::Duration;

use crate::domain::mail::{CampaignNews, DueMail, MailAbout, MailKind, MailOutcome, Receipt, UNDELIVERABLE_FOR};
use crate::domain::time::Timestamp;
use crate::mail::sources;
use crate::mail::sources::SourceEvent;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// No mail goes for a while to the person whose id is `$person`.
macro_rules! reject {
    ($person:literal) => {
        concat!("UPDATE people SET undeliverable_until = $2 WHERE id = ", $person)
    };
}

/// A mail that left this long after its first attempt: few people look for it any more, which is not their source's fault.
const LATE: Duration = Duration::from_secs(3600);

/// Records the outcome of an attempt. Does nothing if the mail was leased again since.
pub struct Settle {
    pub mail: DueMail,
    pub outcome: MailOutcome,
    pub now: Timestamp,
}

impl Unit for Settle {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        match &self.outcome {
            MailOutcome::Sent => {
                let delete = "DELETE FROM outbox WHERE id = $1 AND attempts = $2";
                let gone = sql.execute(delete, values![self.mail.id.0, self.mail.attempts]).await? == 1;
                if let MailAbout::SignUp(sign_up) = self.mail.about
                    && gone
                {
                    let left = "UPDATE sign_ups SET mailed_at = $2 WHERE id = $1";
                    sql.execute(left, values![sign_up.id.0, self.now]).await?;
                    // A source is judged by the confirmations it asked people for.
                    if self.mail.kind == MailKind::Confirm && !self.mail.is_reminder {
                        sources::count(sql, self.mail.partner_id, SourceEvent::Asked, self.now).await?;
                        if self.now.since(self.mail.first_attempt_at) >= LATE {
                            sources::count(sql, self.mail.partner_id, SourceEvent::AskedLate, self.now).await?;
                        }
                    }
                }
                Ok(())
            }
            MailOutcome::Rejected => {
                self.give_mailbox_back(sql, false).await?;
                let delete = "DELETE FROM outbox WHERE id = $1 AND attempts = $2";
                if sql.execute(delete, values![self.mail.id.0, self.mail.attempts]).await? == 0 {
                    return Ok(());
                }
                let (reject, about) = match &self.mail.about {
                    MailAbout::SignUp(sign_up) => {
                        (reject!("(SELECT person_id FROM sign_ups WHERE id = $1)"), sign_up.id.0)
                    }
                    MailAbout::SignIn(sign_in) => {
                        (reject!("(SELECT person_id FROM sign_ins WHERE id = $1)"), sign_in.id.0)
                    }
                    MailAbout::Campaign(CampaignNews { person, .. }) | MailAbout::Receipt(Receipt { person, .. }) => {
                        (reject!("$1"), person.id)
                    }
                };
                sql.execute(reject, values![about, self.now.plus(UNDELIVERABLE_FOR)]).await?;
                if let MailAbout::SignUp(_) = self.mail.about {
                    sources::count(sql, self.mail.partner_id, SourceEvent::Bounced, self.now).await?;
                }
                Ok(())
            }
            MailOutcome::Retry { at, cause, perhaps_sent } => {
                self.give_mailbox_back(sql, *perhaps_sent).await?;
                self.keep(sql, Some(*at), None, Some(cause)).await
            }
            MailOutcome::Wait { at } => {
                self.give_mailbox_back(sql, false).await?;
                self.keep(sql, Some(*at), None, None).await
            }
            MailOutcome::GivenUp { cause, perhaps_sent } => {
                self.give_mailbox_back(sql, *perhaps_sent).await?;
                self.keep(sql, None, Some(self.now), Some(cause)).await
            }
        }
    }
}

impl Settle {
    async fn keep(
        &self,
        sql: &mut dyn Sql,
        at: Option<Timestamp>,
        given_up_at: Option<Timestamp>,
        cause: Option<&str>,
    ) -> Result<(), Failure> {
        let keep = "
            UPDATE outbox SET send_after = coalesce($3, send_after), given_up_at = $4, last_error = $5, leased_until = 0,
                leased_by = NULL
            WHERE id = $1 AND attempts = $2";
        // PostgreSQL cannot store a NUL.
        let cause = cause.map(|cause| cause.replace('\0', ""));
        let values = values![self.mail.id.0, self.mail.attempts, at, given_up_at, cause.as_deref()];
        sql.execute(keep, values).await.map(|_| ())
    }

    /// If this mail may have been sent, the next attempt counts as another mail to the mailbox. If not, this one does not count.
    async fn give_mailbox_back(&self, sql: &mut dyn Sql, perhaps_sent: bool) -> Result<(), Failure> {
        macro_rules! give_back {
            ($set:literal) => {
                concat!(
                    "UPDATE mailboxes SET ",
                    $set,
                    " WHERE last_mail_id = $1 AND mailbox =
                        (SELECT p.mailbox FROM people p JOIN sign_ups s ON s.person_id = p.id
                         JOIN outbox o ON o.sign_up_id = s.id WHERE o.id = $1 AND o.attempts = $2)"
                )
            };
        }
        let give_back = match perhaps_sent {
            true => give_back!("last_mail_id = NULL"),
            false => {
                give_back!(
                    "last_mail_id = NULL, sent_1 = sent_2, sent_2 = sent_3, sent_3 = sent_4, sent_4 = NULL,
                     source_1 = source_2, source_2 = source_3, source_3 = source_4, source_4 = NULL"
                )
            }
        };
        sql.execute(give_back, values![self.mail.id.0, self.mail.attempts]).await.map(|_| ())
    }
}
