//! Issuing, rotating and revoking keys. A form makes one key, however often it is sent: its name decides which.

use std::time::Duration;

use askama::Template;
use hyper::{Request, StatusCode};

use super::{HERE, time_or_dash, works};
use crate::domain::api_key::{ApiKey, KeyId, KeyRecord, Mode};
use crate::domain::figure::grouped;
use crate::domain::partner::PartnerRecord;
use crate::domain::partner::name::{PartnerId, PartnerName};
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::keys::records::{FindKey, KeyFigures, ListNewestKeys, RevokeKey};
use crate::operator::Operator;
use crate::operator::partner::{KeyPartner, NewKey, NotRotated, after_revoking, revoked};
use crate::operator::service::NoTestRecords;
use crate::site::operator::form::{Form, FormField, FormMistake, FormPage, FormPart, Reads, Typed};
use crate::site::operator::frame::{OperatorFrame, render};
use crate::site::operator::question::{Question, is_sure};
use crate::site::operator::session::OperatorVisit;
use crate::site::{PageResult, Visit, field, field_is};

/// How long an old key may still work beside its successor, as the form offers it.
const GRACES: &[(&str, &str, Duration)] = &[
    ("24h", "24 hours", Duration::from_secs(86_400)),
    ("7d", "7 days", Duration::from_secs(7 * 86_400)),
    ("1h", "1 hour", Duration::from_secs(3600)),
    ("0s", "not at all", Duration::ZERO),
];

const MAX_PER_MINUTE: u32 = 1_000_000;

/// Where the test keys are listed, and how many.
const TEST_KEYS: &str = "/operator/partners/test-keys";
const TEST_KEYS_SHOWN: u32 = 200;

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

/// The records that a key is of. Those of the sandbox are made where there are none, if it `makes` a key.
async fn records(found: &OperatorVisit<'_>, mode: Mode, makes: bool) -> PageResult<Operator> {
    match mode {
        Mode::Live => Ok(found.operator().clone()),
        Mode::Test => {
            let none = || found.refuse("There are no test keys yet.");
            Ok(test_records(found, makes).await?.ok_or_else(none)?)
        }
    }
}

/// The sandbox's records; none where no test key was ever issued, unless `makes` makes them.
pub(super) async fn test_records(found: &OperatorVisit<'_>, makes: bool) -> PageResult<Option<Operator>> {
    found.access.service.sandbox.open(makes).await.map_err(|NoTestRecords| {
        let says = ["The sandbox's records cannot be used right now. The service's log says why.".to_owned()];
        found.message(StatusCode::SERVICE_UNAVAILABLE, "Nothing was done", &says).into()
    })
}

/// Which records a form is about.
fn mode_of(fields: &[u8]) -> Mode {
    Mode::of_flag(field_is(fields, "test", "yes"))
}

/// What the sandbox's own audit log has of a test key is in the live one, too, which the page shows. Returns what is to be said if it is not.
async fn note_test(found: &OperatorVisit<'_>, mode: Mode, command: &'static str, about: String) -> Option<String> {
    if mode == Mode::Live {
        return None;
    }
    let noted = found.operator().note(found.who.act(command, about, found.visit.now.time)).await;
    noted.err().map(|error| format!("The audit log on this page does not have it: {error}."))
}

/// The key that the sent form makes.
fn key_of(found: &OperatorVisit<'_>, fields: &[u8], mode: Mode) -> PageResult<ApiKey> {
    let key = found.access.key_of_form(&field(fields, "form").unwrap_or_default(), mode);
    key.ok_or_else(|| found.refuse("A part of the form is missing. Load the page again.").into())
}

