//! The letters: confirm your sign-up, you are a member already, the way to your own page, and those of `campaign.rs`.
//!
//! Pure functions from facts to a subject, a text part and an HTML part, in the reader's language. Those about a sign-up say who
//! asked and when, and give a way to say "this wasn't me". The caller who asked may not put words into it: there is no field for any.

use askama::Template;

use super::letter::{Body, Common, LetterFacts, rendered};
use crate::domain::mail::MailKind;
use crate::domain::share;
use crate::domain::sign_in::SIGN_IN_FOR;
use crate::domain::sign_up::PENDING_FOR;

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

/// Asks a person to confirm the sign-up that was made for their address.
pub(super) fn confirm(facts: &LetterFacts<'_>, confirm_url: &str) -> Body {
    let letter = &facts.common(confirm_url);
    let subject = MailKind::Confirm.subject(&facts.union.name, letter.language);
    let days = PENDING_FOR.as_secs() / (24 * 3600);
    let notice = &*facts.union.notices.in_language(letter.language).words;
    Body {
        text: rendered(&ConfirmText { letter, confirm_url, notice, days }),
        html: rendered(&ConfirmHtml { letter, subject: &subject, confirm_url, notice, days }),
        subject,
    }
}

/// Tells a member that somebody asked to sign their address up again. Only the mailbox learns of the membership; the caller
/// who asked does not. `page` has the same in any language.
pub(super) fn already_member(facts: &LetterFacts<'_>, page: &str) -> Body {
    let letter = &facts.common(page);
    let subject = MailKind::AlreadyMember.subject(&facts.union.name, letter.language);
    let share_by_mail = share::by_mail(letter.words, &facts.union.name, facts.referral_link);
    Body {
        text: rendered(&AlreadyMemberText { letter }),
        html: rendered(&AlreadyMemberHtml { letter, subject: &subject, share_by_mail }),
        subject,
    }
}

