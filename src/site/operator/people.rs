//! `/operator/people`: looks somebody up, which is audited, and erases them; `person.rs` has what else is done for them. Addresses are sent by POST alone: no address of a page
//! holds one.

use askama::Template;
use hyper::{Request, StatusCode};

use super::frame::{OperatorFrame, OperatorSection, render};
use super::question::is_sure;
use super::session::OperatorVisit;
use crate::domain::email::EmailAddress;
use crate::domain::figure::money;
use crate::domain::mail::MailId;
use crate::domain::person::{PersonDetails, PersonState, Waiver};
use crate::domain::referral::ReferralCode;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::operator::person::lines;
use crate::people::NotErased;
use crate::people::records::{FindPeople, FindPersonBriefly};
use crate::site::{PageResult, Visit, field, field_is};

const HERE: OperatorSection = OperatorSection::People;

const NOBODY: &str = "Nobody has that address, code or account. An address has to be whole.";

#[derive(Template)]
#[template(path = "operator/people.html")]
struct PeoplePage<'a> {
    frame: OperatorFrame<'a>,
    typed: &'a str,
    problem: Option<&'a str>,
    person: Option<ShownPerson>,
}

struct ShownPerson {
    /// Their address; empty once they are erased.
    email: String,
    is_member: bool,
    /// Whether mail of theirs was given up.
    has_given_up: bool,
    /// Headings, each with its lines.
    parts: Vec<(String, Vec<PersonLine>)>,
}

struct PersonLine {
    text: String,
    /// Whether it says more of the line before it.
    is_under: bool,
}

impl ShownPerson {
    fn of(file: &PersonDetails, found: &OperatorVisit<'_>) -> Self {
        let mut parts: Vec<(String, Vec<PersonLine>)> = Vec::new();
        for line in
            lines(file, found.visit.now.time, found.access.write_remedy).into_iter().filter(|line| !line.is_empty())
        {
            match (line.strip_prefix("  "), parts.last_mut()) {
                (Some(text), Some((_, under))) => {
                    under.push(PersonLine { text: text.trim_start().to_owned(), is_under: text.starts_with(' ') });
                }
                _ => parts.push((line, Vec::new())),
            }
        }
        Self {
            email: file.person.email.clone(),
            is_member: file.person.state == PersonState::Member,
            has_given_up: given_up(file).next().is_some(),
            parts,
        }
    }
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    Ok(people_page(&found, StatusCode::OK, "", None, None))
}

fn people_page(
    found: &OperatorVisit<'_>,
    status: StatusCode,
    typed: &str,
    problem: Option<&str>,
    person: Option<ShownPerson>,
) -> Answer {
    let page = PeoplePage { frame: found.frame(), typed, problem, person };
    found.page_with(status, render(&page))
}

/// Looks somebody up by their whole address, their code or its link, or their account.
pub async fn look_up(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let typed = field(&fields, "text").unwrap_or_default().trim().to_owned();
    let again = |problem| Ok(people_page(&found, StatusCode::BAD_REQUEST, &typed, Some(problem), None));
    if typed.is_empty() {
        return again("Type an address, a referral code or its link, or an account of the audit log.");
    }
    let Some(email) = address_of(&found, &typed).await? else { return again(NOBODY) };
    match look_at(&found, "members show", &email).await? {
        Some(file) => Ok(people_page(&found, StatusCode::OK, "", None, Some(ShownPerson::of(&file, &found)))),
        None => again(NOBODY),
    }
}

/// What is kept of somebody. The audit log has that it was looked at, also where there is nobody.
pub(super) async fn look_at(
    found: &OperatorVisit<'_>,
    command: &'static str,
    email: &EmailAddress,
) -> PageResult<Option<PersonDetails>> {
    let now = found.visit.now.time;
    let act = found.who.act(command, String::new(), now);
    let people = found.access.people(act.clone());
    found.stored(found.operator().look_up(&people, act, email, now).await)
}

/// Their mail that was tried for a day and not sent.
pub(super) fn given_up(file: &PersonDetails) -> impl Iterator<Item = MailId> {
    let mails = file.sign_ups.iter().filter_map(|sign_up| sign_up.mail.as_ref());
    mails.filter(|mail| mail.given_up_at.is_some()).map(|mail| mail.id)
}

