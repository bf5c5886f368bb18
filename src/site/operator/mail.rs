//! `/operator/mail`: mail that is held, by who asked for it, to be sent or deleted.

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::question::Question;
use super::session::OperatorVisit;
use crate::domain::figure::{counted, grouped};
use crate::domain::mail::HeldMail;
use crate::domain::mail::budget::{FORM, Reputation, SourceStatus};
use crate::http::request::body::SentBody;
use crate::mail::outbox::{DropHeld, ReleaseHeld};
use crate::mail::sources::ListSourceStatuses;
use crate::operator::partner;
use crate::partners::records::ListPartners;
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Mail;

/// Sources that a page lists; those with held mail come first.
const SOURCES_SHOWN: usize = 200;

#[derive(Template)]
#[template(path = "operator/mail.html")]
struct MailPage<'a> {
    frame: OperatorFrame<'a>,
    sources: &'a [SourceStatus],
    more: usize,
}

fn name(status: &SourceStatus) -> &str {
    if status.source == FORM { "The join form" } else { &status.source }
}

const FIGURES: [&str; 5] = ["Mailed, 7 days", "Confirmed", "Declined", "Bounced", "Complaints"];

/// What the mail of a source came to in seven days.
fn figures(status: &SourceStatus) -> [String; 5] {
    let Reputation { asked, confirmed, declined, bounced, complained, .. } = status.reputation;
    [asked, confirmed, declined, bounced, complained].map(grouped)
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let mut statuses = found.stored(found.operator().ask(ListSourceStatuses(visit.now.time)).await)?;
    statuses.sort_by_key(|status| std::cmp::Reverse(status.held));
    let more = statuses.len().saturating_sub(SOURCES_SHOWN);
    statuses.truncate(SOURCES_SHOWN);
    Ok(found.page(render(&MailPage { frame: found.frame(), sources: &statuses, more })))
}

/// Sends or deletes what is held of one source. Deleting is asked about first.
pub async fn decide(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let source = field(&fields, "source").unwrap_or_default();
    let (which, about) = if source == FORM {
        (HeldMail::OfTheForm, "the form".to_owned())
    } else {
        let partners = found.stored(found.operator().ask(ListPartners).await)?;
        match partners.into_iter().find(|partner| partner.name == source) {
            Some(partner) if partner.suspended_at.is_some() => {
                let why = "The partner is suspended: its mail waits until that is lifted on the page Partners.";
                return Ok(found.refuse(why));
            }
            Some(partner) => (HeldMail::OfPartner(partner.id), format!("partner {}", partner.name)),
            None => return Ok(found.refuse("There is no such source. Load the page Mail again.")),
        }
    };
    let now = visit.now.time;
    let done = match field(&fields, "act").as_deref() {
        Some("release") => {
            let mails = found.acting("mail release", about).run(ReleaseHeld(which, now)).await;
            partner::released(found.stored(mails)?)
        }
        Some("drop") => {
            let statuses = found.stored(found.operator().ask(ListSourceStatuses(now)).await)?;
            let status = statuses.into_iter().find(|status| status.source == source).unwrap_or_default();
            let at_least = if status.held_in_part { "at least " } else { "" };
            let says = [
                format!(
                    "To be deleted: {at_least}{} held for {about}. These people are not asked to confirm.",
                    counted(status.held, "mail")
                ),
                "Their sign-ups end. Nobody is told. It cannot be undone.".to_owned(),
            ];
            let question = Question {
                title: "Delete held mail?",
                says: &says,
                action: "/operator/mail",
                fields: &[("act", "drop"), ("source", &source)],
                about: "",
                button: "Delete it",
                ..Question::default()
            };
            // No more is deleted than they read.
            found.require_sure(&question, &fields)?;
            let mails = found.acting("mail drop", about).run(DropHeld(which, now)).await;
            partner::dropped(found.stored(mails)?)
        }
        _ => return Ok(found.refuse("The form says neither release nor drop.")),
    };
    found.access.findings.forget().await;
    Ok(found.done("Held mail", &[done]))
}
