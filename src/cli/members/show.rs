//! `unionhall members show`: everything about a person, and why they get no mail.

use serde_json::{Value, json};

use super::{ShowPerson, address, nobody, people_of};
use crate::cli::mail::as_json as waiting_mail_json;
use crate::cli::{print_line, with_live_records};
use crate::domain::person::{PersonDetails, SignUpEntry};
use crate::domain::time::Timestamp;
use crate::operator::person::{lines, obstacles};
use crate::people::export::PersonDocument;

pub(super) fn run(task: &ShowPerson, now: Timestamp) -> anyhow::Result<()> {
    let email = address(&task.email)?;
    let found = with_live_records(&task.store, async |operator| {
        Ok(people_of(&task.store, &task.secret, &operator).await?.find(&email, now).await?)
    })?;
    let Some(file) = found else { return Err(nobody()) };
    if task.json {
        return print_line(&serde_json::to_string_pretty(&file_json(&file, now))?);
    }
    lines(&file, now).iter().try_for_each(|line| print_line(line))
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
