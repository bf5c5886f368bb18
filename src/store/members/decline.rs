//! "This wasn't me": withdrawing a sign-up, taking that back, and what a mailbox wants not to be sent; as SQL.

use super::{Confirm, mailbox_of, state_at};
use crate::domain::person::UnwantedMail;
use crate::domain::sign_up::{
    Confirmation, DecidedHow, Declining, SUPPRESSED_FOR, SeenPage, SignUpId, SignUpState, Silence,
};
use crate::domain::time::Timestamp;
use crate::store::doors::{self, AtDoor};
use crate::store::outbox;
use crate::store::sql::{Failure, Row, Sql, Unit, values};

/// A sign-up and its person, as whoever holds the mail's link decides about them.
struct AskedSignUp {
    mailbox: String,
    person: i64,
    is_member: bool,
    state: SignUpState,
    /// The partner, or nobody for the form.
    door: String,
}

/// Everything that is decided about one mailbox waits its turn.
async fn look(sql: &mut impl Sql, sign_up: SignUpId, now: Timestamp) -> Result<Option<AskedSignUp>, Failure> {
    let Some(mailbox) = mailbox_of(sql, sign_up).await? else { return Ok(None) };
    sql.lock(&mailbox).await?;
    let look = concat!(
        "SELECT ",
        state_at!("$2"),
        ", s.partner, s.person_id, (SELECT p.state = 'member' FROM people p WHERE p.id = s.person_id)
           FROM sign_ups s WHERE s.id = $1 FOR UPDATE"
    );
    let asked = |row: &Row<'_>| {
        let (state, mailbox) = (row.parsed(0, SignUpState::from_name)?, mailbox.clone());
        Ok(AskedSignUp { mailbox, person: row.get(2)?, is_member: row.get(3)?, state, door: row.get(1)? })
    };
    sql.row(look, values![sign_up.0, now], asked).await
}

pub(super) struct Decline {
    pub sign_up: SignUpId,
    pub how: DecidedHow,
    /// None where the reader said nothing of it.
    pub silence: Option<Silence>,
    pub now: Timestamp,
}

impl Unit for Decline {
    type Done = Declining;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Declining, Failure> {
        let Some(asked) = look(sql, self.sign_up, self.now).await? else { return Ok(Declining::Unknown) };
        let declining = match asked.state {
            SignUpState::Confirmed => Declining::Confirmed,
            SignUpState::Expired => Declining::Expired,
            SignUpState::Declined => Declining::Declined,
            SignUpState::Pending => {
                super::decide(sql, self.sign_up, SignUpState::Declined, self.how, self.now).await?;
                outbox::forget(sql, self.sign_up).await?;
                Declining::Declined
            }
        };
        match (self.silence, self.how) {
            (Some(silence), _) => keep_silent(sql, &asked, silence, self.now).await?,
            // A mail program's own button means no more of these: of a member's, the kind; else all of them.
            (None, DecidedHow::OneClick) if asked.is_member => want_no_more(sql, asked.person, true).await?,
            (None, DecidedHow::OneClick) => silence_mailbox(sql, &asked.mailbox, self.now).await?,
            (None, _) => {}
        }
        // Last: others wait for this row.
        if asked.state == SignUpState::Pending {
            doors::count(sql, &asked.door, AtDoor::Declined, self.now).await?;
        }
        Ok(declining)
    }
}

/// Says what is not to be sent, and nothing else; false if there is no such sign-up.
pub(super) struct ChooseSilence {
    pub sign_up: SignUpId,
    pub silence: Silence,
    pub now: Timestamp,
}

impl Unit for ChooseSilence {
    type Done = bool;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<bool, Failure> {
        let Some(asked) = look(sql, self.sign_up, self.now).await? else { return Ok(false) };
        keep_silent(sql, &asked, self.silence, self.now).await?;
        Ok(true)
    }
}

/// "It was me after all": what was declined is confirmed, and whatever kept mail from the mailbox is lifted.
pub(super) struct TakeBack {
    pub sign_up: SignUpId,
    pub seen: SeenPage,
    pub now: Timestamp,
}

impl Unit for TakeBack {
    type Done = Confirmation;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Confirmation, Failure> {
        let Some(asked) = look(sql, self.sign_up, self.now).await? else { return Ok(Confirmation::Unknown) };
        let declined = "SELECT decided_at FROM sign_ups WHERE id = $1 AND state = 'declined' AND expires_at > $2";
        let declined: Option<Timestamp> =
            sql.row(declined, values![self.sign_up.0, self.now], |row| row.get(0)).await?;
        let Some(declined_at) = declined else {
            return Ok(match asked.state {
                SignUpState::Confirmed => Confirmation::AlreadyMember,
                SignUpState::Pending => Confirmation::Changed,
                SignUpState::Expired | SignUpState::Declined => Confirmation::Expired,
            });
        };
        let heard = Silence { again: false, partner: false, mailbox: false };
        keep_silent(sql, &asked, heard, self.now).await?;
        let confirm = Confirm { sign_up: self.sign_up, seen: self.seen.clone(), taking_back: true, now: self.now };
        // Before the count of members, for which every confirmation of the union waits.
        doors::uncount_declined(sql, &asked.door, declined_at).await?;
        confirm.apply(sql).await
    }
}

/// Brings what is not to be sent to what the reader wants.
async fn keep_silent(sql: &mut impl Sql, asked: &AskedSignUp, wanted: Silence, now: Timestamp) -> Result<(), Failure> {
    if asked.is_member {
        want_no_more(sql, asked.person, wanted.again).await?;
    }
    if wanted.partner && !asked.door.is_empty() {
        let stop = "INSERT INTO stopped_partners (mailbox, partner, stopped_at) VALUES ($1, $2, $3)
                    ON CONFLICT (mailbox, partner) DO UPDATE SET stopped_at = excluded.stopped_at";
        sql.execute(stop, values![&asked.mailbox, &asked.door, now]).await?;
    } else {
        let go_on = "DELETE FROM stopped_partners WHERE mailbox = $1 AND partner = $2";
        sql.execute(go_on, values![&asked.mailbox, &asked.door]).await?;
    }
    if wanted.mailbox {
        return silence_mailbox(sql, &asked.mailbox, now).await;
    }
    let lift = "UPDATE mailboxes SET suppressed_until = NULL WHERE mailbox = $1 AND suppressed_until IS NOT NULL";
    sql.execute(lift, values![&asked.mailbox]).await.map(|_| ())
}

async fn want_no_more(sql: &mut impl Sql, person: i64, already_member: bool) -> Result<(), Failure> {
    let unwanted = UnwantedMail { already_member };
    let choose = "UPDATE people SET unwanted_mail = $2 WHERE id = $1 AND unwanted_mail <> $2";
    sql.execute(choose, values![person, unwanted.names()]).await.map(|_| ())
}

/// A silence that is there already stays as long as it was promised, and no longer.
async fn silence_mailbox(sql: &mut impl Sql, mailbox: &str, now: Timestamp) -> Result<(), Failure> {
    let silent = "SELECT 1 FROM mailboxes WHERE mailbox = $1 AND suppressed_until > $2";
    match sql.row(silent, values![mailbox, now], |_| Ok(())).await? {
        Some(()) => Ok(()),
        None => outbox::suppress(sql, mailbox, now.plus(SUPPRESSED_FOR)).await,
    }
}
