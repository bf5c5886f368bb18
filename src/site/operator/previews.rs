//! `/operator/mail/previews`: each mail in each language as people get it, with invented facts and links that lead nowhere.

use askama::Template;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{Request, StatusCode};

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::OperatorVisit;
use crate::domain::language::Language;
use crate::domain::mail::MailKind;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::mail::ReadableMail;
use crate::site::own_page::session::keep_apart;
use crate::site::{PageResult, Visit};

const HERE: OperatorSection = OperatorSection::Mail;

/// The page shows the HTML part in a frame.
const WITH_FRAME: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; img-src 'self'; style-src 'self'; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// The part in the frame loads nothing, runs nothing, sends nothing and opens nothing. Mail programs know only styles in the text itself.
const IN_FRAME: HeaderValue = HeaderValue::from_static(
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
);

#[derive(Template)]
#[template(path = "operator/previews.html")]
struct PreviewsPage<'a> {
    frame: OperatorFrame<'a>,
    languages: [Language; Language::ALL.len()],
    /// What is looked at: its path, and the mail.
    shown: Option<(&'a str, &'a ReadableMail)>,
}

/// What a kind is called on these pages.
pub(super) const fn called(kind: MailKind) -> &'static str {
    match kind {
        MailKind::Confirm => "Please confirm",
        MailKind::AlreadyMember => "You are a member already",
        MailKind::SignIn => "Sign in to your page",
        MailKind::CampaignOpened => "A campaign opened",
        MailKind::CampaignOffer => "An offer waits",
        MailKind::CampaignResult => "What came of a campaign",
        MailKind::Receipt => "What you accepted",
    }
}

fn named(language: Language) -> &'static str {
    language.words().site.language.as_str()
}

fn mail(found: &OperatorVisit<'_>) -> PageResult<ReadableMail> {
    let named = found.visit.parameter.split_once('.');
    let of = |(kind, language)| Some((MailKind::from_name(kind)?, Language::from_code(language)?));
    let preview = |(kind, language)| found.access.service.previews.preview(kind, language, found.visit.now.time);
    let none = || found.message(StatusCode::NOT_FOUND, "Not found", &["There is no such mail.".to_owned()]);
    Ok(named.and_then(of).and_then(preview).ok_or_else(none)?)
}

fn page(found: &OperatorVisit<'_>, shown: Option<(&str, &ReadableMail)>) -> Answer {
    let page = PreviewsPage { frame: found.frame(), languages: Language::ALL, shown };
    let mut answer = found.page(render(&page));
    answer.set(CONTENT_SECURITY_POLICY, WITH_FRAME);
    answer
}

pub async fn list(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    Ok(page(&found, None))
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let mail = mail(&found)?;
    Ok(page(&found, Some((visit.path, &mail))))
}

pub async fn show_html(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let mut answer = Answer::html(StatusCode::OK, mail(&found)?.html);
    answer.set(CONTENT_SECURITY_POLICY, IN_FRAME);
    keep_apart(&mut answer);
    Ok(answer)
}
