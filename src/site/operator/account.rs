//! `/operator/account`: the role and the second factor of whoever is signed in; and `/operator/second-factor`, the code at sign-in.

use askama::Template;
use hyper::{Request, StatusCode};

use super::frame::{OperatorFrame, OperatorSection, render};
use super::session::{OperatorVisit, sign_in_page};
use crate::domain::operator::OPERATOR_SESSION_FOR;
use crate::domain::operator::second_factor::{FactorSecret, RecoveryCode};
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::operator::second_factor::{FactorState, FindFactorState, TypedCode};
use crate::site::cookie::SiteCookie;
use crate::site::view::qr_code::QrCode;
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Account;

#[derive(Template)]
#[template(path = "operator/account.html")]
struct AccountPage<'a> {
    frame: OperatorFrame<'a>,
    problem: Option<&'a str>,
    state: Option<FactorState>,
    /// To be set up: as a QR code, as its key, and sealed for the form.
    new_factor: Option<(Option<QrCode>, String, String)>,
    /// Whether it has to be set up before anything else.
    is_required: bool,
    /// Whether it may not be turned off.
    must_have: bool,
}

#[derive(Template)]
#[template(path = "operator/recovery_codes.html")]
struct RecoveryCodesPage<'a> {
    frame: OperatorFrame<'a>,
    says: &'a str,
    codes: &'a [RecoveryCode],
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let sets_up = request.uri().query() == Some("set-up") || found.lacks_factor();
    let factor = match sets_up && found.who.has_session() {
        true => found.stored(found.access.new_factor(&found.who, visit.now.time))?,
        false => None,
    };
    account(&found, StatusCode::OK, factor, None).await
}

async fn account(
    found: &OperatorVisit<'_>,
    status: StatusCode,
    factor: Option<(FactorSecret, String)>,
    problem: Option<&str>,
) -> PageResult {
    let name = &found.who.name;
    let state = found.stored(found.operator().ask(FindFactorState(name.clone())).await)?;
    let shown = |(factor, sealed): (FactorSecret, String)| {
        (QrCode::of(&factor.address(&found.visit.app().union.name, name)), factor.shown(), sealed)
    };
    let page = AccountPage {
        frame: found.frame(),
        problem,
        state,
        new_factor: factor.map(shown),
        is_required: found.lacks_factor(),
        must_have: found.access.require_second_factor,
    };
    Ok(found.page_with(status, render(&page)))
}

/// The code at sign-in.
pub async fn enter_code(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take_of_anyone(visit, request, OperatorSection::Overview).await?;
    if !found.who.waits_for_code {
        return Ok(found.redirect("/operator"));
    }
    if let Err(refused) = check(&found, &fields).await? {
        return Ok(match refused {
            Refused::Again(why) => found.ask_for_code(StatusCode::BAD_REQUEST, Some(why)),
            Refused::SignIn => ended(&found).await?,
        });
    }
    let passed = found.stored(found.access.pass(&found.who, visit.now.time).await)?;
    let Some(cookie) = passed else { return ended(&found).await };
    let mut answer = found.redirect("/operator");
    SiteCookie::Operator.set(&mut answer, visit.site.secure, &cookie, OPERATOR_SESSION_FOR);
    Ok(answer)
}

/// This sign-in has had its tries, or its time.
async fn ended(found: &OperatorVisit<'_>) -> PageResult {
    found.stored(found.access.sign_out(&found.who).await)?;
    let says = "This sign-in ended after too many codes that were not right. Begin again.";
    let mut answer = sign_in_page(found.visit, found.access, says, ("", None)).answer(StatusCode::FORBIDDEN);
    SiteCookie::Operator.clear(&mut answer, found.visit.site.secure);
    Ok(answer)
}

