//! `unionhall members show`: everything about a person, and why they get no mail.

use serde_json::{Value, json};

use super::{ShowPerson, address, no_such_person};
use crate::cli::audit::act;
use crate::cli::mail::as_json as waiting_mail_json;
use crate::cli::{print_json, print_lines, remedy, with_live_records};
use crate::domain::person::{PersonDetails, SignUpEntry};
use crate::domain::time::Timestamp;
use crate::operator::person::{lines, obstacles};
use crate::people::export::PersonDocument;

pub(super) fn run(task: &ShowPerson, now: Timestamp) -> anyhow::Result<()> {
    let person = &task.person;
    let email = address(&person.email)?;
    let found = with_live_records(&person.store, async |operator| {
        let act = act("members show", String::new(), now);
        let people = person.people(&operator.audited(act.clone())).await?;
        match operator.look_up(&people, act, &email, now).await? {
            Some(_) => Ok(people.find(&email, now).await?),
            None => Ok(None),
        }
    })?;
    let file = found.ok_or_else(no_such_person)?;
    if task.json { print_json(&file_json(&file, now)) } else { print_lines(&lines(&file, now, remedy::write)) }
}

/// A sign-up of somebody's, with what the operator alone sees: its numbers, and the address that was typed.
pub(super) fn sign_up_json(sign_up: &SignUpEntry) -> Value {
    let mut document = json!(sign_up);
    document["id"] = sign_up.id.0.into();
    document["email"] = sign_up.email.as_str().into();
    document["waitingMail"] = sign_up.mail.as_ref().map(waiting_mail_json).into();
    document
}

/// The person's own document, their row of `members export`, and what the operator alone sees.
fn file_json(file: &PersonDetails, now: Timestamp) -> Value {
    let mut document = json!(PersonDocument::of(file));
    document["mail"]["obstacles"] = obstacles(file, now).into();
    document["signUps"] = file.sign_ups.iter().map(sign_up_json).collect();
    document["erasedAt"] = json!(file.person.erased_at);
    if let (Value::Object(document), Value::Object(row)) = (&mut document, super::export::as_json(&file.person)) {
        document.extend(row);
    }
    document
}
