//! The letters: confirm your sign-up, you are a member already, the way to your own page, and those of `campaign.rs`.
//!
//! Pure functions from facts to a subject, a text part and an HTML part, in the language of whoever reads them. Those about a
//! sign-up say who asked and when, and give a way to say "this wasn't me". Whoever has a letter sent may not put words into it:
//! there is no field for any.

use askama::Template;

use super::letter::{Body, Common, LetterFacts, rendered};
use crate::domain::campaign::CampaignMail;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::mail::MailKind;
use crate::domain::share;
use crate::domain::sign_in::SIGN_IN_FOR;
use crate::domain::sign_up::PENDING_FOR;

/// What a letter is about: its link.
#[derive(Debug, Clone, Copy)]
pub enum Letter<'a> {
    /// Asks a person to confirm the sign-up that was made for their address.
    Confirm { confirm_url: &'a str },
    /// Tells a member that somebody asked to sign their address up again. Only the mailbox learns of the membership; the
    /// caller who asked does not.
    AlreadyMember {
        /// The same on a page, in whatever language.
        page: &'a str,
    },
    /// The way to one's own page: a link, and a code for another device.
    SignIn { enter_url: &'a str, code: &'a str },
    /// News of a campaign: its page, and where its kind of mail is switched off.
    Campaign { mail: CampaignMail, campaign: &'a CampaignRecord, page: &'a str, unsubscribe: &'a str },
}

#[derive(Template)]
#[template(path = "mail/confirm.txt")]
struct ConfirmText<'a> {
    letter: &'a Common<'a>,
    confirm_url: &'a str,
    notice: &'a str,
    days: u64,
}

#[derive(Template)]
#[template(path = "mail/confirm.html")]
struct ConfirmHtml<'a> {
    letter: &'a Common<'a>,
    subject: &'a str,
    confirm_url: &'a str,
    notice: &'a str,
    days: u64,
}

#[derive(Template)]
#[template(path = "mail/already_member.txt")]
struct AlreadyMemberText<'a> {
    letter: &'a Common<'a>,
}

#[derive(Template)]
#[template(path = "mail/already_member.html")]
struct AlreadyMemberHtml<'a> {
    letter: &'a Common<'a>,
    subject: &'a str,
    share_by_mail: String,
}

#[derive(Template)]
#[template(path = "mail/sign_in.txt")]
struct SignInText<'a> {
    letter: &'a Common<'a>,
    enter_url: &'a str,
    code: &'a str,
    minutes: u64,
}

#[derive(Template)]
#[template(path = "mail/sign_in.html")]
struct SignInHtml<'a> {
    letter: &'a Common<'a>,
    subject: &'a str,
    enter_url: &'a str,
    code: &'a str,
    minutes: u64,
}

