//! "This wasn't me": withdrawing a sign-up, undoing that, and stopping mail that a mailbox does not want.

use crate::domain::mail::MailKind;
use crate::domain::partner::name::PartnerId;
use crate::domain::sign_up::{
    Confirmation, DecidedHow, Declining, SUPPRESSED_FOR, SeenPage, SignUpRef, SignUpState, Silence, SilenceChange,
};
use crate::domain::time::Timestamp;
use crate::mail::sources::SourceEvent;
use crate::mail::{outbox, sources};
use crate::membership::answers::switch_mail;
use crate::membership::confirm::{Confirm, Declined};
use crate::membership::count::people_of;
use crate::membership::records::{can_take_back, decide, mailbox_of, state_at};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// A sign-up and its person, for a decision by the person who holds the mail's link.
struct AskedSignUp {
    mailbox: String,
    person: i64,
    is_member: bool,
    state: SignUpState,
    source: Option<PartnerId>,
}

/// Decisions about one mailbox run one at a time.
async fn look(sql: &mut dyn Sql, sign_up: SignUpRef, now: Timestamp) -> Result<Option<AskedSignUp>, Failure> {
    let Some(mailbox) = mailbox_of(sql, sign_up).await? else { return Ok(None) };
    sql.lock(&mailbox).await?;
    let look = concat!(
        "SELECT ",
        state_at!("$2"),
        " AS state, s.partner_id, s.person_id,
           (SELECT p.state = 'member' FROM people p WHERE p.id = s.person_id) AS is_member
           FROM sign_ups s WHERE s.id = $1 FOR UPDATE"
    );
    let asked = |row: &Row<'_>| {
        Ok(AskedSignUp {
            mailbox: mailbox.clone(),
            person: row.get("person_id")?,
            is_member: row.get("is_member")?,
            state: row.parsed("state", SignUpState::from_name)?,
            source: row.get("partner_id")?,
        })
    };
    sql.row(look, values![sign_up.id.0, now], asked).await
}

/// The person said "this wasn't me": the sign-up is withdrawn, and only the mail that they ask to stop is stopped.
pub struct Decline {
    pub sign_up: SignUpRef,
    pub how: DecidedHow,
    /// None if the reader did not choose.
    pub silence: Option<SilenceChange>,
    pub now: Timestamp,
}

impl Unit for Decline {
    type Done = Declining;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Declining, Failure> {
        let Some(asked) = look(sql, self.sign_up, self.now).await? else { return Ok(Declining::Unknown) };
        let declining = match asked.state {
            SignUpState::Confirmed => Declining::Confirmed,
            SignUpState::Expired => Declining::Expired,
            SignUpState::Declined => Declining::Declined,
            SignUpState::Pending => {
                decide(sql, self.sign_up.id, SignUpState::Declined, self.how, self.now).await?;
                outbox::forget(sql, self.sign_up.id).await?;
                Declining::Declined
            }
        };
        match (self.silence, self.how) {
            (Some(change), _) => change_silence(sql, &asked, change, self.now).await?,
            // A mail program's unsubscribe button means no more mail like this. For a member it stops this kind of mail. At
            // another spelling of a member's mailbox it stops the source that asked. Otherwise it stops all mail. A member can
            // still reach their own page.
            (None, DecidedHow::OneClick) if asked.is_member => want_no_more(sql, asked.person, true).await?,
            (None, DecidedHow::OneClick) if people_of(sql, &asked.mailbox).await?.1 => {
                stop_partner(sql, &asked, self.now).await?;
            }
            (None, DecidedHow::OneClick) => silence_mailbox(sql, &asked.mailbox, self.now).await?,
            (None, _) => {}
        }
        // Last, because others wait for this row.
        if asked.state == SignUpState::Pending {
            sources::count(sql, asked.source, SourceEvent::Declined, self.now).await?;
        }
        Ok(declining)
    }
}

/// The person who holds a mail's link chooses which mail to stop; false if there is no such sign-up.
pub struct ChooseSilence {
    pub sign_up: SignUpRef,
    pub silence: SilenceChange,
    pub now: Timestamp,
}