/// The way to one's own page: a link, and a code for another device.
pub(super) fn sign_in(facts: &LetterFacts<'_>, enter_url: &str, code: &str) -> Body {
    let letter = &facts.common(enter_url);
    let subject = MailKind::SignIn.subject(&facts.union.name, letter.language);
    let minutes = SIGN_IN_FOR.as_secs() / 60;
    Body {
        text: rendered(&SignInText { letter, enter_url, code, minutes }),
        html: rendered(&SignInHtml { letter, subject: &subject, enter_url, code, minutes }),
        subject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::campaign::acceptance::{Handover, Reference};
    use crate::domain::campaign::demand::DemandSheet;
    use crate::domain::campaign::record::{CampaignRecord, Withdrawal};
    use crate::domain::campaign::tests::{campaign, offered};
    use crate::domain::campaign::{CampaignMail, CampaignState};
    use crate::domain::language::Language;
    use crate::domain::mail::{PersonRef, Receipt};
    use crate::domain::time::Timestamp;
    use crate::domain::union::Union;

    const CONFIRM: &str = "https://union.example/confirm/1-abc";
    const ALREADY_MEMBER: &str = "https://union.example/already-member/1-abc";
    const SIGN_IN: (&str, &str) = ("https://union.example/me/enter/1-abc", "7KQ2-M9X4");

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
            crate::mail::campaign::body(mail, campaign, &facts, (page, unsubscribe))
        };
        let gathering = campaign(CampaignState::Gathering);
        let mut waits = offered(CampaignState::Offered);
        for (_, text) in &mut waits.offer.as_mut().unwrap().terms.texts {
            text.details = Some("300 Mbit/s, router included.".to_owned());
        }
        let few = offered(CampaignState::Closed);
        let sheet = DemandSheet { accepted: 1230, ..DemandSheet::default() };
        let closed = CampaignRecord { sheet: Some((Timestamp::from_millis(0), sheet)), ..few.clone() };
        let (opened, offer, result) = (CampaignMail::Opened, CampaignMail::Offer, CampaignMail::Result);
        let withdrawal = Withdrawal {
            at: Timestamp::from_millis(1_794_656_800_000),
            supplier: "Example Fiber".to_owned(),
            reasons: Language::ALL
                .map(|language| (language, format!("They cannot deliver ({}).", language.code())))
                .into(),
        };
        let withdrawn = CampaignRecord { withdrawn: Some(withdrawal), ..campaign(CampaignState::Negotiating) };
        let mut addresses = waits.clone();
        addresses.offer.as_mut().unwrap().terms.handover = Some(Handover::Address);
        let receipt = |campaign: &CampaignRecord, language| {
            let facts = LetterFacts { language: Some(language), partner: None, decline_url: "", ..facts(&union) };
            let receipt = Receipt {
                campaign: campaign.clone().into(),
                person: PersonRef { id: 1, created_at: Timestamp::from_millis(0) },
                reference: Reference::from_random(&[1, 2, 3, 4, 5, 6]),
                accepted_at: Timestamp::from_millis(1_794_656_800_000),
            };
            crate::mail::campaign::receipt(&receipt, &facts, page)
        };
        vec![
            ("campaign_opened", body(opened, &gathering, Language::English)),
            ("campaign_opened_spanish", body(opened, &gathering, Language::Spanish)),
            ("campaign_offer", body(offer, &waits, Language::English)),
            ("campaign_offer_spanish", body(offer, &waits, Language::Spanish)),
            ("campaign_result", body(result, &closed, Language::English)),
            ("campaign_result_spanish", body(result, &closed, Language::Spanish)),
            ("campaign_result_few", body(result, &few, Language::English)),
            ("campaign_result_cancelled", body(result, &campaign(CampaignState::Cancelled), Language::English)),
            ("campaign_withdrawn", body(offer, &withdrawn, Language::English)),
            ("campaign_withdrawn_spanish", body(offer, &withdrawn, Language::Spanish)),
            ("receipt", receipt(&waits, Language::English)),
            ("receipt_spanish", receipt(&waits, Language::Spanish)),
            ("receipt_address", receipt(&addresses, Language::English)),
        ]
    }

    /// Each letter, through a partner and through our form, with and without a contact, and in Spanish.
    fn letters() -> Vec<(&'static str, Body)> {
        let union = UnionSettings::sample();
        let bare = Union { contact_email: None, postal_address: None, ..UnionSettings::sample() };
        let by_form = LetterFacts { partner: None, language: Some(Language::English), ..facts(&bare) };
        let spanish = LetterFacts { language: Some(Language::Spanish), ..facts(&union) };
        vec![
            ("confirm", confirm(&facts(&union), CONFIRM)),
            ("confirm_by_form", confirm(&by_form, CONFIRM)),
            ("confirm_spanish", confirm(&spanish, CONFIRM)),
            ("already_member", already_member(&facts(&union), ALREADY_MEMBER)),
            ("already_member_by_form", already_member(&by_form, ALREADY_MEMBER)),
            ("already_member_spanish", already_member(&spanish, ALREADY_MEMBER)),
            ("sign_in", sign_in(&facts(&union), SIGN_IN.0, SIGN_IN.1)),
            ("sign_in_spanish", sign_in(&spanish, SIGN_IN.0, SIGN_IN.1)),
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
            // A person who asks to sign in, or accepts, has asked for that mail, and gets no other.
            let about_a_sign_up = !["sign_in", "campaign", "receipt"].iter().any(|kind| name.starts_with(kind));
            let (in_text, in_html) = (body.text.contains("/unsubscribe/"), body.html.contains("/unsubscribe/"));
            assert_eq!((in_text, in_html), (name.starts_with("campaign"), name.starts_with("campaign")), "{name}");
            assert_eq!(body.text.contains("/not-me/"), about_a_sign_up, "{name}");
            let other = if name.ends_with("_spanish") { "Read this in English" } else { "Leer esto en español" };
            assert!(body.text.contains(other), "{name}: it links to the other language");
        }
    }

    #[test]
    fn names_are_text_in_the_html_part_and_untouched_in_the_other() {
        let name = "Ann & \"Bob\" <script>";
        let union = Union { name: name.to_owned(), postal_address: Some(name.to_owned()), ..UnionSettings::sample() };
        let body = confirm(&LetterFacts { partner: Some(name), ..facts(&union) }, CONFIRM);
        assert!(!body.html.contains("<script") && body.html.contains("Ann &#38; &#34;Bob&#34; &#60;script&#62;"));
        assert!(body.text.contains(name) && body.subject.contains(name) && !body.subject.contains('\n'));
    }
}
