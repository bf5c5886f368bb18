//! `/about`, `/privacy`, `/terms`: the pages of trust.

use hyper::Request;

use super::own_text::PolicyPage;
use super::{PageResult, Visit, view};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;

pub async fn about(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let count = visit.member_count().await;
    Ok(page(visit, PolicyPage::About, count))
}

pub async fn privacy(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    Ok(page(visit, PolicyPage::Privacy, None))
}

pub async fn terms(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    Ok(page(visit, PolicyPage::Terms, None))
}

fn page(visit: Visit<'_>, which: PolicyPage, member_count: Option<u64>) -> Answer {
    visit.page(view::policy(visit.frame(), which, member_count, visit.app().own_pages.times))
}
