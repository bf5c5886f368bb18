//! `/operator/partners/{partner}/settings`: a partner's contact and its mail budget.

use hyper::Request;

use super::{HERE, find, path};
use crate::domain::email::EmailAddress;
use crate::domain::partner::{MAX_MAILS_A_DAY, PartnerRecord};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::partners::records::{SetContact, SetMailsADay};
use crate::site::operator::form::{Form, FormField, FormMistake, FormPage, FormPart, Reads, Typed};
use crate::site::operator::session::OperatorVisit;
use crate::site::{PageResult, Visit};

fn form(typed: Typed, name: &str) -> Form {
    let fields = vec![
        FormField::line("contact", "Contact (optional)")
            .hint("An email address: who is written to when a webhook endpoint of theirs fails, or something is changed with their key")
            .wide(),
        FormField::number("mails", "Mails a day (optional)", Reads::Whole)
            .hint("Up to 1,000,000, whatever its reputation. Empty: the general limit and its reputation decide")
            .wide(),
    ];
    Form::new(vec![FormPart::new("", name, "", fields)], typed, "")
}

fn form_page(found: &OperatorVisit<'_>, partner: &PartnerRecord, form: &Form, was: [&str; 2]) -> Answer {
    let (name, back) = (&partner.name, path(partner));
    let [contact, mails] = was;
    FormPage {
        frame: found.frame(),
        title: "Contact and mail budget",
        back: (&back, name),
        says: &[
            "We write to the contact when something is changed with a key of theirs, and when an endpoint is disabled."
                .to_owned(),
        ],
        form,
        action: &format!("{back}/settings"),
        hidden: &[("was-contact", contact), ("was-mails", mails)],
        button: "Save",
    }
    .answer(found)
}

pub async fn show_settings(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let partner = find(&found, visit.parameter).await?;
    let contact = partner.contact.as_ref().map_or("", EmailAddress::as_typed);
    let mails = partner.mails_a_day.map_or_else(String::new, |mails| mails.to_string());
    let mut typed = Typed::default();
    typed.set("contact", contact);
    typed.set("mails", mails.as_str());
    Ok(form_page(&found, &partner, &form(typed, &partner.name), [contact, &mails]))
}

/// Saves what the form changed. What somebody else changed meanwhile, and this form did not, stays.
pub async fn save_settings(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let partner = find(&found, visit.parameter).await?;
    let typed = Typed::of(&fields);
    let changed = |name: &str| Some(typed.get(name).trim()).filter(|text| *text != typed.get(&format!("was-{name}")));
    let mut mistakes = Vec::new();
    let mut wrong = |input: &str, text: String| mistakes.push(FormMistake { text, input: Some(input.to_owned()) });
    let contact = changed("contact").map(|text| match text {
        "" => None,
        text => EmailAddress::parse(text).map_err(|why| wrong("contact", format!("Contact: {why}"))).ok(),
    });
    let mails = changed("mails").map(|text| match text.replace(',', "").parse() {
        _ if text.is_empty() => None,
        Ok(mails @ 1..=MAX_MAILS_A_DAY) => Some(mails),
        _ => {
            wrong("mails", "Mails a day: write a number from 1 to 1,000,000, or nothing. Suspending the partner stops all its mail".to_owned());
            None
        }
    });
    if !mistakes.is_empty() {
        let was = [typed.get("was-contact").to_owned(), typed.get("was-mails").to_owned()];
        let mut form = form(typed, &partner.name);
        form.mistakes = mistakes;
        return Ok(form_page(&found, &partner, &form, was.each_ref().map(String::as_str)));
    }
    let (name, mut says) = (&partner.name, Vec::new());
    if let Some(contact) = contact {
        let about = if contact.is_some() { "set for" } else { "taken from" };
        says.push(match &contact {
            Some(_) => format!("{name} will be emailed when something of theirs fails, or is changed with their key."),
            None => format!("{name} no longer has a contact."),
        });
        let set = SetContact { name: name.clone(), contact };
        found.stored(found.acting("partners contact", format!("{about} {name}")).run(set).await)?;
    }
    if let Some(mails) = mails {
        let figure = mails.map_or_else(|| "default".to_owned(), |mails: u32| mails.to_string());
        let act = found.acting("partners mail-budget", format!("{name}: {figure}"));
        found.stored(act.run(SetMailsADay(partner.id, mails)).await)?;
        says.push(match mails {
            None => format!("{name} has the general mail budget again."),
            Some(_) => format!("{name} may cause {figure} mails a day. Mail past that is held."),
        });
        says.push("Mail that is held stays held: the page Mail sends it.".to_owned());
    }
    if says.is_empty() {
        says.push("Nothing was changed.".to_owned());
    }
    Ok(found.done_at(&path(&partner), "Saved", &says))
}
