//! `/operator/audit`: who changed what, and when; newest first, some at a time.

use askama::Template;
use hyper::Request;

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::OperatorVisit;
use crate::domain::share::encoded;
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::operator::{AuditEntry, AuditPlace, ListAuditBefore};
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Audit;

const ROWS_SHOWN: usize = 100;

/// Rows of the log that are looked at for a page, however few match.
const ROWS_LOOKED_AT: u32 = 2000;

#[derive(Template)]
#[template(path = "operator/audit.html")]
struct AuditPage<'a> {
    frame: OperatorFrame<'a>,
    filter: &'a AuditFilter,
    mistakes: Vec<String>,
    entries: Vec<AuditEntry>,
    /// Where the page of older rows is.
    older: Option<String>,
    /// Until where the log was read, if that is not its beginning.
    looked_back_to: Option<String>,
}

/// What somebody looks for, as they typed it.
#[derive(Default)]
struct AuditFilter {
    who: String,
    what: String,
    since: String,
    until: String,
}

impl AuditFilter {
    fn read(query: &[u8]) -> Self {
        let text = |name| field(query, name).unwrap_or_default().trim().to_owned();
        Self { who: text("who"), what: text("what"), since: text("since"), until: text("until") }
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        let what = self.what.to_lowercase();
        let has = |text: &str| text.to_lowercase().contains(&what);
        (self.who.is_empty() || entry.who == self.who) && (what.is_empty() || has(&entry.command) || has(&entry.about))
    }

    fn is_empty(&self) -> bool {
        [&self.who, &self.what, &self.since, &self.until].iter().all(|text| text.is_empty())
    }

    /// The same with another place to begin before.
    fn path(&self, before: AuditPlace) -> String {
        let Self { who, what, since, until } = self;
        let [who, what, since, until] = [who, what, since, until].map(|text| encoded(text));
        let (at, id) = (before.at.as_millis(), before.id);
        format!("/operator/audit?who={who}&what={what}&since={since}&until={until}&before={at}.{id}")
    }
}

/// A day or a moment; nothing where the field is empty.
fn moment(text: &str, name: &str, mistakes: &mut Vec<String>) -> Option<Timestamp> {
    if text.is_empty() {
        return None;
    }
    let read = text.parse();
    if read.is_err() {
        mistakes.push(format!(
            "{name} is no day and no moment: write a day such as 2027-01-31, or a moment such as 2027-01-31T18:00:00Z."
        ));
    }
    read.ok()
}

fn place(text: &str) -> Option<AuditPlace> {
    let (at, id) = text.split_once('.')?;
    Some(AuditPlace { at: Timestamp::from_millis(at.parse().ok()?), id: id.parse().ok()? })
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let (filter, mut mistakes) = (AuditFilter::read(query), Vec::new());
    let since = moment(&filter.since, "From", &mut mistakes).unwrap_or(Timestamp::from_millis(0));
    let until = moment(&filter.until, "Before", &mut mistakes).unwrap_or(Timestamp::from_millis(i64::MAX));
    let before = field(query, "before").and_then(|text| place(&text)).filter(|place| place.at < until);
    let before = before.unwrap_or(AuditPlace::start_of(until));
    let (mut entries, mut older, mut looked_back_to) = (Vec::new(), None, None);
    if mistakes.is_empty() {
        let looked =
            found.stored(found.operator().ask(ListAuditBefore { since, before, most: ROWS_LOOKED_AT }).await)?;
        let is_whole = looked.len() < ROWS_LOOKED_AT as usize;
        let end = looked.last().map(AuditEntry::place);
        entries = looked.into_iter().filter(|entry| filter.matches(entry)).take(ROWS_SHOWN + 1).collect();
        let has_more = entries.len() > ROWS_SHOWN;
        entries.truncate(ROWS_SHOWN);
        let last = entries.last().map(AuditEntry::place);
        let next = if has_more { last } else { end.filter(|_| !is_whole) };
        looked_back_to = next.filter(|_| !has_more).map(|place| place.at.to_string());
        older = next.map(|place| filter.path(place));
    }
    let page = AuditPage { frame: found.frame(), filter: &filter, mistakes, entries, older, looked_back_to };
    Ok(found.page(render(&page)))
}
