//! A member's own page: what is stored about them, and what they change there themselves.

use crate::domain::answers::Answers;
use crate::domain::language::Language;
use crate::domain::mail::{MailKind, PersonRef};
use crate::domain::person::PersonDetails;
use crate::domain::secret::session::{Nonce, SessionCookie};
use crate::domain::time::Timestamp;
use crate::mail::sources::use_once;
use crate::membership::answers::{answers_of, set_answers, switch_mail};
use crate::people::records::brief_file_of;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// What is stored about the session's holder. Of their related records, only the last sign-ups and the one they joined with.
pub struct FindOwn(pub SessionCookie, pub Timestamp);

impl Unit for FindOwn {
    type Done = Option<PersonDetails>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(session, now) = self;
        let find = "SELECT id FROM people WHERE session = $1 AND erased_at IS NULL AND state <> 'invited'
                    AND NOT EXISTS (SELECT 1 FROM used_once WHERE name = $2)";
        let person = sql.value(find, values![session.nonce.as_str(), &session.name]).await?;
        let Some(person) = person else { return Ok(None) };
        brief_file_of(sql, person, *now).await
    }
}

/// Sets whether the session's holder wants these kinds of mail; other kinds stay as they are. False if no one has the session.
pub struct ChooseMail(pub Nonce, pub Vec<(MailKind, bool)>);

impl Unit for ChooseMail {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(session, chosen) = self;
        let find = "SELECT id FROM people WHERE session = $1 AND erased_at IS NULL";
        let Some(person) = sql.value(find, values![session.as_str()]).await? else { return Ok(false) };
        switch_mail(sql, person, chosen).await
    }
}

/// Switches a kind of mail off for the person of a link; false if there is no such person.
pub struct Unsubscribe(pub PersonRef, pub MailKind);

impl Unit for Unsubscribe {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(person, kind) = self;
        let find = "SELECT 1 FROM people WHERE id = $1 AND created_at = $2 AND erased_at IS NULL";
        let is_there = sql.exists(find, values![person.id, person.created_at]).await?;
        Ok(is_there && switch_mail(sql, person.id, &[(*kind, false)]).await?)
    }
}

/// Whether the person of a link exists and wants no mail of a kind.
pub struct IsUnsubscribed(pub PersonRef, pub MailKind);

impl Unit for IsUnsubscribed {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(person, kind) = self;
        let find = "SELECT 1 FROM people WHERE id = $1 AND created_at = $2 AND erased_at IS NULL
                    AND ',' || unwanted_mail || ',' LIKE $3";
        let kind = format!("%,{},%", kind.name());
        sql.exists(find, values![person.id, person.created_at, &kind]).await
    }
}

/// Sets the language that the session's holder reads; false if no one has the session.
pub struct ChooseLanguage(pub Nonce, pub Language);

impl Unit for ChooseLanguage {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(session, language) = self;
        let choose = "UPDATE people SET language = $2 WHERE session = $1 AND erased_at IS NULL";
        Ok(sql.execute(choose, values![session.as_str(), language.code()]).await? == 1)
    }
}

/// Ends the session of one browser: its cookie stops working.
pub struct EndSession(pub SessionCookie);

impl Unit for EndSession {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        use_once(sql, &self.0.name, self.0.ends_at).await.map(|_| ())
    }
}

/// Ends every session of this session's holder, by giving them another nonce; false if no one has it.
pub struct EndSessions(pub Nonce, pub Nonce);

impl Unit for EndSessions {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(session, another) = self;
        let end = "UPDATE people SET session = $2 WHERE session = $1";
        Ok(sql.execute(end, values![session.as_str(), another.as_str()]).await? == 1)
    }
}

/// Replaces a member's answers; false if no member has the session.
pub struct ChangeAnswers {
    pub session: Nonce,
    pub answers: Answers,
    pub now: Timestamp,
}

impl Unit for ChangeAnswers {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Some(member) = answers_of(sql, &self.session).await? else { return Ok(false) };
        set_answers(sql, &member, &self.answers, self.now).await?;
        Ok(true)
    }
}