impl Letter<'_> {
    pub fn body(&self, facts: &LetterFacts<'_>) -> Body {
        let letter = &facts.common(self.leads_to());
        let (union, language) = (facts.union, letter.language);
        match *self {
            Letter::Confirm { confirm_url } => {
                let subject = MailKind::Confirm.subject(&union.name, language);
                let days = PENDING_FOR.as_secs() / (24 * 3600);
                let notice = &*union.notices.in_language(language).words;
                Body {
                    text: rendered(&ConfirmText { letter, confirm_url, notice, days }),
                    html: rendered(&ConfirmHtml { letter, subject: &subject, confirm_url, notice, days }),
                    subject,
                }
            }
            Letter::AlreadyMember { .. } => {
                let subject = MailKind::AlreadyMember.subject(&union.name, language);
                let share_by_mail = share::by_mail(letter.words, &union.name, facts.referral_link);
                Body {
                    text: rendered(&AlreadyMemberText { letter }),
                    html: rendered(&AlreadyMemberHtml { letter, subject: &subject, share_by_mail }),
                    subject,
                }
            }
            Letter::SignIn { enter_url, code } => {
                let subject = MailKind::SignIn.subject(&union.name, language);
                let minutes = SIGN_IN_FOR.as_secs() / 60;
                Body {
                    text: rendered(&SignInText { letter, enter_url, code, minutes }),
                    html: rendered(&SignInHtml { letter, subject: &subject, enter_url, code, minutes }),
                    subject,
                }
            }
            Letter::Campaign { mail, campaign, page, unsubscribe } => {
                super::campaign::body(mail, campaign, letter, (page, unsubscribe))
            }
        }
    }

    /// Where its link leads.
    fn leads_to(&self) -> &str {
        match *self {
            Letter::Confirm { confirm_url } => confirm_url,
            Letter::AlreadyMember { page } => page,
            Letter::SignIn { enter_url, .. } => enter_url,
            Letter::Campaign { page, .. } => page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::campaign::CampaignState;
    use crate::domain::campaign::demand::DemandSheet;
    use crate::domain::campaign::tests::{campaign, offered};
    use crate::domain::language::Language;
    use crate::domain::time::Timestamp;
    use crate::domain::union::Union;

    const CONFIRM: Letter<'_> = Letter::Confirm { confirm_url: "https://union.example/confirm/1-abc" };
    const ALREADY_MEMBER: Letter<'_> = Letter::AlreadyMember { page: "https://union.example/already-member/1-abc" };
    const SIGN_IN: Letter<'_> = Letter::SignIn { enter_url: "https://union.example/me/enter/1-abc", code: "7KQ2-M9X4" };

    fn facts(union: &Union) -> LetterFacts<'_> {
        LetterFacts {
            union,
            language: None,
            partner: Some("Acme Assistant"),
            asked_at: Timestamp::from_millis(1_794_656_800_000),
            decline_url: "https://union.example/not-me/1-abc",
            referral_link: "https://union.example/joinusyd8z2z0xsrw1",
        }
    }

    /// The letters about a campaign, in each state that they speak of.
    fn campaign_letters() -> Vec<(&'static str, Body)> {
        let union = UnionSettings::sample();
        let (page, unsubscribe) =
            ("https://union.example/campaigns/internet-2027", "https://union.example/unsubscribe/1-abc");
        let body = |mail, campaign: &CampaignRecord, language| {
            let facts = LetterFacts { language: Some(language), partner: None, decline_url: "", ..facts(&union) };
            Letter::Campaign { mail, campaign, page, unsubscribe }.body(&facts)
        };
        let gathering = campaign(CampaignState::Gathering);
        let waits = offered(CampaignState::Offered);
        let few = offered(CampaignState::Closed);
        let sheet = DemandSheet { accepted: 1230, ..DemandSheet::default() };
        let closed = CampaignRecord { sheet: Some((Timestamp::from_millis(0), sheet)), ..few.clone() };
        let (opened, offer, result) = (CampaignMail::Opened, CampaignMail::Offer, CampaignMail::Result);
        vec![
            ("campaign_opened", body(opened, &gathering, Language::English)),
            ("campaign_opened_spanish", body(opened, &gathering, Language::Spanish)),
            ("campaign_offer", body(offer, &waits, Language::English)),
            ("campaign_offer_spanish", body(offer, &waits, Language::Spanish)),
            ("campaign_result", body(result, &closed, Language::English)),
            ("campaign_result_spanish", body(result, &closed, Language::Spanish)),
            ("campaign_result_few", body(result, &few, Language::English)),
            ("campaign_result_cancelled", body(result, &campaign(CampaignState::Cancelled), Language::English)),
        ]
    }

    /// Each letter, through a partner and through our form, with and without a contact, and in Spanish.
    fn letters() -> Vec<(&'static str, Body)> {
        let union = UnionSettings::sample();
        let bare = Union { contact_email: None, postal_address: None, ..UnionSettings::sample() };
        let by_form = LetterFacts { partner: None, language: Some(Language::English), ..facts(&bare) };
        let spanish = LetterFacts { language: Some(Language::Spanish), ..facts(&union) };
        vec![
            ("confirm", CONFIRM.body(&facts(&union))),
            ("confirm_by_form", CONFIRM.body(&by_form)),
            ("confirm_spanish", CONFIRM.body(&spanish)),
            ("already_member", ALREADY_MEMBER.body(&facts(&union))),
            ("already_member_by_form", ALREADY_MEMBER.body(&by_form)),
            ("already_member_spanish", ALREADY_MEMBER.body(&spanish)),
            ("sign_in", SIGN_IN.body(&facts(&union))),
            ("sign_in_spanish", SIGN_IN.body(&spanish)),
        ]
        .into_iter()
        .chain(campaign_letters())
        .collect()
    }

    #[test]
    fn the_letters_read_as_agreed() {
        for (name, body) in letters() {
            insta::assert_snapshot!(name, format!("Subject: {}\n\n{}\n=====\n{}", body.subject, body.text, body.html));
            // For looking at them: `UNIONHALL_PAGES_TO=FOLDER cargo test --lib letters_read`.
            if let Some(folder) = std::env::var_os("UNIONHALL_PAGES_TO") {
                let file = std::path::Path::new(&folder).join(format!("mail-{name}.html"));
                std::fs::write(file, body.html).unwrap();
            }
        }
    }

    #[test]
    fn a_letter_loads_nothing_and_links_only_where_it_was_told_to() {
        for (name, body) in letters() {
            for forbidden in ["<script", "<img", "src=", "url(", "<table", "<link", "{"] {
                let styled = body.html.replace("</style>", "<style>");
                let unstyled: String = styled.split("<style>").step_by(2).collect();
                assert!(!unstyled.contains(forbidden), "{name} holds {forbidden}");
            }
            assert!(!body.text.contains('{') && !body.text.contains('<'), "{name}: {}", body.text);
            let mut links = body.html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
            assert!(
                links.all(|link| link.starts_with("https://union.example/") || link.starts_with("mailto:?subject=")),
                "{name}"
            );
            assert_eq!(body.html.matches("class=\"button\"").count(), 1, "{name}");
            for page in ["/privacy", "/terms", "/me"] {
                let link = format!("https://union.example{page}");
                assert!(body.html.contains(&link) && body.text.contains(&link), "{name} leads to {page}");
            }
            // Whoever asks to sign in has asked for that mail, and no other comes of it.
            let about_a_sign_up = !name.starts_with("sign_in") && !name.starts_with("campaign");
            let (in_text, in_html) = (body.text.contains("/unsubscribe/"), body.html.contains("/unsubscribe/"));
            assert_eq!((in_text, in_html), (name.starts_with("campaign"), name.starts_with("campaign")), "{name}");
            assert_eq!(body.text.contains("/not-me/"), about_a_sign_up, "{name}");
            let other = if name.ends_with("_spanish") { "Read this in English" } else { "Leer esto en español" };
            assert!(body.text.contains(other), "{name}: who reads another language is led to it");
        }
    }

    #[test]
    fn names_are_text_in_the_html_part_and_untouched_in_the_other() {
        let name = "Ann & \"Bob\" <script>";
        let union = Union { name: name.to_owned(), postal_address: Some(name.to_owned()), ..UnionSettings::sample() };
        let body = CONFIRM.body(&LetterFacts { partner: Some(name), ..facts(&union) });
        assert!(!body.html.contains("<script") && body.html.contains("Ann &#38; &#34;Bob&#34; &#60;script&#62;"));
        assert!(body.text.contains(name) && body.subject.contains(name) && !body.subject.contains('\n'));
    }
}
