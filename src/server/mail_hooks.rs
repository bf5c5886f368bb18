//! `POST /hooks/mail/{service}`: mail services tell of bounces and complaints. Shut until the operator gives a service's secret.

use bytes::Bytes;
use hyper::{HeaderMap, Request, StatusCode};

use super::{Exchange, declared_length};
use crate::domain::mail::report::{MailReport, ReportOutcome};
use crate::error::Error;
use crate::http::request::authorization;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::limiter::{Bucket, Class, Subject};
use crate::mail::report::resend::{self, SvixHeaders};
use crate::mail::report::{Untaken, postmark};

/// The largest report: a few fields, and at Postmark perhaps the mail that came back.
const REPORT_BYTES: u64 = 512 << 10;

/// Calls from one address in a minute, proved or not. A service that has more to tell tries again.
const REPORTS_A_MINUTE: u32 = 300;

pub(super) async fn resend(exchange: Exchange<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let Some(secret) = &exchange.service.mail_hooks.resend else { return Err(shut()) };
    let (head, body) = request.into_parts();
    let sent = |name| one(&head.headers, name);
    let headers =
        SvixHeaders { id: sent("svix-id"), timestamp: sent("svix-timestamp"), signatures: sent("svix-signature") };
    let proved = resend::look(headers, exchange.now.time);
    let body = take(&exchange, &head.headers, proved, body).await?;
    let report = resend::read(secret, headers, &body, exchange.now.time);
    note(&exchange, "resend", report).await
}

pub(super) async fn postmark(exchange: Exchange<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let Some(login) = &exchange.service.mail_hooks.postmark else { return Err(shut()) };
    let (head, body) = request.into_parts();
    let authorization = authorization::of(&head.headers);
    let body = take(&exchange, &head.headers, postmark::prove(login, authorization), body).await?;
    let report = postmark::read(login, authorization, &body, exchange.now.time);
    note(&exchange, "postmark", report).await
}

/// Takes a report in, once its caller has a budget left, its headers are those of the service and its length is one of a report.
async fn take(
    exchange: &Exchange<'_>,
    headers: &HeaderMap,
    proved: Result<(), Untaken>,
    body: SentBody<'_>,
) -> Result<Bytes, HttpError> {
    let bucket = Bucket { class: Class::Link, subject: Subject::Network(exchange.client.into()) };
    let verdict = exchange.service.app.spend(bucket, REPORTS_A_MINUTE, exchange.now.tick).await;
    if !verdict.admitted {
        return Err(Error::RateLimited { limit: REPORTS_A_MINUTE, retry_after: verdict.reset_seconds() }.into());
    }
    proved.map_err(|_| HttpError::Unproved)?;
    if declared_length(headers) > REPORT_BYTES {
        return Err(HttpError::TooLarge);
    }
    body.read(REPORT_BYTES).await
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
