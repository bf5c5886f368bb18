//! The join form: from what a browser sent to what a person says when they sign up, or back to the person with each mistake
//! beside its field.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::view::{JoinForm, ShownAgain};
use crate::domain::answers::TypedAnswers;
use crate::domain::campaign::CampaignSlug;
use crate::domain::email::suggestion::suggestion;
use crate::domain::email::{BadEmail, EmailAddress};
use crate::domain::language::Words;
use crate::domain::referral::ReferralCode;
use crate::domain::secret::seal::Sealer;
use crate::domain::simulator::is_simulators;
use crate::domain::time::{DAY, Timestamp};
use crate::membership::Application;

/// How long the page after a form can be loaded again; then it leads to the form.
const SHOWN_FOR: Duration = DAY;

/// The longest text that is sealed for an address or a cookie, in characters: proxies take answers whose head is no longer than 4 KB.
pub(super) const MOST_SEALED: usize = 3000;

/// What came of a form that was sent, as the address of the page after it says it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Turn {
    /// It was taken; whether its mail may wait.
    Taken(bool),
    /// It is shown again: for that reason, or with what is wrong with it.
    Again(Option<ShownAgain>),
    /// A member's answers were not taken; with the token of their session, so that they are shown to nobody else.
    Answers { token: String },
}

#[derive(Default)]
pub(super) struct SentForm {
    email: String,
    pub answers: TypedAnswers,
    pub ref_code: String,
    pub campaign: Option<CampaignSlug>,
    pub language: Option<String>,
    /// It is not to be taken, but shown again.
    pub changes: bool,
    /// The address that was asked about before, and is right.
    sure: String,
    /// The address whose button was pressed after the one that it was asked about was edited.
    meant: Option<String>,
    /// What people cannot see and leave empty.
    pub website: String,
    /// The question that the form asked while it was throttled, and what the browser answered.
    pub question: Option<String>,
    pub answer: String,
}

impl SentForm {
    pub(super) fn read(body: &[u8]) -> Self {
        Self::of(form_urlencoded::parse(body))
    }

    /// A form that was sealed, and what came of it; none if its time is over or it is none of ours.
    pub(super) fn unseal(sealer: &Sealer, sealed: &str, now: Timestamp) -> Option<(Self, Turn)> {
        let (turn, fields): (Turn, Vec<(String, String)>) =
            serde_json::from_str(&sealer.open(sealed, now, SHOWN_FOR)?).ok()?;
        Some((Self::of(fields.into_iter().map(|(name, value)| (name.into(), value.into()))), turn))
    }

    /// The same for the address of the page after it, so that whoever loads that page again sends nothing; none where it is too
    /// long for one.
    pub(super) fn seal(&self, sealer: &Sealer, turn: &Turn, now: Timestamp) -> Option<String> {
        let sure = Some(("sure", self.sure.clone())).filter(|(_, sure)| !sure.is_empty());
        let meant = self.meant.clone().map(|meant| ("meant", meant));
        let language = self.language.as_ref().map(|code| ("lang", code.clone()));
        let fields: Vec<_> = self.fields().into_iter().chain(sure).chain(meant).chain(language).collect();
        let sealed = sealer.seal(&serde_json::json!((turn, fields)).to_string(), now);
        (sealed.len() <= MOST_SEALED).then_some(sealed)
    }

    fn of<'a>(fields: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>) -> Self {
        let mut sent = Self::default();
        let (mut instead, mut asked) = (None, None);
        for (name, value) in fields {
            match &*name {
                "email" => sent.email = value.trim().to_owned(),
                // The button of the address that was meant.
                "instead" => instead = Some(value.trim().to_owned()),
                "asked" => asked = Some(value),
                "meant" => sent.meant = Some(value.into_owned()),
                "sure" => sent.sure = value.into_owned(),
                "refCode" => sent.ref_code = value.into_owned(),
                "campaign" => sent.campaign = value.parse().ok(),
                "lang" => sent.language = Some(value.into_owned()),
                "change" => sent.changes = true,
                "website" => sent.website = value.into_owned(),
                "question" => sent.question = Some(value.into_owned()),
                "answer" => sent.answer = value.into_owned(),
                answer => sent.answers.take(answer, &value),
            }
        }
        match instead {
            Some(instead) if asked.is_some_and(|asked| asked != sent.email) => sent.meant = Some(instead),
            Some(instead) => {
                sent.sure.clone_from(&instead);
                sent.email = instead;
            }
            None => {}
        }
        sent
    }

    pub(super) fn email(&self) -> &str {
        &self.email
    }

    pub(super) fn form(&self) -> JoinForm {
        JoinForm {
            email: self.email.clone(),
            answers: self.answers.clone(),
            campaign: self.campaign.clone(),
            ..JoinForm::default()
        }
    }

    /// The same as fields of another form, which brings this one back.
    pub(super) fn fields(&self) -> Vec<(&'static str, String)> {
        let mut fields = vec![
            ("email", self.email.clone()),
            ("refCode", self.ref_code.clone()),
            ("campaign", self.campaign.as_ref().map(ToString::to_string).unwrap_or_default()),
        ];
        fields.retain(|(_, value)| !value.is_empty());
        fields.extend(self.answers.fields());
        fields
    }

    /// What it says, or the form again with each mistake beside its field. An address at a host that looks misspelled is asked about, once.
    pub(super) fn check(&self, words: &Words) -> Result<Application, Box<JoinForm>> {
        let email = EmailAddress::parse(&self.email).map_err(|why| email_mistake(words, why, &self.email));
        let email = match email {
            Ok(email) if is_simulators(&email) => Err(words.mistake.email_simulator.to_string()),
            email => email,
        };
        let suggested = || self.meant.clone().or_else(|| suggestion(&self.email));
        let meant = if self.sure != self.email { suggested() } else { None };
        match (email, self.answers.check(words), meant) {
            (Ok(email), Ok(answers), None) => {
                Ok(Application { email, answers, ref_code: ReferralCode::from_pasted(&self.ref_code) })
            }
            (email, answers, meant) => Err(Box::new(JoinForm {
                email_error: email.err(),
                answers: answers.err().map_or_else(|| self.answers.clone(), |answers| *answers),
                suggestion: meant,
                ..self.form()
            })),
        }
    }
}

