//! What an operator does for one person who writes to the union: their data as a file, the end of their membership, mail to them again.

use hyper::Request;
use hyper::header::{CONTENT_DISPOSITION, HeaderValue};

use super::frame::OperatorSection;
use super::people::{given_up, look_at};
use super::question::Question;
use super::session::OperatorVisit;
use crate::domain::email::EmailAddress;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::mail::outbox::RetryMail;
use crate::operator::mail::retried;
use crate::operator::person::{left, lifted};
use crate::people::export::MemberExport;
use crate::people::records::FindPersonBriefly;
use crate::site::own_page::session::keep_apart;
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::People;

const NOBODY: &str = "Nobody has that address: they were erased meanwhile, or never signed up.";

/// The form that was sent, and whose address it has.
async fn take<'a>(
    visit: Visit<'a>,
    request: Request<SentBody<'_>>,
) -> PageResult<(OperatorVisit<'a>, Vec<u8>, EmailAddress)> {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    match EmailAddress::kept(field(&fields, "email").unwrap_or_default().trim()) {
        Ok(email) => Ok((found, fields, email)),
        Err(_) => Err(found.refuse(NOBODY).into()),
    }
}

/// Goes on once the operator is sure.
fn require_sure(
    found: &OperatorVisit<'_>,
    fields: &[u8],
    email: &EmailAddress,
    (title, action, button): (&str, &str, &str),
    says: &[&str],
) -> PageResult<()> {
    let facts = [(String::new(), vec![("Person".to_owned(), email.as_typed().to_owned())])];
    let question = Question {
        title,
        facts: &facts,
        says: &says.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(),
        action,
        fields: &[("email", email.as_typed())],
        button,
        ..Question::default()
    };
    found.require_sure(&question, fields)
}

/// Everything that is kept of them, as they would download it themselves.
pub async fn export(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, _, email) = take(visit, request).await?;
    let now = visit.now.time;
    let is_there = look_at(&found, "members export", &email).await?.is_some_and(|file| file.person.erased_at.is_none());
    let act = found.who.act("members export", String::new(), now);
    let file = match is_there {
        true => found.stored(found.access.people(act).find(&email, now).await)?,
        false => None,
    };
    let Some(file) = file else { return Ok(found.refuse(NOBODY)) };
    let document = MemberExport::of(&file, &visit.app().union, now);
    let mut answer = Answer::json(hyper::StatusCode::OK, serde_json::to_vec_pretty(&document).unwrap_or_default());
    answer.set(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"member-export.json\""));
    keep_apart(&mut answer);
    Ok(answer)
}

pub async fn leave(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields, email) = take(visit, request).await?;
    let says = [
        "They are no longer a member at once, and get no more mail about campaigns.",
        "What is kept about them stays, with their referral code. They can come back by signing up again.",
    ];
    let words = ("End this membership?", "/operator/people/leave", "End it");
    require_sure(&found, &fields, &email, words, &says)?;
    let now = visit.now.time;
    let act = found.who.act("members leave", String::new(), now);
    let leaving = found.stored(found.access.people(act).leave(&email, now).await)?;
    Ok(match left(&leaving) {
        Some(lines) => found.done("Membership", &lines),
        None => found.refuse(NOBODY),
    })
}

pub async fn unsuppress(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields, email) = take(visit, request).await?;
    let says = [
        "Lifts whatever keeps mail from them: that they asked for none, a complaint, a bounce, partners whose mail was stopped.",
        "Do it only if the person asks for it.",
    ];
    let words = ("Let mail go to this person again?", "/operator/people/unsuppress", "Let mail go to them");
    require_sure(&found, &fields, &email, words, &says)?;
    let act = found.who.act("members unsuppress", String::new(), visit.now.time);
    Ok(match found.stored(found.access.people(act).unsuppress(&email).await)? {
        Some(was) => found.done("Mail to them", &lifted(was)),
        None => found.refuse(NOBODY),
    })
}

/// Tries their mail again that was given up.
pub async fn retry_mail(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, _, email) = take(visit, request).await?;
    let now = visit.now.time;
    let file = found.stored(found.operator().ask(FindPersonBriefly(email.normalized(), now)).await)?;
    let Some(file) = file else { return Ok(found.refuse(NOBODY)) };
    let mut count = 0;
    for mail in given_up(&file) {
        let act = found.acting("mail retry", format!("mail {}", mail.0));
        count += u64::from(found.stored(act.run(RetryMail(mail, now)).await)?);
    }
    visit.app().core().mail.notify();
    Ok(found.done("Mail to them", &[retried(count)]))
}
