//! The development server's mailbox, read back for its pages.

use mail_parser::{Message, MessageParser};

use super::view::{Letter, OpenLetter};
use crate::mail::mailbox::MailboxFolder;

/// One message, opened.
pub(super) struct Opened {
    to: String,
    from: String,
    subject: String,
    date: String,
    text: String,
    pub html: String,
}

impl Opened {
    fn read(bytes: &[u8]) -> Option<Self> {
        let message = MessageParser::default().parse(bytes)?;
        let (to, from) = (addresses(message.to()), addresses(message.from()));
        Some(Self {
            to,
            from,
            subject: message.subject().unwrap_or_default().to_owned(),
            date: date(&message),
            text: message.body_text(0).unwrap_or_default().into_owned(),
            html: message.body_html(0).unwrap_or_default().into_owned(),
        })
    }

    pub(super) fn view<'a>(&'a self, html_path: &'a str) -> OpenLetter<'a> {
        OpenLetter {
            to: &self.to,
            from: &self.from,
            subject: &self.subject,
            date: &self.date,
            text: &self.text,
            html_path,
        }
    }
}

fn addresses(list: Option<&mail_parser::Address<'_>>) -> String {
    let addresses = list.into_iter().flat_map(mail_parser::Address::iter).filter_map(|one| one.address());
    addresses.collect::<Vec<_>>().join(", ")
}

fn date(message: &Message<'_>) -> String {
    message.date().map(mail_parser::DateTime::to_rfc3339).unwrap_or_default()
}

#[derive(Debug)]
pub struct DevMailbox(pub MailboxFolder);

impl DevMailbox {
    pub(super) fn open(&self, name: &str) -> Option<Opened> {
        Opened::read(&self.0.read(name)?)
    }

    pub(super) fn list(&self) -> std::io::Result<Vec<Letter>> {
        let letters = self.0.names()?.into_iter().filter_map(|name| {
            let Opened { to, subject, date, .. } = self.open(&name)?;
            Some(Letter { name, to, subject, date })
        });
        Ok(letters.collect())
    }
}