/// Ends the visit if the form was sent before.
async fn require_unused(found: &OperatorVisit<'_>, operator: &Operator, key: KeyId) -> PageResult<()> {
    match found.stored(operator.ask(FindKey(key)).await)? {
        None => Ok(()),
        Some(_) => Err(was_used(found, key).into()),
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
    operator: &Operator,
    key: KeyId,
    done: Result<T, crate::membership::StoreError>,
) -> PageResult<T> {
    if done.is_err() && matches!(operator.ask(FindKey(key)).await, Ok(Some(_))) {
        return Err(was_used(found, key).into());
    }
    found.stored(done)
}

/// A key as it was typed, without mistakes.
struct TypedKey {
    partner: PartnerName,
    per_minute: Option<u32>,
    expires_at: Option<Timestamp>,
}

fn key_form(typed: Typed) -> Form {
    let fields = vec![
        FormField::line("name", "The partner's name")
            .hint("People read it in the mail that asks them to confirm")
            .wide(),
        FormField::number("per-minute", "Agent actions a minute (optional)", Reads::Whole)
            .hint("Up to 1,000,000. Empty: as many as any key"),
        FormField::day("expires", "Works until (optional)").hint("The day on which it no longer works, in UTC"),
        FormField::check("test", "A test key: for the sandbox, where nobody is real and no mail leaves"),
    ];
    Form::new(vec![FormPart::new("", "The key", "", fields)], typed, "")
}

/// What was typed; or everything that is wrong with it.
fn read_key(typed: &Typed, now: Timestamp) -> Result<TypedKey, Vec<FormMistake>> {
    let mut mistakes = Vec::new();
    let mut wrong = |input: &str, text: String| mistakes.push(FormMistake { text, input: Some(input.to_owned()) });
    let partner = typed.get("name").parse::<PartnerName>();
    let partner = partner.map_err(|why| wrong("name", format!("The partner's name: {why}"))).ok();
    let per_minute = match typed.get("per-minute").trim() {
        "" => None,
        text => {
            let read = text.replace(',', "").parse().ok().filter(|n| (1..=MAX_PER_MINUTE).contains(n));
            if read.is_none() {
                wrong(
                    "per-minute",
                    "Agent actions a minute: write a number from 1 to 1,000,000, or nothing".to_owned(),
                );
            }
            read
        }
    };
    let expires_at = match typed.get("expires").trim() {
        "" => None,
        text => {
            let read = text.parse().ok().filter(|end| *end > now);
            if read.is_none() {
                wrong(
                    "expires",
                    format!("Works until: write a day after {}, such as 2027-12-31, or nothing", now.day()),
                );
            }
            read
        }
    };
    match partner {
        Some(partner) if mistakes.is_empty() => Ok(TypedKey { partner, per_minute, expires_at }),
        _ => Err(mistakes),
    }
}

fn key_page(found: &OperatorVisit<'_>, form: &Form, name: &str) -> Answer {
    let says = ["It is shown once. The partner is made if there is none of that name.".to_owned()];
    FormPage {
        frame: found.frame(),
        title: "Issue a key",
        back: (HERE.path(), HERE.name()),
        says: &says,
        form,
        action: "/operator/partners/issue",
        hidden: &[("form", name)],
        button: "Issue a key",
    }
    .answer(found)
}

/// The form, with the name and the kind that the address has.
pub async fn show_issue(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let mut typed = Typed::default();
    typed.set("name", field(query, "name").unwrap_or_default());
    typed.set("test", field(query, "test").unwrap_or_default());
    let name = found.stored(found.access.new_form())?;
    Ok(key_page(&found, &key_form(typed), name.as_str()))
}

/// Issues a key to a partner of that name, which is made if there is none.
pub async fn issue(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (now, mode) = (visit.now.time, mode_of(&fields));
    let mut form = key_form(Typed::of(&fields));
    let form_name = field(&fields, "form").unwrap_or_default();
    let new = match read_key(&form.typed, now) {
        Ok(new) => new,
        Err(mistakes) => {
            form.mistakes = mistakes;
            return Ok(key_page(&found, &form, &form_name));
        }
    };
    let key = key_of(&found, &fields, mode)?;
    let operator = records(&found, mode, true).await?;
    require_unused(&found, &operator, key.id()).await?;
    let name = new.partner;
    let known = match found.stored(operator.find_key_partner(&name).await)? {
        KeyPartner::Known(partner) if partner.suspended_at.is_some() => {
            let why =
                format!("{} is suspended, so no key was issued, for none would work. Resume it first.", partner.name);
            return Ok(found.refuse(&why));
        }
        KeyPartner::Known(partner) => Some(partner),
        KeyPartner::Alike(alike) => {
            require_new(&found, &name, &alike, &form, &fields)?;
            None
        }
        KeyPartner::New => None,
    };
    let about = format!("key {} for {}", key.id(), name.as_str());
    let act = found.who.act("keys issue", about.clone(), now);
    let mut says = vec![format!("{} {} for {}.", kind(mode), key.id(), name.as_str())];
    let new = NewKey { partner: name, per_minute: new.per_minute, expires_at: new.expires_at };
    says.extend(new.per_minute.map(|limit| format!("It may take {} agent actions a minute.", grouped(limit.into()))));
    says.extend(new.expires_at.map(|end| format!("It works until {end}.")));
    issued(&found, &operator, key.id(), operator.audited(act).keys().issue(&key, new, now).await).await?;
    says.extend(note_test(&found, mode, "keys issue --test", about).await);
    let back = match (mode, &known) {
        (Mode::Test, _) => TEST_KEYS.to_owned(),
        (Mode::Live, Some(known)) => super::path(known),
        (Mode::Live, None) => HERE.path().to_owned(),
    };
    Ok(show_key(&found, &key, says, &back))
}

const fn kind(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => "Key",
        Mode::Test => "Test key",
    }
}

