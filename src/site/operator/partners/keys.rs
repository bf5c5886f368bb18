//! Issuing, rotating and revoking keys. A form makes one key, however often it is sent: its name decides which.

use std::time::Duration;

use askama::Template;
use hyper::Request;

use super::HERE;
use crate::domain::api_key::{ApiKey, KeyId, Mode};
use crate::domain::partner::PartnerRecord;
use crate::domain::partner::name::PartnerName;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;

use crate::keys::records::{FindKey, RevokeKey};
use crate::operator::partner::{KeyPartner, NewKey, NotRotated, after_revoking, revoked};
use crate::site::operator::frame::{OperatorFrame, render};
use crate::site::operator::session::{OperatorVisit, Question, is_sure};
use crate::site::{PageResult, Visit, field};

/// How long an old key may still work beside its successor, as the form offers it.
const GRACES: &[(&str, &str, Duration)] = &[
    ("24h", "24 hours", Duration::from_secs(86_400)),
    ("7d", "7 days", Duration::from_secs(7 * 86_400)),
    ("1h", "1 hour", Duration::from_secs(3600)),
    ("0s", "not at all", Duration::ZERO),
];

#[derive(Template)]
#[template(path = "operator/new_key.html")]
struct NewKeyPage<'a> {
    frame: OperatorFrame<'a>,
    key: &'a str,
    says: Vec<String>,
    back: &'a str,
}

fn show_key(found: &OperatorVisit<'_>, key: &ApiKey, says: Vec<String>, back: &str) -> Answer {
    found.page(render(&NewKeyPage { frame: found.frame(), key: key.reveal(), says, back }))
}

/// The key that the sent form makes; or why it makes none.
async fn key_of(found: &OperatorVisit<'_>, fields: &[u8]) -> PageResult<ApiKey> {
    let form = field(fields, "form").unwrap_or_default();
    let Some(key) = found.access.key_of_form(&form) else {
        return Err(found.refuse("A part of the form is missing. Load the page again.").into());
    };
    match found.stored(found.operator().ask(FindKey(key.id())).await)? {
        None => Ok(key),
        Some(_) => Err(was_used(found, key.id()).into()),
    }
}

fn was_used(found: &OperatorVisit<'_>, key: KeyId) -> Answer {
    let why = format!(
        "This form was sent before, and issued key {key}. A key is shown only once: if nobody has it, revoke it and issue another."
    );
    found.refuse(&why)
}

/// What the store did about a new key; sent twice at once, the second finds the key issued.
async fn issued<T>(
    found: &OperatorVisit<'_>,
    key: KeyId,
    done: Result<T, crate::membership::StoreError>,
) -> PageResult<T> {
    if done.is_err() && matches!(found.operator().ask(FindKey(key)).await, Ok(Some(_))) {
        return Err(was_used(found, key).into());
    }
    found.stored(done)
}

/// Issues a key to a partner of that name, which is made if there is none.
pub async fn issue(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let name = match field(&fields, "name").unwrap_or_default().parse::<PartnerName>() {
        Ok(name) => name,
        Err(why) => return Ok(found.refuse(&format!("No key was issued: {why}."))),
    };
    let key = key_of(&found, &fields).await?;
    let known = match found.stored(found.operator().find_key_partner(&name).await)? {
        KeyPartner::Known(partner) if partner.suspended_at.is_some() => {
            let why =
                format!("{} is suspended, so no key was issued, for none would work. Resume it first.", partner.name);
            return Ok(found.refuse(&why));
        }
        KeyPartner::Known(partner) => Some(partner),
        KeyPartner::Alike(alike) => {
            require_new(&found, &name, &alike, &fields)?;
            None
        }
        KeyPartner::New => None,
    };
    let now = visit.now.time;
    let act = found.acting("keys issue", format!("key {} for {}", key.id(), name.as_str()));
    let new = NewKey { partner: name.clone(), per_minute: None, expires_at: None };
    issued(&found, key.id(), act.keys().issue(&key, new, now).await).await?;
    let says = vec![format!("Key {} for {}.", key.id(), name.as_str())];
    let back = known.as_ref().map_or_else(|| HERE.path().to_owned(), super::path);
    Ok(show_key(&found, &key, says, &back))
}

