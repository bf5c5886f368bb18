//! What all letters have in common: the facts they are made of, what their templates read, and what comes out.

use askama::Template;

use crate::domain::language::{Language, Words};
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::union::colors::Colors;

/// A letter's content, ready to be put into an envelope.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Body {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// What the letters have in common.
#[derive(Clone, Copy)]
pub(super) struct LetterFacts<'a> {
    pub union: &'a Union,
    /// None where the reader's is not known: then it is English.
    pub language: Option<Language>,
    /// The partner whose assistant asked; none when our own form was used.
    pub partner: Option<&'a str>,
    pub asked_at: Timestamp,
    /// Empty in a letter that is about no sign-up.
    pub decline_url: &'a str,
    pub referral_link: &'a str,
}

/// What every template reads.
pub(super) struct Common<'a> {
    pub union: &'a Union,
    pub colors: Colors,
    pub language: Language,
    pub words: &'static Words,
    /// Where the union can be reached, on one line: its postal address, its contact address, or both.
    pub contact: Option<String>,
    /// Who runs the union, what joining costs, how the union earns.
    pub answers: [String; 3],
    /// Who asked, and when.
    pub asked: String,
    /// What a partner who asked may learn; empty where none did.
    pub partner_notice: String,
    pub decline_url: &'a str,
    pub referral_link: &'a str,
    pub own_page: String,
    /// The same in other languages.
    pub elsewhere: Vec<(Language, String)>,
}

impl<'a> LetterFacts<'a> {
    /// What a letter's template reads; its link leads there.
    pub(super) fn common(&self, leads_to: &str) -> Common<'a> {
        let language = self.language.unwrap_or_default();
        let (union, words) = (self.union, language.words());
        let date = words.date(self.asked_at);
        let asked = match self.partner {
            Some(partner) => words.mail.asked_by_partner.put("partner", partner).put("date", date),
            None => words.mail.asked_by_form.put("date", date),
        };
        // What the link leads to is in whatever language its reader asks for there.
        let others = language.others().map(|other| (other, format!("{leads_to}?lang={}", other.code())));
        Common {
            union,
            colors: union.colors,
            language,
            words,
            contact: union.contact_line(),
            answers: union.catalog.answers(language),
            asked: asked.plain(),
            partner_notice: self
                .partner
                .map(|partner| words.mail.partner_told.put("partner", partner).plain())
                .unwrap_or_default(),
            decline_url: self.decline_url,
            referral_link: self.referral_link,
            own_page: union.own_page(),
            elsewhere: others.collect(),
        }
    }
}

/// Writing to a string fails only where a value's own formatting does, and these are texts and numbers.
pub(super) fn rendered(part: &impl Template) -> String {
    part.render().unwrap_or_default()
}
