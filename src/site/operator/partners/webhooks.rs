//! `/operator/partners/{partner}/webhooks`: a partner's webhook endpoints, to test, to enable, and to send again what one missed.

use askama::Template;
use hyper::Request;

use super::{HERE, find, path};
use crate::domain::figure::{capped, counted};
use crate::domain::partner::PartnerRecord;
use crate::domain::partner::endpoint::{EndpointId, ListedEndpoint};
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::operator::partner::MAX_COUNTED;
use crate::partners::endpoints::ListEndpoints;
use crate::partners::self_service::MAX_BATCHES;
use crate::partners::webhooks::{EndpointProblem, Recovered};
use crate::site::operator::frame::{OperatorFrame, render};
use crate::site::operator::session::OperatorVisit;
use crate::site::{PageResult, Visit, field};

#[derive(Template)]
#[template(path = "operator/webhooks.html")]
struct WebhooksPage<'a> {
    frame: OperatorFrame<'a>,
    partner: &'a PartnerRecord,
    endpoints: &'a [ListedEndpoint],
    problem: Option<&'a str>,
    /// What was typed as the time to send from.
    since: &'a str,
}

pub async fn show_webhooks(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let partner = find(&found, visit.parameter).await?;
    let endpoints = found.stored(found.operator().ask(ListEndpoints(Some(partner.id))).await)?;
    let (partner, endpoints) = (&partner, &endpoints[..]);
    Ok(found.page(render(&WebhooksPage { frame: found.frame(), partner, endpoints, problem: None, since: "" })))
}

pub async fn change_webhooks(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let partner = find(&found, visit.parameter).await?;
    let endpoints = found.stored(found.operator().ask(ListEndpoints(Some(partner.id))).await)?;
    let id = field(&fields, "endpoint").unwrap_or_default().parse::<EndpointId>().ok();
    let Some(id) = id.filter(|id| endpoints.iter().any(|listed| listed.endpoint.id == *id)) else {
        return Ok(found.refuse("The partner has no such endpoint. Load the page again."));
    };
    let (now, back) = (visit.now.time, format!("{}/webhooks", path(&partner)));
    let act = |command, about: String| found.who.act(command, about, now);
    let (title, done) = match field(&fields, "act").as_deref() {
        Some("test") => {
            let limit = &found.access.service.test_messages;
            if !limit.take(&found.who.name, visit.now.tick) {
                return Ok(found.refuse(&limit.refusal()));
            }
            let tested = found.access.test_endpoint(act("webhooks test", format!("endpoint {id}")), id, now).await;
            let says = tested.map(|answer| match answer.status {
                200..=299 => format!("Endpoint {id} took the test message: it answered {}.", answer.status),
                status => {
                    format!("Endpoint {id} answered {status} to the test message. Anything but 2xx is a failure.")
                }
            });
            ("Tested", says)
        }
        Some("enable") => {
            let webhooks = found.access.webhooks(act("webhooks enable", format!("endpoint {id}")));
            let enabled = webhooks.enable(id, MAX_BATCHES, now).await;
            let says = enabled.map(|()| {
                format!("Endpoint {id} is enabled. What it missed while it was disabled is not sent by itself: send it again.")
            });
            ("Enabled", says)
        }
        Some("recover") => {
            let since = field(&fields, "since").unwrap_or_default();
            let Ok(from) = since.trim().parse::<Timestamp>() else {
                let problem = Some("Write a day, such as 2027-01-31, or a moment, such as 2027-01-31T18:00:00Z.");
                let (partner, endpoints) = (&partner, &endpoints[..]);
                let page = WebhooksPage { frame: found.frame(), partner, endpoints, problem, since: &since };
                return Ok(found.page_with(hyper::StatusCode::BAD_REQUEST, render(&page)));
            };
            let webhooks = found.access.webhooks(act("webhooks recover", format!("endpoint {id} since {from}")));
            let recovered = webhooks.recover(id, from, MAX_BATCHES, now).await;
            ("Sent again", recovered.map(|recovered| recovered_words(id, recovered)))
        }
        _ => return Ok(found.refuse("The form says neither test nor enable nor recover.")),
    };
    visit.app().core().webhooks.notify();
    match done {
        Ok(says) => Ok(found.done_at(&back, title, &[says])),
        Err(EndpointProblem::Store(error)) => found.stored(Err(error)),
        Err(problem) => Ok(found.done_at(&back, "It did not work", &[format!("Endpoint {id}: {problem}.")])),
    }
}

fn recovered_words(id: EndpointId, Recovered { queued, next_since }: Recovered) -> String {
    let sent = format!("Endpoint {id} is enabled. Sent again, each with the same id: {}.", counted(queued, "event"));
    match next_since {
        Some(next) => format!("{sent} There may be more: send again from {next}."),
        None => sent,
    }
}
