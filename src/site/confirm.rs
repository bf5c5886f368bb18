//! `/confirm/<token>`: what is being confirmed with one button (double opt-in), and the person's own link once they are in.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::CONTENT_SECURITY_POLICY;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, StatusCode};

use super::cookie::SiteCookie;
use super::join;
use super::own_page::session::{keep_apart, look_if_any};
use super::view::{self, ConfirmView, JoinForm, MemberPart, Outcome, ShownAgain, Welcome};
use super::{PRESS_BYTES, PageResult, Visit, WITH_OUR_SCRIPT, field, said};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::referral::ReferralCode;
use crate::domain::secret::token::Purpose;
use crate::domain::sign_in::SESSION_FOR;
use crate::domain::sign_up::{Confirmation, SeenPage, SignUpRecord, SignUpState};
use crate::domain::time::{DAY, Timestamp};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::membership::LinkedSignUp;

const MOST_NEXT: usize = 3;

/// How long the welcome can be loaded again; then the page says that they have confirmed.
const WELCOMED_FOR: Duration = DAY;

/// What the address says after a press.
const DONE: &str = "done";
const WELCOME: &str = "welcome";
const CHANGED: &str = "changed";

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    visit.check_link(Purpose::Confirm).await?;
    let found = visit.find_sign_up(Purpose::Confirm).await?;
    let visit = visit.who_chose(found.record.language);
    let record = &found.record;
    Ok(match record.state {
        SignUpState::Confirmed if !record.is_member => visit.outcome(StatusCode::OK, Outcome::Left),
        SignUpState::Confirmed => {
            let is_new = record.joined_at.is_some_and(|at| visit.now.time < at.plus(WELCOMED_FOR));
            match said(&request, DONE) == Some(WELCOME) && is_new {
                true => welcome(visit, record, request.headers()).await?,
                false => share(visit, &record.code, Welcome::Again, &[]).await,
            }
        }
        // Whatever became of it, they are in.
        SignUpState::Expired | SignUpState::Declined if record.is_member => {
            share(visit, &record.code, Welcome::Member, &[]).await
        }
        SignUpState::Expired => form_again(visit, &found).await,
        SignUpState::Declined if !record.can_take_back => form_again(visit, &found).await,
        SignUpState::Declined => {
            let take_back = visit.place(format!("/not-me/{}", visit.app().membership.token(Purpose::Decline, &found)));
            visit.outcome(StatusCode::GONE, Outcome::WasDeclined { take_back: &take_back })
        }
        SignUpState::Pending => ask(visit, &found, said(&request, DONE) == Some(CHANGED)),
    })
}

pub async fn press(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    visit.check_link(Purpose::Confirm).await?;
    let (head, body) = request.into_parts();
    let body = body.read(PRESS_BYTES).await?;
    let language = field(&body, "lang");
    let visit = visit.of_form(language.as_deref());
    let changed = format!("{}?{DONE}={CHANGED}", visit.path);
    // Other words than those that are shown now: whoever pressed the button has not read these.
    let notice = field(&body, "notice");
    let known = notice.as_ref().and_then(|hash| visit.app().union.notices.find(hash));
    if notice.is_some() && known.is_none() {
        return Ok(visit.redirect(&changed));
    }
    let seen = SeenPage {
        answers: field(&body, "seen").and_then(|text| text.parse().ok()).map(Timestamp::from_millis),
        notice: known.map(|notice| Arc::clone(&notice.hash)),
        language: language.map(|_| visit.reader.language),
    };
    match visit.stored(visit.app().membership.confirm(visit.parameter, seen, visit.now.time).await)? {
        Confirmation::Joined(_) => Ok(joined(visit, Purpose::Confirm, visit.path, &head).await),
        Confirmation::Changed => Ok(visit.redirect(&changed)),
        // The same as for somebody who only looks.
        Confirmation::AlreadyMember | Confirmation::Expired | Confirmation::Declined | Confirmation::Unknown => {
            Ok(visit.redirect(visit.path))
        }
    }
}

