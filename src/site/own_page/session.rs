//! Who is signed in, and what a form of theirs has to carry (CSRF).

use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode};

use crate::domain::campaign::CampaignMail;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::participation::ParticipationEntry;
use crate::domain::email::EmailAddress;
use crate::domain::person::PersonDetails;
use crate::domain::secret::session::SessionCookie;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::mail::Delivery;
use crate::site::cookie::SiteCookie;
use crate::site::typed_sign_in::TypedSignIn;
use crate::site::view::{self, Frame, Outcome, SignInView};
use crate::site::{FORM_BYTES, LINKS_A_MINUTE, PageResult, Visit, field};

/// Somebody who is signed in, and all that is kept of them.
pub(in crate::site) struct Session {
    pub cookie: SessionCookie,
    pub file: PersonDetails,
    pub email: EmailAddress,
}

impl Session {
    /// Their part in a campaign.
    pub(in crate::site) fn part(&self, slug: &CampaignSlug) -> Option<&ParticipationEntry> {
        self.file.participations.iter().find(|part| part.campaign == *slug)
    }

    /// Whether an offer is mailed to them once there is one.
    pub(in crate::site) fn gets_offer(&self, visit: Visit<'_>) -> bool {
        !matches!(visit.app().mail, Delivery::Off) && self.file.is_mailed(CampaignMail::Offer, visit.now.time)
    }
}

/// Who is signed in, if anybody is; or why nobody can be told.
pub(in crate::site) async fn look(visit: Visit<'_>, headers: &HeaderMap) -> PageResult<Option<Session>> {
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let cookie = SiteCookie::Session.read(headers, visit.site.secure);
    let cookie = cookie.and_then(|cookie| visit.app().own_pages.session(cookie, visit.now.time));
    let Some(cookie) = cookie else { return Ok(None) };
    let found = visit.stored(visit.app().own_pages.find(&cookie, visit.now.time).await)?;
    Ok(found.and_then(|file| {
        let email = EmailAddress::kept(&file.person.email).ok()?;
        Some(Session { cookie, file, email })
    }))
}

/// The same on a page for everybody, where only whoever has a cookie draws on a budget.
pub(in crate::site) async fn look_if_any(visit: Visit<'_>, headers: &HeaderMap) -> PageResult<Option<Session>> {
    match SiteCookie::Session.read(headers, visit.site.secure) {
        Some(_) => look(visit, headers).await,
        None => Ok(None),
    }
}

/// A form that was sent: whose it is, in whose language they are answered, and what it says; or what to answer instead.
/// `signed_out` is for whoever is not signed in.
pub(in crate::site) async fn take<'a>(
    visit: Visit<'a>,
    request: Request<SentBody<'_>>,
    signed_out: impl FnOnce(Visit<'a>) -> Answer,
) -> PageResult<(Visit<'a>, Session, Vec<u8>)> {
    match take_any(visit, request, signed_out).await? {
        (visit, _, _, false) => Err(visit.outcome(StatusCode::FORBIDDEN, Outcome::WrongOrigin).into()),
        (visit, session, fields, true) => Ok((visit, session, fields)),
    }
}

/// The same, and whether its token is the session's. Where it is not, nothing may be done.
pub(in crate::site) async fn take_any<'a>(
    visit: Visit<'a>,
    request: Request<SentBody<'_>>,
    signed_out: impl FnOnce(Visit<'a>) -> Answer,
) -> PageResult<(Visit<'a>, Session, Vec<u8>, bool)> {
    let (visit, (head, body)) = (visit.of_own_page(), request.into_parts());
    visit.require_own(&head)?;
    let session = look(visit, &head.headers).await?.ok_or_else(|| signed_out(visit))?;
    let fields = body.read(FORM_BYTES).await?.to_vec();
    let token = field(&fields, "token").unwrap_or_default();
    let is_its_own = visit.app().own_pages.is_csrf_token(&session.cookie.nonce, &token);
    Ok((visit.who_chose(session.file.person.language), session, fields, is_its_own))
}

/// The form to sign in with. Where the browser asked for a code that may still work, it leads there, too.
pub(in crate::site) fn sign_in(
    visit: Visit<'_>,
    headers: &HeaderMap,
    status: StatusCode,
    view: SignInView<'_>,
) -> Answer {
    let asked = TypedSignIn::of_browser(visit, headers).is_some_and(|typed| typed.address(visit).is_ok());
    let frame = visit.frame();
    // Unless it is one that came of joining, whatever cookie they have opens nothing here.
    let frame = Frame { signed_in: frame.signed_in && !view.wanted.is_empty(), ..frame };
    let mut answer = Answer::html(status, view::sign_in(frame, SignInView { asked, ..view }));
    keep_apart(&mut answer);
    answer
}

/// What a session that came of joining cannot do asks for a mailed sign-in, which leads on to what was `wanted`.
pub(super) fn require_mailed(
    visit: Visit<'_>,
    headers: &HeaderMap,
    status: StatusCode,
    session: &Session,
    wanted: &str,
) -> PageResult<()> {
    if session.cookie.by.may_export_leave_and_erase() {
        return Ok(());
    }
    let visit = visit.who_chose(session.file.person.language);
    let view = SignInView { email: &session.file.person.email, wanted, ..SignInView::default() };
    Err(sign_in(visit, headers, status, view).into())
}

/// No window of another site holds on to it, and none shows it within its own.
pub(in crate::site) fn keep_apart(answer: &mut Answer) {
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        answer.set(HeaderName::from_static(name), HeaderValue::from_static("same-origin"));
    }
}