pub(super) fn email_mistake(words: &Words, why: BadEmail, typed: &str) -> String {
    let words = &words.mistake;
    let (plain, meant) = match why {
        BadEmail::Empty => return words.email_empty.to_string(),
        BadEmail::TooLong | BadEmail::LongLocalPart => return words.email_long.to_string(),
        // Of two addresses, whatever else is wrong with them.
        _ if typed.matches('@').count() > 1 => return words.email_several.to_string(),
        BadEmail::Several | BadEmail::SecondAt => return words.email_several.to_string(),
        BadEmail::Lookalike => return words.email_letter.to_string(),
        BadEmail::NoAt | BadEmail::NoLocalPart | BadEmail::Domain => {
            (&words.email_incomplete, &words.email_incomplete_meant)
        }
        BadEmail::Mailto | BadEmail::Invisible | BadEmail::TwoDots | BadEmail::OuterDot | BadEmail::LocalCharacter => {
            (&words.email_wrong, &words.email_wrong_meant)
        }
    };
    match suggestion(typed) {
        Some(suggestion) => meant.put("suggestion", suggestion).plain(),
        None => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::catalog::category::Category;
    use crate::domain::language::Language;

    fn check(body: &str) -> Result<Application, Box<JoinForm>> {
        SentForm::read(body.as_bytes()).check(Language::English.words())
    }

    #[test]
    fn a_misspelled_host_is_asked_about_once_and_never_put_right_by_us() {
        let asked = check("email=kim%40gmial.com&internet=true").unwrap_err();
        assert_eq!((asked.email.as_str(), asked.suggestion.as_deref()), ("kim@gmial.com", Some("kim@gmail.com")));
        assert!(asked.email_error.is_none() && asked.answers.chosen().contains(Category::Internet));
        let kept = check("email=kim%40gmial.com&sure=kim%40gmial.com").unwrap();
        assert_eq!(kept.email.as_typed(), "kim@gmial.com");
        let changed = check("email=kim%40gmial.com&instead=kim%40gmail.com").unwrap();
        assert_eq!(changed.email.as_typed(), "kim@gmail.com");
        let edited = check("email=kim%40example.com&asked=kim%40gmial.com&instead=kim%40gmail.com").unwrap_err();
        assert_eq!((edited.email.as_str(), edited.suggestion.as_deref()), ("kim@example.com", Some("kim@gmail.com")));
        let either = "email=kim%40example.com&asked=kim%40example.com";
        for (pressed, taken) in
            [("instead=kim%40gmail.com", "kim@gmail.com"), ("sure=kim%40example.com", "kim@example.com")]
        {
            assert_eq!(check(&format!("{either}&{pressed}")).unwrap().email.as_typed(), taken);
        }
        let another = check("email=kim%40yaho.com&sure=kim%40gmial.com").unwrap_err();
        assert_eq!(another.suggestion.as_deref(), Some("kim@yahoo.com"), "another address is asked about anew");
        let half = check("email=maria%40gmail").unwrap_err();
        assert_eq!(half.suggestion.as_deref(), Some("maria@gmail.com"), "to take with one press");
        assert!(half.email_error.unwrap().contains("maria@gmail.com"));
    }

    #[test]
    fn mistakes_are_told_in_peoples_words() {
        let message = |email: &str| {
            let body = form_urlencoded::Serializer::new(String::new()).append_pair("email", email).finish();
            check(&body).unwrap_err().email_error.unwrap()
        };
        for (typed, said) in [
            ("", "Type your email address"),
            ("kim@example", "looks incomplete: did you mean kim@example.com?"),
            ("kim", "looks incomplete. A complete one"),
            ("kim@", "looks incomplete. A complete one"),
            ("kim lee@gmail.com", "did you mean kimlee@gmail.com?"),
            ("kim..lee@gmail.com", "doesn't look like an email address"),
            ("a@b.com, c@d.com", "Type just one address"),
            ("confirm+1@Simulator.test", "only for tests with a test key"),
        ] {
            assert!(message(typed).contains(said), "{typed}: {}", message(typed));
        }
        for language in Language::ALL {
            for typed in ["kim@example", "@example.com", "a..b@example.com", "kim@-.com"] {
                let why = EmailAddress::parse(typed).unwrap_err();
                let said = email_mistake(language.words(), why, typed);
                assert!(!said.contains("domain") && !said.contains("parts") && !said.contains('{'), "{said}");
            }
        }
    }
}
