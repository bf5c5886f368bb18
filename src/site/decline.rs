//! `/not-me/<token>`: "this wasn't me", taking that back, what is not to be sent; and unsubscribing with one click (RFC 8058).
//! `/already-member/<token>`: what that mail says to a member, as a page.

use std::sync::Arc;

use hyper::Request;
use hyper::http::request::Parts;

use super::view::{self, DeclineView, Welcome};
use super::{ONE_CLICK, PRESS_BYTES, PageResult, Visit, field, field_is, said};
use crate::domain::secret::token::Purpose;
use crate::domain::sign_up::{Confirmation, DecidedHow, Declining, SeenPage, Silence, SilenceChange};
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;

/// Asks whether the sign-up is to be withdrawn, or says what became of it.
pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    visit.check_link(Purpose::Decline).await?;
    page(visit, said(&request, "done") == Some("saved")).await
}

/// What the mail to a member says who is signed up again, for whoever reads it in another language.
pub async fn read(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    visit.check_link(Purpose::Decline).await?;
    let found = visit.find_sign_up(Purpose::Decline).await?;
    if !found.record.is_member || !visit.app().membership.is_more_than_no(visit.parameter) {
        return page(visit, false).await;
    }
    let visit = visit.who_chose(found.record.language);
    Ok(super::confirm::share(visit, &found.record.code, Welcome::Member, &[]).await)
}

pub async fn press(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    visit.check_link(Purpose::Decline).await?;
    let (head, body) = request.into_parts();
    let body = body.read(PRESS_BYTES).await?;
    let visit = visit.of_form(field(&body, "lang").as_deref());
    let is = |name, value| field_is(&body, name, value);
    let wanted =
        Silence { again: is("again", "stop"), partner: is("partner", "stop"), mailbox: is("mailbox", "silence") };
    let shown = Silence {
        again: is("was-again", "stop"),
        partner: is("was-partner", "stop"),
        mailbox: is("was-mailbox", "silence"),
    };
    let silence = SilenceChange::between(shown, wanted);
    match field(&body, "do").as_deref() {
        Some("take-back") => {
            let seen = field(&body, "seen").and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
            return take_back(visit, &head, field(&body, "notice").as_deref(), seen).await;
        }
        Some("choose") => {
            let chosen = visit.app().membership.choose_silence(visit.parameter, silence, visit.now.time).await;
            let saved = visit.stored(chosen)?;
            return Ok(if saved { visit.redirect(&format!("{}?done=saved", visit.path)) } else { visit.unknown() });
        }
        _ => {}
    }
    let one_click = field(&body, ONE_CLICK).is_some();
    let how = if one_click { DecidedHow::OneClick } else { DecidedHow::Button };
    // Whoever posts without our form says nothing of mail.
    let silence = is("do", "withdraw").then_some(silence);
    match visit.stored(visit.app().membership.decline(visit.parameter, how, silence, visit.now.time).await)? {
        // Mail programs take no redirect for an answer (RFC 8058).
        Declining::Declined | Declining::Expired | Declining::Confirmed if one_click => page(visit, false).await,
        Declining::Declined | Declining::Expired | Declining::Confirmed => Ok(visit.redirect(visit.path)),
        Declining::Unknown => Ok(visit.unknown()),
    }
}

/// It was them after all. As for confirming, they must have seen the answers, and read the words that are shown now.
async fn take_back(visit: Visit<'_>, head: &Parts, notice: Option<&str>, answers: Option<Timestamp>) -> PageResult {
    let notice = notice.and_then(|hash| visit.app().union.notices.find(hash));
    let (Some(notice), Some(_)) = (notice, answers) else { return Ok(visit.redirect(visit.path)) };
    let language = Some(visit.reader.language);
    let seen = SeenPage { answers, notice: Some(Arc::clone(&notice.hash)), language };
    match visit.stored(visit.app().membership.take_back(visit.parameter, seen, visit.now.time).await)? {
        Confirmation::Joined(_) => {
            let found = visit.find_sign_up(Purpose::Decline).await?;
            let confirm = visit.place(format!("/confirm/{}", visit.app().membership.token(Purpose::Confirm, &found)));
            Ok(super::confirm::joined(visit, Purpose::Decline, &confirm, head).await)
        }
        Confirmation::AlreadyMember => Ok(visit.redirect(&visit.place(format!("/already-member/{}", visit.parameter)))),
        // The same as for somebody who only looks.
        Confirmation::Expired | Confirmation::Declined | Confirmation::Changed => Ok(visit.redirect(visit.path)),
        Confirmation::Unknown => Ok(visit.unknown()),
    }
}

async fn page(visit: Visit<'_>, saved: bool) -> PageResult {
    let mut found = visit.find_sign_up(Purpose::Decline).await?;
    let visit = visit.who_chose(found.record.language);
    let membership = &visit.app().membership;
    let again_path = match membership.is_more_than_no(visit.parameter) {
        true => visit.place(format!("/confirm/{}", membership.token(Purpose::Confirm, &found))),
        // Others may have made this link: it leads to nothing that is somebody's.
        false => {
            found.record.can_take_back = false;
            visit.place("/".to_owned())
        }
    };
    let view = DeclineView { sign_up: &found.record, again_path: &again_path, saved };
    Ok(visit.page(view::decline(visit.frame(), &view)))
}
