//! The strip on every page of a demonstration: it says that nobody is real, and lets a day or a month pass.

use std::time::Duration;

use hyper::{Request, StatusCode};

use super::cookie::SiteCookie;
use super::view::{Frame, Outcome};
use super::{LINKS_A_MINUTE, PRESS_BYTES, PageResult, Visit, field};
use crate::clock::Clock;
use crate::domain::language::Words;
use crate::domain::language::words::DemonstrationWords;
use crate::domain::operator::OPERATOR_SESSION_FOR;
use crate::domain::time::{DAY, Timestamp};
use crate::domain::union::Union;
use crate::http::request::body::SentBody;
use crate::limiter::Class;

/// How long a press waits for its time to have passed. What is left passes meanwhile, and the next page says which day it is.
const WAIT: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// "A month later".
const MONTH: Duration = DAY.saturating_mul(30);

#[derive(Clone, Copy)]
pub struct Strip<'a> {
    pub(crate) words: &'static DemonstrationWords,
    date: (&'static Words, Timestamp),
    /// The page that it is on.
    pub path: &'a str,
}

impl<'a> Strip<'a> {
    /// None where the union is no demonstration.
    pub fn of(union: &Union, words: &'static Words, path: &'a str, now: Timestamp) -> Option<Self> {
        union.is_demonstration().then_some(Self { words: &words.demonstration, date: (words, now), path })
    }

    pub fn today(&self) -> String {
        let (words, now) = self.date;
        self.words.today.put("date", words.date(now)).plain()
    }
}

impl Frame<'_> {
    pub fn strip(&self) -> Option<Strip<'_>> {
        Strip::of(self.union, self.words, self.path, self.now)
    }
}

/// Lets time pass, and leads back to the page that the strip was on.
pub async fn pass(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (head, body) = request.into_parts();
    if !visit.app().union.is_demonstration() {
        return Ok(visit.outcome(StatusCode::NOT_FOUND, Outcome::NotFound));
    }
    visit.require_own(&head)?;
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let fields = body.read(PRESS_BYTES).await?;
    let by = match field(&fields, "later").as_deref() {
        Some("day") => DAY,
        Some("month") => MONTH,
        _ => Duration::ZERO,
    };
    // A month ends every session, and whoever let it pass in the operator's page still wants to see that page.
    let cookie = SiteCookie::Operator.read(&head.headers, visit.site.secure);
    let operator = match (&visit.site.operator, cookie) {
        (Some(access), Some(cookie)) => {
            visit.stored(access.of_cookie(cookie, visit.now.time).await)?.filter(|who| !who.waits_for_code)
        }
        _ => None,
    };
    let calendar = &visit.app().demonstration;
    let asked = visit.stored(calendar.ask_for(by).await)?;
    let mut waited = Duration::ZERO;
    while let Some(asked) = asked
        && waited < WAIT
        && visit.stored(calendar.find().await)?.is_some_and(|time| time.ahead < asked.until)
    {
        tokio::time::sleep(LOOK_EVERY).await;
        waited += LOOK_EVERY;
    }
    let back = field(&fields, "back").filter(|back| is_path(back));
    let mut answer = visit.redirect(back.as_deref().unwrap_or("/join"));
    if let (Some(access), Some(operator)) = (&visit.site.operator, operator)
        && let Some(cookie) = visit.stored(access.enter_again(&operator, Clock::start().now().time).await)?
    {
        SiteCookie::Operator.set(&mut answer, visit.site.secure, &cookie, OPERATOR_SESSION_FOR);
    }
    Ok(answer)
}

/// Whether a text is a path of ours, and not another host.
fn is_path(text: &str) -> bool {
    text.starts_with('/')
        && !text.starts_with("//")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strip_leads_back_to_pages_of_ours_alone() {
        for ours in ["/join", "/campaigns/internet-2027?done=in", "/"] {
            assert!(is_path(ours), "{ours}");
        }
        for other in ["", "join", "//example.com", "/\\example.com", "https://example.com", "/a b", "/a\r\nb"] {
            assert!(!is_path(other), "{other}");
        }
    }
}
