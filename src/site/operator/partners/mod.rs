//! `/operator/partners`: the partners, one with its keys and endpoints, and what is done to them. Of the sandbox's it has the keys alone.

mod contact;
mod keys;
mod webhooks;

use askama::Template;
use hyper::{Request, StatusCode};

pub use self::contact::{save_settings, show_settings};
pub use self::keys::{issue, list_test_keys, revoke, rotate, show_issue};
pub use self::webhooks::{change_webhooks, show_webhooks};
use super::frame::{OperatorFrame, OperatorSection, render};
use super::question::Question;
use super::session::{OperatorVisit, Worked};
use crate::domain::api_key::{KeyRecord, KeyStatus, Mode};
use crate::domain::figure::{capped, grouped};
use crate::domain::mail::budget::day_of;
use crate::domain::partner::PartnerRecord;
use crate::domain::partner::endpoint::ListedEndpoint;
use crate::domain::partner::name::PartnerId;
use crate::domain::share::encoded;
use crate::domain::time::Timestamp;
use crate::figures::ListSources;
use crate::http::request::body::SentBody;
use crate::keys::records::{KeyFigures, ListKeysOf};
use crate::operator::Funnel;
use crate::operator::partner::{self, MAX_COUNTED, suspended, waits_again};
use crate::partners::endpoints::ListEndpoints;
use crate::partners::records::{ListPartners, ResumePartner, SuspendPartner};
use crate::site::{PageResult, Visit, field};

const HERE: OperatorSection = OperatorSection::Partners;

/// Partners on the list; the commands list all.
const PARTNERS_SHOWN: usize = 500;

/// Keys of one partner on its page, the newest.
const KEYS_SHOWN: u32 = 100;

const RATE_DAYS: i64 = 30;

struct ShownRates {
    signed_up: String,
    confirmed: String,
    declined: String,
}

impl ShownRates {
    fn of(funnel: Funnel) -> Self {
        Self {
            signed_up: grouped(funnel.signed_up),
            confirmed: share(funnel.confirmed, funnel.mailed),
            declined: share(funnel.declined, funnel.mailed),
        }
    }
}

/// So many of all, with the percentage of those who were mailed.
fn share(some: u64, all: u64) -> String {
    match all {
        0 => grouped(some),
        _ => format!("{} ({}%)", grouped(some), some.saturating_mul(100).saturating_add(all / 2) / all),
    }
}

#[derive(Template)]
#[template(path = "operator/partners.html")]
struct PartnersPage<'a> {
    frame: OperatorFrame<'a>,
    partners: Vec<(PartnerRecord, ShownRates)>,
    more: usize,
    /// Names the form that makes a key.
    form: String,
}

pub async fn list(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let mut partners = found.stored(found.operator().ask(ListPartners).await)?;
    let rates = rates(&found).await?;
    let more = partners.len().saturating_sub(PARTNERS_SHOWN);
    partners.truncate(PARTNERS_SHOWN);
    let listed = partners.into_iter().map(|partner| {
        let rates = ShownRates::of(of_source(&rates, &partner.name));
        (partner, rates)
    });
    let form = found.stored(found.access.new_form())?.as_str().to_owned();
    let page = PartnersPage { frame: found.frame(), partners: listed.collect(), more, form };
    Ok(found.page(render(&page)))
}

/// What came of the sign-ups of every source, from the figures that are kept by day.
async fn rates(found: &OperatorVisit<'_>) -> PageResult<Vec<(String, Funnel)>> {
    let since = day_of(found.visit.now.time) - RATE_DAYS;
    found.stored(found.operator().ask(ListSources(since)).await)
}

fn of_source(rates: &[(String, Funnel)], source: &str) -> Funnel {
    rates.iter().find(|(name, _)| name == source).map(|(_, funnel)| *funnel).unwrap_or_default()
}

#[derive(Template)]
#[template(path = "operator/partner.html")]
struct PartnerPage<'a> {
    frame: OperatorFrame<'a>,
    partner: &'a PartnerRecord,
    rates: ShownRates,
    keys: &'a [(KeyRecord, KeyFigures)],
    more_keys: u64,
    endpoints: &'a [ListedEndpoint],
    form: String,
    now: Timestamp,
}

/// The partner of a number that stands in an address or a form.
async fn find(found: &OperatorVisit<'_>, id: &str) -> PageResult<PartnerRecord> {
    let partner = match id.parse() {
        Ok(id) => found.stored(found.operator().find_partner(PartnerId(id)).await)?,
        Err(_) => None,
    };
    let none = ["There is no such partner.".to_owned()];
    partner.ok_or_else(|| found.message(StatusCode::NOT_FOUND, "Not found", &none).into())
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let partner = find(&found, visit.parameter).await?;
    let operator = found.operator();
    let keys = found.stored(operator.ask(ListKeysOf(partner.id, KEYS_SHOWN)).await)?;
    let endpoints = found.stored(operator.ask(ListEndpoints(Some(partner.id))).await)?;
    let page = PartnerPage {
        frame: found.frame(),
        rates: ShownRates::of(of_source(&rates(&found).await?, &partner.name)),
        more_keys: partner.keys.saturating_sub(keys.len() as u64),
        keys: &keys,
        endpoints: &endpoints,
        form: found.stored(found.access.new_form())?.as_str().to_owned(),
        now: visit.now.time,
        partner: &partner,
    };
    Ok(found.page(render(&page)))
}

fn time_or_dash(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| time.to_string())
}

/// Whether a key may be revoked or rotated: it has not ended.
fn works(key: &KeyRecord, now: Timestamp) -> bool {
    !matches!(key.status(now), KeyStatus::Revoked | KeyStatus::Expired)
}