/// A name that differs from a partner's only in case or spaces is more often a slip than a second partner.
fn require_new(
    found: &OperatorVisit<'_>,
    name: &PartnerName,
    alike: &[PartnerRecord],
    fields: &[u8],
) -> PageResult<()> {
    let names: Vec<_> = alike.iter().map(|partner| partner.name.as_str()).collect();
    let says = [
        format!("There is {} already. If you mean it, go back and open its page.", names.join(", ")),
        format!("A new partner {} would be made beside it, with its own keys and mail budget.", name.as_str()),
    ];
    let form = field(fields, "form").unwrap_or_default();
    let question = Question {
        title: "Make a new partner?",
        says: &says,
        action: "/operator/partners/issue",
        fields: &[("name", name.as_str()), ("form", &form)],
        about: "",
        button: "Make a new partner and issue its key",
        ..Question::default()
    };
    found.require_sure(&question, fields)
}

fn named(found: &OperatorVisit<'_>, fields: &[u8]) -> PageResult<KeyId> {
    let id = field(fields, "key").unwrap_or_default().parse();
    id.map_err(|_| found.refuse("The form names no key. Load the page again.").into())
}

pub async fn revoke(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (id, now) = (named(&found, &fields)?, visit.now.time);
    let unknown = || found.refuse(&format!("There is no key {id}."));
    let key = found.stored(found.operator().ask(FindKey(id)).await)?.ok_or_else(unknown)?;
    let says = [
        "Within two seconds it no longer works. It cannot be undone: the partner needs another key.".to_owned(),
        "Mail that it asked for and that has not left is held.".to_owned(),
    ];
    let text = id.to_string();
    let question = Question {
        title: &format!("Revoke key {id} of {}?", key.partner.as_str()),
        says: &says,
        action: "/operator/partners/revoke",
        fields: &[("key", &text)],
        about: "",
        button: "Revoke it",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let key = found.acting("keys revoke", format!("key {id}")).run(RevokeKey(id, now)).await;
    let key = found.stored(key)?.ok_or_else(unknown)?;
    let back = format!("/operator/partners/{}", key.key.partner_id);
    let mut lines = revoked(&key, Mode::Live, now);
    if let Err(error) = found.access.note_revoked(id, key.key.revoked_at.unwrap_or(now)).await {
        lines.push(format!("For later: {error}."));
    }
    lines.extend(after_revoking(&key.key, Mode::Live, found.access.write_remedy));
    Ok(found.done_at(&back, "Revoked", &lines))
}

#[derive(Template)]
#[template(path = "operator/rotate.html")]
struct RotatePage<'a> {
    frame: OperatorFrame<'a>,
    id: &'a str,
    partner: &'a str,
    form: &'a str,
    graces: &'static [(&'static str, &'static str, Duration)],
    back: &'a str,
}

/// Gives a key a successor, once it was asked how long the old one still works.
pub async fn rotate(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let id = named(&found, &fields)?;
    let old = found.stored(found.operator().ask(FindKey(id)).await)?;
    let Some(old) = old else { return Ok(found.refuse(&format!("There is no key {id}."))) };
    let back = format!("/operator/partners/{}", old.partner_id);
    if !is_sure(&fields) {
        let form = found.stored(found.access.new_form())?;
        let page = RotatePage {
            frame: found.frame(),
            id: id.as_str(),
            partner: old.partner.as_str(),
            form: form.as_str(),
            graces: GRACES,
            back: &back,
        };
        return Ok(found.page(render(&page)));
    }
    let grace = field(&fields, "grace").unwrap_or_default();
    let Some((_, _, grace)) = GRACES.iter().find(|(value, ..)| *value == grace) else {
        return Ok(found.refuse("The form does not say how long the old key still works. Load the page again."));
    };
    let key = key_of(&found, &fields).await?;
    let act = found.acting("keys rotate", format!("key {id} by {}", key.id()));
    let rotated = match act.keys().rotate(id, &key, *grace, None, false, visit.now.time).await {
        Ok(rotated) => rotated,
        Err(NotRotated::Store(error)) => return issued(&found, key.id(), Err(error)).await,
        Err(why) => return Ok(found.refuse(&found.sentence(format!("No key was issued: {why}"), why.remedy()))),
    };
    let mut says = vec![format!("Key {} replaces {id}, which works until {}.", key.id(), rotated.old_ends)];
    says.extend(rotated.new_ends.map(|ends| format!("The new key itself works until {ends}.")));
    Ok(show_key(&found, &key, says, &back))
}
