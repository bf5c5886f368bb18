//! What members answered and which mail they want: read, changed, and counted as demand.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::domain::answers::Answers;
use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::MailKind;
use crate::domain::mail::choices::KeptChoices;
use crate::domain::secret::session::Nonce;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::membership::records::{answer_now, joined_by};
use crate::membership::sign_up::{answers, each_answer};
use crate::store::sql::{Failure, Row, Sql, Value, values};

/// A member and their answers, which the figures count.
pub(crate) struct AnsweredMember {
    pub person: i64,
    pub answers: Answers,
}

/// The member who has the session, locked until this unit ends: two changes at once, or a change and a departure, would subtract
/// the same answers from the figures twice.
pub(crate) async fn answers_of(sql: &mut dyn Sql, session: &Nonce) -> Result<Option<AnsweredMember>, Failure> {
    let mailbox = "SELECT mailbox FROM people WHERE session = $1";
    let mailbox: Option<String> = sql.row(mailbox, values![session.as_str()], |row| row.get(0)).await?;
    let Some(mailbox) = mailbox else { return Ok(None) };
    sql.lock(&mailbox).await?;
    static MEMBER: LazyLock<String> = LazyLock::new(|| {
        let (now, joined_by) = (each_answer(answer_now!("{}")), joined_by!());
        format!("SELECT p.id, {now} FROM people p {joined_by} WHERE p.session = $1 AND p.state = 'member'")
    });
    let read = |row: &Row<'_>| Ok(AnsweredMember { person: row.get("id")?, answers: answers(row)? });
    sql.row(&MEMBER, values![session.as_str()], read).await
}

/// Replaces a member's answers, in the figures too.
pub(crate) async fn set_answers(
    sql: &mut dyn Sql,
    before: &AnsweredMember,
    answers: &Answers,
    now: Timestamp,
) -> Result<(), Failure> {
    static CHANGE: LazyLock<String> = LazyLock::new(|| {
        let own: Vec<_> = (3..).zip(Answers::NAMES).map(|(number, name)| format!("own_{name} = ${number}")).collect();
        format!("UPDATE people SET answered_at = $2, {} WHERE id = $1", own.join(", "))
    });
    let texts = answers.texts();
    let own = texts.iter().map(|text| Value::from(text.as_deref()));
    let written: Vec<_> = [before.person.into(), now.into()].into_iter().chain(own).collect();
    sql.execute(&CHANGE, &written).await?;
    let mut demand = BTreeMap::new();
    for (answers, change) in [(&before.answers, -1), (answers, 1)] {
        let us_state = answers.us_state.map(UsState::code).unwrap_or_default();
        add_wishes(&mut demand, us_state, answers.chosen(), change);
    }
    demand.retain(|_, change| *change != 0);
    add_demand(sql, &demand).await
}

/// Switches kinds of mail on or off for a person; false if the person no longer exists.
pub(crate) async fn switch_mail(sql: &mut dyn Sql, person: i64, chosen: &[(MailKind, bool)]) -> Result<bool, Failure> {
    let kept = "SELECT unwanted_mail, wanted_mail FROM people WHERE id = $1 FOR UPDATE";
    let read = |row: &Row<'_>| Ok(KeptChoices { unwanted: row.get("unwanted_mail")?, wanted: row.get("wanted_mail")? });
    let Some(before) = sql.row(kept, values![person], read).await? else { return Ok(false) };
    let mut after = before.clone();
    chosen.iter().for_each(|(kind, wants)| after.choose(*kind, *wants));
    if after != before {
        let choose = "UPDATE people SET unwanted_mail = $2, wanted_mail = $3 WHERE id = $1";
        sql.execute(choose, values![person, &after.unwanted, &after.wanted]).await?;
    }
    Ok(true)
}

/// Adds in the order of the names, so that two concurrent units never deadlock.
pub(crate) async fn add_demand(sql: &mut dyn Sql, demand: &DemandChanges) -> Result<(), Failure> {
    for ((category, us_state), change) in demand {
        let add = "INSERT INTO demand (category, us_state, members) VALUES ($1, $2, $3)
                   ON CONFLICT (category, us_state) DO UPDATE SET members = demand.members + excluded.members";
        sql.execute(add, values![category, us_state, *change]).await?;
    }
    Ok(())
}

/// Adds one person's wishes to the demand, or takes them out (`change` is 1 or -1).
pub(crate) fn add_wishes(demand: &mut DemandChanges, us_state: &str, categories: CategorySet, change: i64) {
    for category in categories.iter().map(|category| category.slug()).chain([""]) {
        *demand.entry((category.to_owned(), us_state.to_owned())).or_default() += change;
    }
}

/// By category and state.
pub(crate) type DemandChanges = BTreeMap<(String, String), i64>;
