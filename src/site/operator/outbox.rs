//! `/operator/mail/outbox`: the mail that waits, some at a time and without addresses, and why; to be tried again.

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::previews::called;
use super::session::{OperatorVisit, Worked};
use crate::domain::mail::{MailId, WaitingMail};
use crate::http::request::body::SentBody;
use crate::mail::outbox::{ListMailAfter, RetryMail};
use crate::operator::mail::{read_domain, retried};
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Mail;

const PATH: &str = "/operator/mail/outbox";

/// Mails of a page.
const AT_ONCE: u32 = 50;

#[derive(Template)]
#[template(path = "operator/outbox.html")]
struct OutboxPage<'a> {
    frame: OperatorFrame<'a>,
    mails: &'a [WaitingMail],
    /// Where the next page is.
    next: Option<String>,
}

/// When it goes, or why it does not.
fn state(mail: &WaitingMail) -> String {
    match (mail.given_up_at, mail.held_at) {
        (Some(at), _) => format!("given up at {at}"),
        (None, Some(at)) => format!("held since {at}"),
        (None, None) => format!("waits, next try at {}", mail.send_after),
    }
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let after = field(query, "after").and_then(|text| text.parse().ok()).unwrap_or(0);
    // One more than is shown: whether there are further ones.
    let mut mails = found.stored(found.operator().ask(ListMailAfter(MailId(after), AT_ONCE + 1)).await)?;
    let has_more = mails.len() > AT_ONCE as usize;
    mails.truncate(AT_ONCE as usize);
    let next = mails.last().filter(|_| has_more).map(|last| format!("{PATH}?after={}", last.id.0));
    Ok(found.page(render(&OutboxPage { frame: found.frame(), mails: &mails, next })))
}

/// Tries one mail again, or all that failed, or what failed and goes to a domain.
pub async fn retry(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let now = visit.now.time;
    let says = match field(&fields, "mail") {
        Some(id) => {
            let Ok(id) = id.parse::<i64>() else {
                return Ok(found.refuse("The form names no mail. Load the page again."));
            };
            let act = found.acting("mail retry", format!("mail {id}"));
            match found.stored(act.run(RetryMail(MailId(id), now)).await)? {
                true => format!("Mail {id} is tried again now."),
                false => format!("Mail {id} is no longer in the outbox: it was sent, or ended with its sign-up."),
            }
        }
        None => {
            let Some(domain) = field(&fields, "domain") else {
                return Ok(found.refuse("The form names neither a mail nor a domain. Load the page again."));
            };
            let domain = match domain.trim() {
                "" => None,
                text => match read_domain(text) {
                    Ok(domain) => Some(domain),
                    Err(why) => return Ok(found.refuse(&format!("The domain cannot be read: {why}."))),
                },
            };
            let (operator, who) = (found.operator().clone(), found.who.clone());
            let retry =
                async move { operator.retry_failed_mail(|about| who.act("mail retry", about, now), domain, now).await };
            match found.work("not all mail that failed is tried again", retry).await {
                Worked::Done(count) => retried(count),
                Worked::Failed(why) => format!("Not all of it is tried again: {why}. Try again."),
                Worked::GoesOn => "It becomes due bit by bit.".to_owned(),
            }
        }
    };
    visit.app().core().mail.notify();
    found.access.findings.forget().await;
    Ok(found.done_at(PATH, "Tried again", &[says]))
}