/// A name that differs from a partner's only in case or spaces is more often a slip than a second partner.
fn require_new(
    found: &OperatorVisit<'_>,
    name: &PartnerName,
    alike: &[PartnerRecord],
    form: &Form,
    fields: &[u8],
) -> PageResult<()> {
    let names: Vec<_> = alike.iter().map(|partner| partner.name.as_str()).collect();
    let says = [
        format!("There is {} already. If you mean it, go back and open its page.", names.join(", ")),
        format!("A new partner {} would be made beside it, with its own keys and mail budget.", name.as_str()),
    ];
    let form_name = field(fields, "form").unwrap_or_default();
    let question = Question {
        title: "Make a new partner?",
        says: &says,
        action: "/operator/partners/issue",
        fields: &[&form.again()[..], &[("form", form_name.as_str())]].concat(),
        button: "Make a new partner and issue its key",
        ..Question::default()
    };
    found.require_sure(&question, fields)
}

/// What a form about a test key sends.
const TEST: (&str, &str) = ("test", "yes");

fn back_to(mode: Mode, partner: PartnerId) -> String {
    match mode {
        Mode::Live => format!("/operator/partners/{partner}"),
        Mode::Test => TEST_KEYS.to_owned(),
    }
}

#[derive(Template)]
#[template(path = "operator/test_keys.html")]
struct TestKeysPage<'a> {
    frame: OperatorFrame<'a>,
    keys: &'a [(KeyRecord, KeyFigures)],
    has_more: bool,
    now: Timestamp,
}

/// The test keys of all partners, the newest first.
pub async fn list_test_keys(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let mut keys = match test_records(&found, false).await? {
        Some(operator) => found.stored(operator.ask(ListNewestKeys(TEST_KEYS_SHOWN + 1)).await)?,
        None => Vec::new(),
    };
    let has_more = keys.len() > TEST_KEYS_SHOWN as usize;
    keys.truncate(TEST_KEYS_SHOWN as usize);
    Ok(found.page(render(&TestKeysPage { frame: found.frame(), keys: &keys, has_more, now: visit.now.time })))
}

fn named(found: &OperatorVisit<'_>, fields: &[u8]) -> PageResult<KeyId> {
    let id = field(fields, "key").unwrap_or_default().parse();
    id.map_err(|_| found.refuse("The form names no key. Load the page again.").into())
}

