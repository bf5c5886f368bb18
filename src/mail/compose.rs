//! From a due mail to a message with all its headers.

use std::sync::Arc;

use lettre::address::Envelope;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MessageBuilder, MultiPart, SinglePart};
use lettre::{Address, Message};
use tokio::sync::watch;

use super::letter::{Body, LetterFacts};
use super::report::mime::RETURN_PATH;
use super::{OutgoingMail, ReadableMail, SendError, campaign, message};
use crate::domain::catalog::Catalog;
use crate::domain::email::EmailAddress;
use crate::domain::mail::{CampaignNews, DueMail, MailAbout, MailKind, Receipt};
use crate::domain::partner::name::PartnerId;
use crate::domain::secret::token::{Purpose, TokenMaker};
use crate::domain::time::Timestamp;
use crate::domain::union::Union;

/// What every message of the union has in common.
#[derive(Clone)]
pub struct Composer {
    pub union: Arc<Union>,
    /// As it was last read.
    pub catalog: watch::Receiver<Catalog>,
    pub from: Mailbox,
    pub tokens: TokenMaker,
    /// The domain of return paths, where each mail has one of its own (VERP).
    pub bounces: Option<String>,
}

impl Composer {
    /// Nothing that a caller wrote is in it: not in the text and not in a header but the bare address it goes to.
    pub fn compose(&self, mail: &DueMail) -> Result<OutgoingMail, SendError> {
        let to = deliverable(&mail.recipient)?;
        let union = &self.facts();
        let site = &union.join_site;
        let decline_url = match &mail.about {
            MailAbout::SignUp(sign_up) => {
                Some(format!("{site}/not-me/{}", self.tokens.token(Purpose::Decline, *sign_up)))
            }
            // No one gets these without asking, or without accepting.
            MailAbout::SignIn(_) | MailAbout::Receipt(_) => None,
            MailAbout::Campaign(news) => {
                let token = self.tokens.person_token(Purpose::Unsubscribe(news.mail), news.person);
                Some(format!("{site}/unsubscribe/{token}"))
            }
        };
        let body = self.body(union, mail, decline_url.as_deref().unwrap_or_default());
        let id = self.tokens.mail_id(mail.id.0);
        // Large providers report complaints by it: the kind of mail, and the lane of the requester.
        let source = match (&mail.about, &mail.partner) {
            (MailAbout::Campaign(CampaignNews { campaign, .. }) | MailAbout::Receipt(Receipt { campaign, .. }), _) => {
                campaign.slug().to_string()
            }
            (_, Some(_)) => format!("lane{}", mail.lane.number()),
            (_, None) => "form".to_owned(),
        };
        let domain = self.from.email.domain();
        let name = format!("{}.{id}", mail.id.0);
        let mut message = self
            .message(&to, self.return_path(mail)?, &body.subject, &name, mail.first_attempt_at)?
            .raw_header(header("Feedback-ID", format!("{}:{source}:unionhall:{domain}", mail.kind.name())));
        if let Some(decline_url) = &decline_url {
            message = message
                .raw_header(header("List-Unsubscribe", format!("<{decline_url}>")))
                .raw_header(header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()));
        }
        let message = message.multipart(
            MultiPart::builder()
                .kind(lettre::message::MultiPartKind::Alternative)
                .boundary(format!("part-{id}"))
                .singlepart(SinglePart::builder().header(ContentType::TEXT_PLAIN).body(body.text.clone()))
                .singlepart(SinglePart::builder().header(ContentType::TEXT_HTML).body(body.html.clone())),
        );
        let name = format!("{:012}-{id}", mail.id.0);
        let readable = self.readable(&to, body, mail.first_attempt_at);
        Ok(OutgoingMail {
            name,
            message: message.map_err(unmade)?,
            readable,
            inbox: mail.partner_id,
            due: Some(mail.clone()),
        })
    }

    /// What the headers of every message have in common.
    fn message(
        &self,
        to: &Address,
        return_path: Address,
        subject: &str,
        id: &str,
        date: Timestamp,
    ) -> Result<MessageBuilder, SendError> {
        // Said outright, for lettre would read it back from the headers, where it knows fewer addresses than we take.
        let envelope = Envelope::new(Some(return_path), vec![to.clone()]).map_err(unmade)?;
        Ok(Message::builder()
            .envelope(envelope)
            .from(self.from.clone())
            .to(Mailbox::new(None, to.clone()))
            .subject(subject)
            .date(std::time::UNIX_EPOCH + std::time::Duration::from_millis(date.as_millis().unsigned_abs()))
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .raw_header(header("Auto-Submitted", "auto-generated".to_owned())))
    }

    fn readable(&self, to: &Address, Body { subject, text, html }: Body, date: Timestamp) -> ReadableMail {
        ReadableMail { to: to.to_string(), from: self.from.to_string(), subject, date: date.to_string(), text, html }
    }

    /// A mail without a row in the outbox, of plain text: to somebody who works with the union. `inbox` is a partner's in the sandbox.
    pub fn plain_text(
        &self,
        to: &str,
        (inbox, name): (Option<PartnerId>, String),
        (subject, text): (String, String),
        date: Timestamp,
    ) -> Result<OutgoingMail, SendError> {
        let to = deliverable(to)?;
        let message = self
            .message(&to, self.from.email.clone(), &subject, &name, date)?
            .singlepart(SinglePart::builder().header(ContentType::TEXT_PLAIN).body(text.clone()));
        let readable = self.readable(&to, Body { subject, text, html: String::new() }, date);
        Ok(OutgoingMail { name, message: message.map_err(unmade)?, readable, inbox, due: None })
    }

    /// Where the mail comes back to if it does.
    fn return_path(&self, mail: &DueMail) -> Result<Address, SendError> {
        let token = match &mail.about {
            MailAbout::SignUp(sign_up) => Some(self.tokens.token(Purpose::Bounce, *sign_up)),
            MailAbout::SignIn(_) => None,
            MailAbout::Campaign(CampaignNews { person, .. }) | MailAbout::Receipt(Receipt { person, .. }) => {
                Some(self.tokens.person_token(Purpose::BounceOfPerson, *person))
            }
        };
        let (Some(domain), Some(token)) = (&self.bounces, token) else { return Ok(self.from.email.clone()) };
        let name = format!("{RETURN_PATH}{token}");
        Address::new(name, domain)
            .map_err(|error| SendError::Later(format!("the return path could not be made: {error}")))
    }

    /// The union with the catalog as it is now.
    fn facts(&self) -> Union {
        Union { catalog: self.catalog.borrow().clone(), ..Union::clone(&self.union) }
    }

    fn body(&self, union: &Union, mail: &DueMail, decline_url: &str) -> Body {
        let facts = LetterFacts {
            union,
            language: mail.language,
            partner: mail.partner.as_deref(),
            asked_at: mail.asked_at,
            decline_url,
            referral_link: &mail.code.link(&union.join_site),
        };
        match &mail.about {
            MailAbout::SignIn(sign_in) => {
                let enter_url = format!("{}/enter/{}", union.own_page(), self.tokens.sign_in_token(*sign_in));
                let code = self.tokens.sign_in_code(*sign_in).to_string();
                message::sign_in(&facts, &enter_url, &code)
            }
            MailAbout::SignUp(sign_up) if mail.kind == MailKind::Confirm => {
                let token = self.tokens.token(Purpose::Confirm, *sign_up);
                let confirm_url = format!("{}/confirm/{token}", union.join_site);
                message::confirm(&facts, &confirm_url)
            }
            MailAbout::SignUp(sign_up) => {
                let token = self.tokens.token(Purpose::Decline, *sign_up);
                let page = format!("{}/already-member/{token}", self.union.join_site);
                message::already_member(&facts, &page)
            }
            MailAbout::Campaign(CampaignNews { mail, campaign: news, .. }) => {
                let page = format!("{}/campaigns/{}", union.join_site, news.slug());
                campaign::body(*mail, news, &facts, (&page, decline_url))
            }
            MailAbout::Receipt(receipt) => {
                let page = format!("{}/campaigns/{}", union.join_site, receipt.campaign.slug());
                campaign::receipt(receipt, &facts, &page)
            }
        }
    }
}

/// The address with its domain as mail servers of any age take it. Letters of other scripts before the @ need a server
/// that speaks SMTPUTF8; lettre asks for it, and refuses to send where it is missing.
fn deliverable(recipient: &str) -> Result<lettre::Address, SendError> {
    let email = EmailAddress::parse_any_length(recipient).map_err(|_| SendError::Rejected)?;
    // Our own grammar has been applied, and it lets nothing through that could break a header or a command; lettre's
    // would refuse some addresses that we have promised mail.
    Ok(lettre::Address::new_dangerous(email.local_part(), email.deliverable_domain()))
}

fn header(name: &'static str, text: String) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), text)
}

fn unmade(error: impl std::fmt::Display) -> SendError {
    SendError::Later(format!("the message could not be made: {error}"))
}