/// Leads whoever became a member by this very press to the page that welcomes them, and signs them in, too, where our own page sent
/// it: another site must not sign its reader in as somebody else (login CSRF).
pub(super) async fn joined(visit: Visit<'_>, purpose: Purpose, confirm_path: &str, head: &Parts) -> Answer {
    let mut answer = visit.redirect(&format!("{confirm_path}?{DONE}={WELCOME}"));
    if visit.app().is_sandbox() || !visit.says_own(head) {
        return answer;
    }
    match visit.app().own_pages.enter_by_joining(purpose, visit.parameter, visit.now.time).await {
        Ok(Some(entered)) => SiteCookie::Session.set(&mut answer, visit.site.secure, &entered.cookie, SESSION_FOR),
        Ok(None) => {}
        // They are a member all the same, and can sign in by mail.
        Err(error) => visit.report(&error.to_string()),
    }
    answer
}

/// What whoever joined can do next is beside their link, where they are signed in.
async fn welcome(visit: Visit<'_>, record: &SignUpRecord, headers: &HeaderMap) -> PageResult {
    let path = format!("{}?{DONE}={WELCOME}", visit.path);
    let visit = Visit { path: &path, ..visit };
    let session = match visit.app().is_sandbox() {
        true => None,
        false => look_if_any(visit, headers).await?.filter(|session| session.file.person.code == record.code),
    };
    let Some(session) = session else { return Ok(share(visit, &record.code, Welcome::FirstTime, &[]).await) };
    let (person, campaigns) = (&session.file.person, visit.public_campaigns().await);
    let (us_state, chosen) = (person.answers.us_state, person.answers.chosen());
    let token = visit.app().own_pages.csrf_token(&session.cookie.nonce);
    let part = |campaign: &CampaignRecord| MemberPart::of(&token, session.part(campaign.slug()), us_state, chosen);
    let next = campaigns.after_joining(record.campaign.as_ref(), us_state, chosen, visit.now.time);
    let next: Vec<_> = next.into_iter().take(MOST_NEXT).map(|campaign| (campaign, part(campaign))).collect();
    let mut answer = share(visit, &record.code, Welcome::FirstTime, &next).await;
    keep_apart(&mut answer);
    Ok(answer)
}

/// The form with what was filled in, for whoever comes too late: the link proves that it is theirs to see.
async fn form_again(visit: Visit<'_>, found: &LinkedSignUp) -> Answer {
    let record = &found.record;
    if visit.app().is_sandbox() {
        return visit.outcome(StatusCode::GONE, Outcome::Lapsed);
    }
    let form = JoinForm {
        email: record.email.as_typed().to_owned(),
        answers: (&record.answers).into(),
        again: Some(ShownAgain::Expired),
        ..JoinForm::default()
    };
    let code = record.referrer.as_ref().map(|referrer| referrer.code.as_str()).unwrap_or_default();
    join::page(visit, StatusCode::GONE, code, &form).await
}

fn ask(visit: Visit<'_>, found: &LinkedSignUp, changed: bool) -> Answer {
    let confirm_path = visit.place(format!("/confirm/{}", visit.parameter));
    let decline_path = visit.place(format!("/not-me/{}", visit.app().membership.token(Purpose::Decline, found)));
    let (confirm_path, decline_path) = (confirm_path.as_str(), decline_path.as_str());
    let view = ConfirmView { sign_up: &found.record, changed, confirm_path, decline_path };
    visit.page(view::confirm(visit.frame(), &view))
}

/// The person's own link to share, once they are in, and the campaigns that they can take part in next.
pub(super) async fn share(
    visit: Visit<'_>,
    code: &ReferralCode,
    welcome: Welcome,
    next: &[(&CampaignRecord, MemberPart<'_>)],
) -> Answer {
    let link = code.link(&visit.app().union.join_site);
    let count = visit.member_count().await;
    let mut answer = visit.page(view::share(visit.frame(), welcome, &link, count, next));
    // The button that copies the link is the only thing here that is done by a script.
    answer.set(CONTENT_SECURITY_POLICY, WITH_OUR_SCRIPT);
    answer
}