fn path(partner: &PartnerRecord) -> String {
    format!("/operator/partners/{}", partner.id)
}

/// Stops a partner as a whole, once the operator is sure, or lifts that.
pub async fn suspend(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let partner = find(&found, &field(&fields, "partner").unwrap_or_default()).await?;
    let (name, now) = (partner.name.clone(), visit.now.time);
    match field(&fields, "act").as_deref() {
        Some("suspend") => {
            if partner.suspended_at.is_none() {
                require_sure_to_suspend(&found, &partner, &fields)?;
                let acting = found.acting("partners suspend", name.clone());
                found.stored(acting.run(SuspendPartner(partner.id, now)).await)?;
            }
            let says = suspended(&name, partner.suspended_at, Mode::Live);
            let waits = "Its webhooks wait, and its mail that has not left is held, until you resume it.";
            Ok(found.done_at(&path(&partner), "Suspended", &[says, waits.to_owned()]))
        }
        Some("resume") => {
            require_sure_to_resume(&found, &partner, &fields)?;
            let resumed = found.acting("partners resume", name.clone()).run(ResumePartner(partner.id, now)).await;
            let mut says = vec![partner::resumed(&name, found.stored(resumed)?, Mode::Live)];
            // Also where it was lifted before: the mail of one that was interrupted is still held. However much there is, it goes on
            // when nobody waits for it any more.
            let partners = found.operator().partners();
            let release = async move { partners.release_suspended(partner.id, now).await };
            match found.work("mail of a resumed partner is still held", release).await {
                Worked::Done(mails) => says.extend(waits_again(mails)),
                Worked::Failed(_) => {
                    says.push("Not all mail that was held for it could be let go. Resume it again.".to_owned());
                }
                Worked::GoesOn => says.push("Mail that was held for it is let go bit by bit.".to_owned()),
            }
            found.access.findings.forget().await;
            Ok(found.done_at(&path(&partner), "Resumed", &says))
        }
        _ => Ok(found.refuse("The form says neither suspend nor resume.")),
    }
}

/// Ends what waits to be confirmed of a suspended partner, once the operator is sure.
pub async fn withdraw(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let partner = find(&found, &field(&fields, "partner").unwrap_or_default()).await?;
    if partner.suspended_at.is_none() {
        return Ok(found.refuse(&format!(
            "{} is not suspended and would sign up more people, so nothing was cancelled. Suspend it first.",
            partner.name
        )));
    }
    let id = partner.id.to_string();
    let says = [
        "Their links stop working, and their mail that has not left is deleted. Nobody is notified.".to_owned(),
        "Members stay members. It cannot be undone: the people have to sign up again.".to_owned(),
    ];
    let question = Question {
        title: &format!("Cancel all unconfirmed sign-ups of {}?", partner.name),
        says: &says,
        action: "/operator/partners/withdraw",
        fields: &[("partner", &id)],
        button: "Cancel them",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let (acting, now) = (found.acting("partners withdraw", partner.name.clone()), visit.now.time);
    let (id, always) = (partner.id, Timestamp::from_millis(0));
    let ending = async move { acting.withdraw_sign_ups_of_partner(id, always, now).await };
    let says = match found.work("not all sign-ups of a partner were cancelled", ending).await {
        Worked::Done(Some(ended)) => partner::withdrawn(ended),
        Worked::Done(None) => return Ok(found.refuse("One of its keys works again, so nothing was cancelled.")),
        Worked::Failed(why) => format!("Not all of them could be cancelled: {why}. Cancel them again."),
        Worked::GoesOn => "They are being cancelled, 500 at a time.".to_owned(),
    };
    Ok(found.done_at(&path(&partner), "Cancelled", &[says]))
}

fn require_sure_to_suspend(found: &OperatorVisit<'_>, partner: &PartnerRecord, fields: &[u8]) -> PageResult<()> {
    let id = partner.id.to_string();
    let says = [
        "Within two seconds none of its keys works. Its test keys still do.".to_owned(),
        "Its webhooks wait, and its mail that has not left is held. Links that were mailed still work.".to_owned(),
        "You can resume it at any time.".to_owned(),
    ];
    let question = Question {
        title: &format!("Suspend {}?", partner.name),
        says: &says,
        action: "/operator/partners/suspend",
        fields: &[("act", "suspend"), ("partner", &id)],
        about: "",
        button: "Suspend it",
        ..Question::default()
    };
    found.require_sure(&question, fields)
}

/// The button is pressed beside since when it is suspended. Where somebody has resumed it and suspended it again, it is asked.
fn require_sure_to_resume(found: &OperatorVisit<'_>, partner: &PartnerRecord, fields: &[u8]) -> PageResult<()> {
    let Some(since) = partner.suspended_at.map(|at| at.to_string()) else { return Ok(()) };
    if field(fields, "since").is_some_and(|read| read == since) {
        return Ok(());
    }
    let id = partner.id.to_string();
    let says = [format!("It is suspended since {since}. Within two seconds its keys work again.")];
    let question = Question {
        title: &format!("Resume {}?", partner.name),
        says: &says,
        action: "/operator/partners/suspend",
        fields: &[("act", "resume"), ("partner", &id)],
        about: "",
        button: "Resume it",
        ..Question::default()
    };
    found.require_sure(&question, fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_something() {
        assert_eq!(
            [share(0, 0), share(3, 0), share(1, 3), share(2, 3), share(3, 3)],
            ["0", "3", "1 (33%)", "2 (67%)", "3 (100%)"]
        );
        assert_eq!(share(u64::MAX, u64::MAX), format!("{} (1%)", grouped(u64::MAX)), "absurd, and no panic");
    }
}