/// The address of whoever is meant; none if nobody is.
pub(super) async fn address_of(found: &OperatorVisit<'_>, typed: &str) -> PageResult<Option<EmailAddress>> {
    if typed.contains('@') {
        return Ok(EmailAddress::kept(typed).ok());
    }
    let text = ReferralCode::from_pasted(typed).map_or_else(|| typed.to_lowercase(), |code| code.to_string());
    let people = found.stored(found.operator().ask(FindPeople(text.clone(), 1)).await)?;
    let is_meant = |person: &crate::domain::person::PersonRecord| {
        person.code.as_str() == text || person.account.as_ref().is_some_and(|account| account.as_str() == text)
    };
    Ok(people.into_iter().find(is_meant).and_then(|person| EmailAddress::kept(&person.email).ok()))
}

#[derive(Template)]
#[template(path = "operator/erase.html")]
struct EraseQuestionPage<'a> {
    frame: OperatorFrame<'a>,
    email: &'a str,
    is_member: bool,
    due_cents: i64,
    problem: Option<&'a str>,
}

/// Asks, and erases once the address was typed again.
pub async fn erase(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (now, email) = (visit.now.time, field(&fields, "email").unwrap_or_default());
    let nobody = || found.refuse("Nobody has that address: they were erased meanwhile, or never signed up.");
    let Ok(email) = EmailAddress::kept(email.trim()) else { return Ok(nobody()) };
    let typed = field(&fields, "typed").unwrap_or_default();
    let is_typed = EmailAddress::kept(typed.trim()).is_ok_and(|typed| typed.normalized() == email.normalized());
    let file = found.stored(found.operator().ask(FindPersonBriefly(email.normalized(), now)).await)?;
    // Whatever this page says of somebody is looked at, unless they are erased by it, which the log has then.
    if file.is_none() || !is_sure(&fields) || !is_typed {
        look_at(&found, "members show", &email).await?;
    }
    let Some(file) = file else { return Ok(nobody()) };
    // What a full group has earned them is due, whether the worker has come to it or not.
    found.stored(found.operator().form_groups(file.person.id, now).await)?;
    let file = found.stored(found.operator().ask(FindPersonBriefly(email.normalized(), now)).await)?.unwrap_or(file);
    if !is_sure(&fields) {
        return Ok(ask(&found, StatusCode::OK, &file, None));
    }
    if !is_typed {
        let problem = "Nothing was erased: the address that was typed is another. Type it as it stands above.";
        return Ok(ask(&found, StatusCode::BAD_REQUEST, &file, Some(problem)));
    }
    // The amount that they read is given up, and no more.
    let waives = field_is(&fields, "waive", "yes");
    let most_cents = field(&fields, "due-cents").and_then(|cents| cents.parse().ok()).unwrap_or(0);
    let command = if waives { "members erase --waive-rewards" } else { "members erase" };
    let act = found.who.act(command, String::new(), now);
    let waiver = waives.then(|| Waiver { by: act.who.clone(), most_cents });
    match found.operator().erase_person(&found.access.people(act), &email, waiver, now).await {
        Ok(Some(erased)) => Ok(found.done("Erased", &erased.lines(found.access.write_remedy))),
        Ok(None) => Ok(nobody()),
        Err(NotErased::RewardsDue(_)) => {
            look_at(&found, "members show", &email).await?;
            let file =
                found.stored(found.operator().ask(FindPersonBriefly(email.normalized(), now)).await)?.unwrap_or(file);
            let problem =
                "Nothing was erased: rewards are due to them. Pay them first, or check that they give them up.";
            Ok(ask(&found, StatusCode::CONFLICT, &file, Some(problem)))
        }
        Err(NotErased::Store(error)) => found.stored(Err(error)),
        Err(NotErased::Log(error)) => {
            let why = format!("The list of erasures beside the database cannot be written: {error}.");
            Ok(found.refuse(&why))
        }
    }
}

fn ask(found: &OperatorVisit<'_>, status: StatusCode, file: &PersonDetails, problem: Option<&str>) -> Answer {
    let page = EraseQuestionPage {
        frame: found.frame(),
        email: &file.person.email,
        is_member: file.person.state == PersonState::Member,
        due_cents: file.rewards.due_cents,
        problem,
    };
    found.page_with(status, render(&page))
}
