//! `/operator/rewards/review`: patterns among the members of groups that are not paid yet, some referrers at a time. It shows addresses, so
//! the audit log has each page that does.

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::OperatorVisit;
use crate::domain::figure::counted;
use crate::domain::reward::review::{Pattern, ReviewedMember, ReviewedReferrer};
use crate::http::request::body::SentBody;
use crate::operator::review::{LookedAt, cut, ended, heading, shown, words};
use crate::rewards::report::{ListReviewedReferrers, REVIEWED_AT_ONCE};
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Rewards;

/// Members of a pattern that are shown.
const MOST_MEMBERS: usize = 50;

#[derive(Template)]
#[template(path = "operator/review.html")]
struct ReviewPage<'a> {
    frame: OperatorFrame<'a>,
    referrers: Vec<ShownReferrer<'a>>,
    looked_at: String,
    /// Whether it is not the first page.
    goes_on: bool,
    /// After whom the next page begins.
    next: Option<i64>,
}

struct ShownReferrer<'a> {
    heading: String,
    cut: Option<String>,
    patterns: Vec<ShownPattern<'a>>,
}

struct ShownPattern<'a> {
    words: String,
    members: Vec<&'a ReviewedMember>,
    /// Those that are not shown.
    more: usize,
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let after = field(query, "after").and_then(|text| text.parse::<i64>().ok()).unwrap_or(0).max(0);
    let referrers = found.stored(found.operator().ask(ListReviewedReferrers(after)).await)?;
    let last = referrers.last().map(|referrer| referrer.person);
    let next = last.filter(|_| referrers.len() == REVIEWED_AT_ONCE as usize);
    let disposable = visit.site.app.membership.disposable_domains();
    let mut looked_at = LookedAt::default();
    let mut rows = Vec::new();
    for referrer in &referrers {
        let patterns = referrer.patterns(disposable);
        (looked_at.groups, looked_at.referrers) =
            (looked_at.groups + u64::from(referrer.groups), looked_at.referrers + u64::from(referrer.groups > 0));
        if !patterns.is_empty() {
            looked_at.shown += 1;
            rows.push(ShownReferrer::of(referrer, patterns));
        }
    }
    if looked_at.shown > 0 {
        let act = found.who.act("rewards review", counted(looked_at.shown, "referrer"), visit.now.time);
        found.stored(found.operator().note(act).await)?;
    }
    let (looked_at, goes_on) = (looked_at.words(), after > 0);
    Ok(found.page(render(&ReviewPage { frame: found.frame(), referrers: rows, looked_at, goes_on, next })))
}

impl<'a> ShownReferrer<'a> {
    fn of(referrer: &ReviewedReferrer, patterns: Vec<Pattern<'a>>) -> Self {
        let patterns = patterns.into_iter().map(|Pattern { kind, mut members }| {
            let more = members.len().saturating_sub(MOST_MEMBERS);
            members.truncate(MOST_MEMBERS);
            ShownPattern { words: words(&kind, referrer), members, more }
        });
        Self { heading: heading(referrer), cut: cut(referrer), patterns: patterns.collect() }
    }
}