pub async fn revoke(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (id, now, mode) = (named(&found, &fields)?, visit.now.time, mode_of(&fields));
    let operator = records(&found, mode, false).await?;
    let unknown = || found.refuse(&format!("There is no key {id}."));
    let key = found.stored(operator.ask(FindKey(id)).await)?.ok_or_else(unknown)?;
    let mut says =
        vec!["Within two seconds it no longer works. It cannot be undone: the partner needs another key.".to_owned()];
    let text = id.to_string();
    let mut asked = vec![("key", text.as_str())];
    match mode {
        Mode::Live => says.push("Mail that it asked for and that has not left is held.".to_owned()),
        Mode::Test => asked.push(TEST),
    }
    let question = Question {
        title: &format!("Revoke {} {id} of {}?", kind(mode).to_lowercase(), key.partner.as_str()),
        says: &says,
        action: "/operator/partners/revoke",
        fields: &asked,
        button: "Revoke it",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let act = found.who.act("keys revoke", format!("key {id}"), now);
    let key = found.stored(operator.audited(act).run(RevokeKey(id, now)).await)?.ok_or_else(unknown)?;
    let mut lines = revoked(&key, mode, now);
    // The sandbox is in no backup.
    if mode == Mode::Live
        && let Err(error) = found.access.note_revoked(id, key.key.revoked_at.unwrap_or(now)).await
    {
        lines.push(format!("For later: {error}."));
    }
    lines.extend(after_revoking(&key.key, mode, found.access.write_remedy));
    lines.extend(note_test(&found, mode, "keys revoke --test", format!("key {id}")).await);
    let back = back_to(mode, key.key.partner_id);
    Ok(found.done_at(&back, "Revoked", &lines))
}

#[derive(Template)]
#[template(path = "operator/rotate.html")]
struct RotatePage<'a> {
    frame: OperatorFrame<'a>,
    id: &'a str,
    partner: &'a str,
    form: &'a str,
    is_test: bool,
    graces: &'static [(&'static str, &'static str, Duration)],
    back: &'a str,
}

/// Gives a key a successor, once it was asked how long the old one still works.
pub async fn rotate(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (id, mode) = (named(&found, &fields)?, mode_of(&fields));
    let operator = records(&found, mode, false).await?;
    let old = found.stored(operator.ask(FindKey(id)).await)?;
    let Some(old) = old else { return Ok(found.refuse(&format!("There is no key {id}."))) };
    let back = back_to(mode, old.partner_id);
    if !is_sure(&fields) {
        let form = found.stored(found.access.new_form())?;
        let page = RotatePage {
            frame: found.frame(),
            id: id.as_str(),
            partner: old.partner.as_str(),
            form: form.as_str(),
            is_test: mode == Mode::Test,
            graces: GRACES,
            back: &back,
        };
        return Ok(found.page(render(&page)));
    }
    let grace = field(&fields, "grace").unwrap_or_default();
    let Some((_, _, grace)) = GRACES.iter().find(|(value, ..)| *value == grace) else {
        return Ok(found.refuse("The form does not say how long the old key still works. Load the page again."));
    };
    let key = key_of(&found, &fields, mode)?;
    require_unused(&found, &operator, key.id()).await?;
    let about = format!("key {id} by {}", key.id());
    let act = found.who.act("keys rotate", about.clone(), visit.now.time);
    let rotated = match operator.audited(act).keys().rotate(id, &key, *grace, None, false, visit.now.time).await {
        Ok(rotated) => rotated,
        Err(NotRotated::Store(error)) => return issued(&found, &operator, key.id(), Err(error)).await,
        Err(why) => return Ok(found.refuse(&found.sentence(format!("No key was issued: {why}"), why.remedy()))),
    };
    let mut says = vec![format!("Key {} replaces {id}, which works until {}.", key.id(), rotated.old_ends)];
    says.extend(rotated.new_ends.map(|ends| format!("The new key itself works until {ends}.")));
    says.extend(note_test(&found, mode, "keys rotate --test", about).await);
    Ok(show_key(&found, &key, says, &back))
}
