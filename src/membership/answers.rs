//! What members answered and which mail they want: read, changed, and counted as demand.

use std::collections::BTreeMap;

use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::MailKind;
use crate::domain::mail::choices::KeptChoices;
use crate::domain::person::Answers;
use crate::domain::secret::session::Nonce;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::membership::records::{answers_now, joined_by};
use crate::store::sql::{Failure, Row, Sql, values};

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
    let member = concat!(
        "SELECT p.id, ",
        answers_now!(),
        " FROM people p ",
        joined_by!(),
        " WHERE p.session = $1 AND p.state = 'member'"
    );
    let read = |row: &Row<'_>| {
        let answers = Answers {
            us_state: row.get::<Option<&str>>("us_state")?.and_then(UsState::from_code),
            categories: CategorySet::from_slugs(row.get("categories")?),
            comments: row.get("comments")?,
        };
        Ok(AnsweredMember { person: row.get("id")?, answers })
    };
    sql.row(member, values![session.as_str()], read).await
}

/// Replaces a member's answers, in the figures too.
pub(crate) async fn set_answers(
    sql: &mut dyn Sql,
    before: &AnsweredMember,
    answers: &Answers,
    now: Timestamp,
) -> Result<(), Failure> {
    let code = |answers: &Answers| answers.us_state.map(UsState::code);
    let change = "UPDATE people SET own_us_state = $2, own_categories = $3, own_comments = nullif($4, ''), answered_at = $5 WHERE id = $1";
    let slugs = answers.categories.to_string();
    sql.execute(change, values![before.person, code(answers), &slugs, &answers.comments, now]).await?;
    let mut demand = BTreeMap::new();
    add_wishes(&mut demand, code(&before.answers).unwrap_or_default(), before.answers.categories, -1);
    add_wishes(&mut demand, code(answers).unwrap_or_default(), answers.categories, 1);
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
