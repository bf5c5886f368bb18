//! `POST /hooks/mail/{service}`: mail services tell of bounces and complaints. Shut until the operator gives a service's secret.

use hyper::{HeaderMap, Request, StatusCode};

use super::Exchange;
use crate::domain::mail::report::{MailReport, ReportOutcome};
use crate::http::request::authorization;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::mail::report::resend::{self, SvixHeaders};
use crate::mail::report::{Untaken, postmark};

/// The largest report: a few fields, and at Postmark perhaps the mail that came back.
const REPORT_BYTES: u64 = 512 << 10;

pub(super) async fn resend(exchange: Exchange<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let Some(secret) = &exchange.service.mail_hooks.resend else { return Err(shut()) };
    let (head, body) = request.into_parts();
    let body = body.read(REPORT_BYTES).await?;
    let sent = |name| one(&head.headers, name);
    let headers =
        SvixHeaders { id: sent("svix-id"), timestamp: sent("svix-timestamp"), signatures: sent("svix-signature") };
    let report = resend::read(secret, headers, &body, exchange.now.time);
    note(&exchange, "resend", report).await
}

pub(super) async fn postmark(exchange: Exchange<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let Some(login) = &exchange.service.mail_hooks.postmark else { return Err(shut()) };
    let (head, body) = request.into_parts();
    let body = body.read(REPORT_BYTES).await?;
    let report = postmark::read(login, authorization::of(&head.headers), &body, exchange.now.time);
    note(&exchange, "postmark", report).await
}

async fn note(
    exchange: &Exchange<'_>,
    service: &str,
    report: Result<Option<MailReport>, Untaken>,
) -> Result<Answer, HttpError> {
    let app = &exchange.service.app;
    let report = match report {
        Ok(report) => report,
        Err(Untaken::Unproved) => return Err(HttpError::Unproved),
        Err(Untaken::Shape) => {
            // Proved and not understood: the service's shape has changed, and the operator should know.
            app.log.problem(Some(exchange.id.as_str()), &format!("a report of {service} was not understood"));
            return Err(HttpError::Report);
        }
    };
    if let Some(report) = report {
        match app.membership.note_report(report, exchange.now.time).await {
            Ok(ReportOutcome::Noted | ReportOutcome::Repeated | ReportOutcome::Unknown) => {}
            // The service sends it again.
            Err(error) => {
                app.report_store(Some(exchange.id.as_str()), &error.to_string());
                return Err(HttpError::NotReady);
            }
        }
    }
    Ok(Answer::json(StatusCode::OK, &b"{\"ok\":true}"[..]))
}

/// A header that must be there once: a proxy and we might each read another.
fn one<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let mut sent = headers.get_all(name).iter();
    match (sent.next(), sent.next()) {
        (Some(value), None) => value.to_str().unwrap_or_default(),
        _ => "",
    }
}

fn shut() -> HttpError {
    HttpError::NotFound("There is nothing at this path.".to_owned())
}