impl Unit for ChooseSilence {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Some(asked) = look(sql, self.sign_up, self.now).await? else { return Ok(false) };
        change_silence(sql, &asked, self.silence, self.now).await?;
        Ok(true)
    }
}

/// The person takes "this wasn't me" back: the sign-up is confirmed, and mail reaches them again.
pub struct TakeBack {
    pub sign_up: SignUpRef,
    pub seen: SeenPage,
    pub now: Timestamp,
}

impl Unit for TakeBack {
    type Done = Confirmation;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Confirmation, Failure> {
        let Some(asked) = look(sql, self.sign_up, self.now).await? else { return Ok(Confirmation::Unknown) };
        let declined =
            concat!("SELECT s.decided_at, s.updated_at FROM sign_ups s WHERE s.id = $1 AND ", can_take_back!("$2"));
        let times = |row: &Row<'_>| Ok((row.get::<Timestamp>("decided_at")?, row.get::<Timestamp>("updated_at")?));
        let Some((at, updated_at)) = sql.row(declined, values![self.sign_up.id.0, self.now], times).await? else {
            return Ok(match asked.state {
                SignUpState::Confirmed => Confirmation::AlreadyMember,
                SignUpState::Pending => Confirmation::Changed,
                SignUpState::Declined if asked.is_member => Confirmation::AlreadyMember,
                SignUpState::Expired | SignUpState::Declined => Confirmation::Expired,
            });
        };
        if self.seen.answers.is_some_and(|seen| seen != updated_at) {
            return Ok(Confirmation::Changed);
        }
        let all = Silence { again: true, partner: true, mailbox: true };
        let change = SilenceChange { add: Silence::default(), lift: all };
        change_silence(sql, &asked, change, self.now).await?;
        let declined = Some(Declined { source: asked.source, at });
        let confirm = Confirm { sign_up: self.sign_up, seen: self.seen.clone(), now: self.now };
        confirm.confirm(declined, sql).await
    }
}

/// Stops the mail that the reader asks to stop, and allows the mail that they ask for again.
async fn change_silence(
    sql: &mut dyn Sql,
    asked: &AskedSignUp,
    SilenceChange { add, lift }: SilenceChange,
    now: Timestamp,
) -> Result<(), Failure> {
    if asked.is_member && (add.again || lift.again) {
        want_no_more(sql, asked.person, add.again).await?;
    }
    if add.partner {
        stop_partner(sql, asked, now).await?;
    } else if lift.partner {
        let go_on = "DELETE FROM stopped_partners
                     WHERE mailbox = $1 AND coalesce(partner_id, 0) = coalesce(CAST($2 AS BIGINT), 0)";
        sql.execute(go_on, values![&asked.mailbox, asked.source]).await?;
    }
    if add.mailbox {
        silence_mailbox(sql, &asked.mailbox, now).await?;
    } else if lift.mailbox {
        outbox::lift_silence(sql, &asked.mailbox).await?;
    }
    Ok(())
}

/// Stops mail to the mailbox that the same source asks for.
async fn stop_partner(sql: &mut dyn Sql, asked: &AskedSignUp, now: Timestamp) -> Result<(), Failure> {
    let stop = "INSERT INTO stopped_partners (mailbox, partner_id, stopped_at) VALUES ($1, $2, $3)
                ON CONFLICT (mailbox, coalesce(partner_id, 0)) DO UPDATE SET stopped_at = excluded.stopped_at";
    sql.execute(stop, values![&asked.mailbox, asked.source, now]).await.map(|_| ())
}

async fn want_no_more(sql: &mut dyn Sql, person: i64, already_member: bool) -> Result<(), Failure> {
    switch_mail(sql, person, &[(MailKind::AlreadyMember, !already_member)]).await.map(|_| ())
}

/// An existing silence keeps its promised end; this does not extend it.
async fn silence_mailbox(sql: &mut dyn Sql, mailbox: &str, now: Timestamp) -> Result<(), Failure> {
    let silent = "SELECT 1 FROM mailboxes WHERE mailbox = $1 AND suppressed_until > $2";
    match sql.row(silent, values![mailbox, now], |_| Ok(())).await? {
        Some(()) => Ok(()),
        None => outbox::suppress(sql, mailbox, now.plus(SUPPRESSED_FOR)).await,
    }
}
