//! `/operator/mail/test`: sends one mail the way that all mail goes, and says what the mail server answered.

use hyper::Request;

use super::form::{Form, FormField, FormMistake, FormPage, FormPart, Typed};
use super::frame::OperatorSection;
use super::session::OperatorVisit;
use crate::domain::email::EmailAddress;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::{PageResult, Visit};

const HERE: OperatorSection = OperatorSection::Mail;

const PATH: &str = "/operator/mail/test";

fn form(typed: Typed) -> Form {
    let address = FormField::line("to", "To").hint("An address of yours; it is kept nowhere").wide();
    Form::new(vec![FormPart::new("", "The mail", "", vec![address])], typed, "")
}

fn form_page(found: &OperatorVisit<'_>, form: &Form) -> Answer {
    let says = [format!("Mail goes {}.", found.access.service.mail_goes_to)];
    FormPage {
        frame: found.frame(),
        title: "Send a test mail",
        back: (HERE.path(), HERE.name()),
        says: &says,
        form,
        action: PATH,
        hidden: &[],
        button: "Send it",
    }
    .answer(found)
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    Ok(form_page(&found, &form(Typed::default())))
}

pub async fn send(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let mut form = form(Typed::of(&fields));
    let to = match EmailAddress::parse(form.typed.get("to").trim()) {
        Ok(to) => to,
        Err(why) => {
            form.mistakes = vec![FormMistake { text: format!("To: {why}"), input: Some("to".to_owned()) }];
            return Ok(form_page(&found, &form));
        }
    };
    let service = &found.access.service;
    if !service.test_mails.take(&found.who.name, visit.now.tick) {
        return Ok(found.refuse(&service.test_mails.refusal()));
    }
    found.stored(found.operator().note(found.who.act("mail test", String::new(), visit.now.time)).await)?;
    Ok(match service.send_test_mail(&to, visit.now.time).await {
        Ok(says) => found.done_at(PATH, "The test mail was sent", &[says]),
        Err(why) => found.done_at(PATH, "The test mail was not sent", &[format!("The reason: {why}.")]),
    })
}