/// Why a code does nothing.
enum Refused {
    Again(&'static str),
    /// The session has had its tries.
    SignIn,
}

/// When the factor was set up whose code was typed.
async fn check(found: &OperatorVisit<'_>, fields: &[u8]) -> PageResult<Result<Timestamp, Refused>> {
    let typed = field(fields, "code").unwrap_or_default();
    let now = found.visit.now.time;
    let checked = found.stored(found.access.check_code(&found.who, &typed, now).await)?;
    Ok(Err(match checked {
        TypedCode::Right(since) => return Ok(Ok(since)),
        TypedCode::Wrong => Refused::Again("That code is not right, or was used before. Wait for the next one."),
        TypedCode::OnlyRecovery => {
            found.visit.report(&format!("too many codes of the operator {} were wrong today", found.who.name));
            Refused::Again(
                "Too many codes were wrong today, so codes of the app work again tomorrow (UTC). Type a recovery code. If you have none: \
             unionhall operator reset-second-factor NAME",
            )
        }
        TypedCode::Unreadable => Refused::Again(
            "The service can no longer read your second factor. Type a recovery code. If you have none: unionhall operator \
             reset-second-factor NAME",
        ),
        TypedCode::SignInEnded => {
            let act = found.who.act("page sign-in", "refused: wrong codes".to_owned(), now);
            found.stored(found.operator().note(act).await)?;
            Refused::SignIn
        }
    }))
}

/// Sets up, replaces or turns off the second factor; makes new recovery codes; signs out everywhere.
pub async fn change(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (now, act) = (visit.now.time, field(&fields, "act").unwrap_or_default());
    if !found.who.has_session() {
        return Ok(found.refuse("A proxy in front of this page signs you in, so there is nothing to change here."));
    }
    if act == "sign-out-everywhere" {
        found.stored(found.access.sign_out_everywhere(&found.who, now).await)?;
        let says = "You are signed out in all browsers.";
        let mut answer = sign_in_page(visit, found.access, says, ("", None)).answer(StatusCode::OK);
        SiteCookie::Operator.clear(&mut answer, visit.site.secure);
        return Ok(answer);
    }
    let sealed = field(&fields, "factor").unwrap_or_default();
    let factor = match act.as_str() {
        "set-up" => match found.access.factor_of_form(&found.who, &sealed, now) {
            Some(factor) => Some(factor),
            None => return Ok(found.refuse("The form was open for more than 15 minutes. Begin again.")),
        },
        "new-codes" => None,
        "turn-off" if found.access.require_second_factor => {
            return Ok(found.refuse("This union asks every operator for a second factor. Replace the app instead."));
        }
        "turn-off" => None,
        _ => return Ok(found.refuse("The form does not say what to change.")),
    };
    // Before anything of the old factor is used up.
    let new_code = field(&fields, "new-code").unwrap_or_default();
    if let Some(factor) = &factor
        && factor.step_of(&new_code, now).is_none()
    {
        let again = found.access.factor_of_form(&found.who, &sealed, now).map(|factor| (factor, sealed));
        let why =
            "That is not the code that the app shows now. Wait for the next one. If it goes on, set the phone's clock.";
        return account(&found, StatusCode::BAD_REQUEST, again, Some(why)).await;
    }
    let proved = match found.who.has_factor {
        false => None,
        true => match check(&found, &fields).await? {
            Ok(since) => Some(since),
            Err(Refused::Again(why)) => {
                let again = factor.map(|factor| (factor, sealed));
                return account(&found, StatusCode::BAD_REQUEST, again, Some(why)).await;
            }
            Err(Refused::SignIn) => return ended(&found).await,
        },
    };
    let changed =
        || found.refuse("Your second factor changed meanwhile, or there is none. Look at your account again.");
    let (codes, says) = match (factor, proved) {
        (Some(factor), proved) => (
            found.stored(found.access.set_up(&found.who, proved, (&factor, &new_code), now).await)?,
            "The second factor is on. Your other browsers are signed out.",
        ),
        (None, Some(proved)) if act == "new-codes" => {
            (found.stored(found.access.renew_recovery_codes(&found.who, proved, now).await)?, "These are new.")
        }
        (None, Some(proved)) if found.stored(found.access.turn_off(&found.who, proved, now).await)? => {
            return Ok(found.done("Second factor", &["It is off. A link alone signs you in.".to_owned()]));
        }
        (None, _) => return Ok(changed()),
    };
    Ok(match codes {
        Some(codes) => found.page(render(&RecoveryCodesPage { frame: found.frame(), says, codes: &codes })),
        None => changed(),
    })
}
