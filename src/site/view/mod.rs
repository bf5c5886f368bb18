//! What a person sees: every page of their way into the union, as HTML.
//!
//! Pure functions from facts to text. This part must never read a request, ask the store, send mail or decide what a
//! page may show; whoever routes a request here has done that. Pages need no scripts, hold no inline styles and nothing from
//! other hosts: the answer's policy forbids all three, so a page that tried would only be broken.

mod join;
mod mailbox;
mod outcome;
mod own_page;
mod person;

use askama::Template;

pub use self::join::{JoinForm, join};
pub use self::mailbox::{MailboxEntry, mailbox, opened_mail};
pub use self::outcome::{Home, Outcome, outcome};
pub use self::own_page::{OwnView, enter, erase, erased, leave, own_page, sign_in, sign_in_sent};
pub use self::person::{ConfirmView, check_inbox, confirm, decline, declined, share};
use crate::domain::figure::grouped;
use crate::domain::sign_up::PENDING_FOR;

/// Writing to a string fails only where a value's own formatting does, and these are texts and numbers.
pub(super) fn rendered(page: &impl Template) -> String {
    page.render().unwrap_or_default()
}

/// How long a confirmation link works, as pages say it.
fn days_to_confirm() -> u64 {
    PENDING_FOR.as_secs() / (24 * 3600)
}

/// "1 member", "1,234 members": nothing where the figure cannot be read, and nothing worth showing off at zero.
fn members(count: Option<u64>) -> Option<String> {
    match count {
        None | Some(0) => None,
        Some(1) => Some("1 member".to_owned()),
        Some(count) => Some(format!("{} members", grouped(count))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::catalog::category::{Category, CategorySet};
    use crate::domain::person::{
        Answers, KeptEvidence, MailboxStanding, PersonFile, PersonRecord, PersonState, Referrals, RetentionTimes,
        SignUpEntry, UnwantedMail,
    };
    use crate::domain::referral::ReferralCode;
    use crate::domain::sign_up::{Face, SignUpId, SignUpState};
    use crate::domain::time::Timestamp;
    use crate::domain::union::Union;
    use crate::mail::ReadableMail;
    use crate::membership::form_brake::FormGate;

    pub(super) const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror='a' style=\"b\">";

    /// A member with every kind of text that others can bring.
    fn own_file(text: &str) -> PersonFile {
        let at = Timestamp::from_millis(1_794_743_200_000);
        let code = ReferralCode::from_canonical("yd8z2z0xsrw1").unwrap();
        let sign_up = SignUpEntry {
            id: SignUpId(1),
            email: String::new(),
            door: format!("Acme Assistant{text}"),
            key: None,
            state: SignUpState::Confirmed,
            us_state: None,
            categories: CategorySet::default(),
            comments: String::new(),
            referrer: Some(code),
            disposable: false,
            created_at: at,
            updated_at: at,
            expires_at: at,
            decided_at: Some(at),
            mail: None,
            evidence: KeptEvidence {
                face: Some(Face::Mcp),
                client: Some(format!("Helper{text}")),
                notice: Some("abc".to_owned()),
                notice_words: Some(format!("By confirming you join.{text}")),
                mailed_at: Some(at),
                decided_how: Some("button".to_owned()),
            },
        };
        let mailbox = MailboxStanding {
            suppressed_until: Some(at.plus(PENDING_FOR)),
            complained_at: Some(at),
            ..MailboxStanding::default()
        };
        PersonFile {
            person: PersonRecord {
                id: 1,
                email: format!("ana@example.com{text}"),
                state: PersonState::Member,
                code,
                account: None,
                created_at: at,
                joined_at: Some(at),
                left_at: Some(at),
                erased_at: None,
                referrer: None,
                referred: 1,
                undeliverable_until: Some(at.plus(PENDING_FOR)),
                soft_bounces: 0,
                us_state: None,
                categories: CategorySet::default(),
                comments: format!("My own words{text}"),
                answered_at: None,
                unwanted_mail: UnwantedMail::default(),
                uncredited: false,
                door: None,
            },
            mailbox,
            sign_ups: vec![sign_up],
            referrals: Referrals { signed_up: 1234, members: 12 },
            sign_ins: Vec::new(),
            wrong_codes: 0,
        }
    }

    /// Every page in every shape, with the caller's texts given: kind ones to look at, hostile ones to test with.
    fn every_page(text: &str) -> Vec<(&'static str, String)> {
        let union = Union { name: format!("Consumer Union{text}"), ..UnionSettings::sample() };
        let partner = format!("Acme Assistant{text}");
        let mut chosen = CategorySet::default();
        for category in [Category::MobileBills, Category::Internet, Category::Groceries] {
            chosen.insert(category);
        }
        let form = JoinForm {
            email: format!("ana@example{text}"),
            us_state: format!("CA{text}"),
            chosen,
            comments: format!("My landlord picks the provider.{text}"),
            email_error: Some(format!("Write a whole e-mail address, such as ana@example.com.{text}")),
            us_state_error: Some(format!("Choose a state from the list.{text}")),
            comments_error: Some(format!("Shorten this to 1,000 characters.{text}")),
            general_error: Some(format!("Your sign-up was not sent yet.{text}")),
            ask_again: false,
        };
        let masked = format!("a•••@example.com{text}");
        let link = format!("https://union.example/joinusyd8z2z0xsrw1{text}");
        let view = ConfirmView {
            masked_address: &masked,
            partner: Some(&partner),
            us_state: Some(text).filter(|text| !text.is_empty()).or(Some("California")),
            categories: &[("Mobile Plan", 420), ("Home Internet", 300), ("Mortgage", 1800)],
            total: 2520,
            comments: "Two cars, and a cat.\nRing after six.",
            referrer: Some("0123456789ab"),
            seen: 1_800_000_000_000,
            changed: true,
            confirm_path: "/confirm/abc",
            decline_path: "/decline/abc",
        };
        let bare = ConfirmView {
            partner: None,
            us_state: None,
            categories: &[],
            total: 0,
            comments: "",
            referrer: None,
            ..view
        };
        let entries: Vec<_> =
            ["Confirm your sign-up with Consumer Union", "You are already a member of Consumer Union"]
                .map(|subject| MailboxEntry {
                    name: format!("20261114-091500-1.eml{text}"),
                    to: format!("ana@example.com{text}"),
                    subject: format!("{subject}{text}"),
                    date: format!("14 November 2026, 09:15 UTC{text}"),
                })
                .into();
        let body = format!("Good day,\n\nconfirm here:\nhttps://union.example/confirm/abc\n\nThank you{text}");
        let mail = ReadableMail {
            to: entries[0].to.clone(),
            from: format!("Consumer Union <hello@union.example>{text}"),
            subject: entries[0].subject.clone(),
            date: entries[0].date.clone(),
            text: body,
            html: String::new(),
        };
        let file = own_file(text);
        let refused = Answers { us_state: None, categories: chosen, comments: format!("Too long{text}") };
        let own = OwnView {
            file: &file,
            token: "abc",
            done: Some("Your answers are saved."),
            refused: Some((&refused, "Shorten this.")),
            times: RetentionTimes::DEFAULT,
            now: Timestamp::from_millis(1_794_743_200_000),
        };
        let mut left = file.clone();
        left.person.state = PersonState::Left;
        let asks = FormGate::Asks("1.a.b".to_owned());
        vec![
            ("join-shut", join(&union, None, None, &FormGate::Shut, &JoinForm::default())),
            ("join", join(&union, Some(12_345), None, &FormGate::Open, &JoinForm::default())),
            ("join-braked", join(&union, None, None, &asks, &JoinForm::default())),
            ("join-ask-again", join(&union, None, None, &asks, &JoinForm { ask_again: true, ..form.clone() })),
            (
                "join-invited",
                join(&union, None, Some(&format!("yd8z2z0xsrw1{text}")), &FormGate::Open, &JoinForm::default()),
            ),
            ("join-errors", join(&union, Some(1), None, &FormGate::Open, &form)),
            ("check-inbox", check_inbox(&union, &masked, false)),
            ("check-inbox-may-wait", check_inbox(&union, &masked, true)),
            ("confirm", confirm(&union, &view)),
            ("confirm-bare", confirm(&union, &bare)),
            ("share-first", share(&union, true, &link, Some(12_346))),
            ("share-again", share(&union, false, &link, None)),
            (
                "me-sign-in",
                sign_in(&union, &form.email, Some(&format!("Write a whole address.{text}")), Some("Sign in.")),
            ),
            ("me-sent", sign_in_sent(&union, &form.email, Some("That code is not right."))),
            ("me-enter", enter(&union, &masked, "/me/enter/abc")),
            ("me", own_page(&union, &own)),
            ("me-left", own_page(&union, &OwnView { file: &left, done: None, refused: None, ..own })),
            ("me-leave", leave(&union, "abc", RetentionTimes::DEFAULT)),
            ("me-erase", erase(&union, "abc", true)),
            ("me-erased", erased(&union, false)),
            ("decline", decline(&union, &masked, Some(&partner), "/decline/abc")),
            ("decline-bare", decline(&union, &masked, None, "/decline/abc")),
            ("declined", declined(&union)),
            ("outcome-expired", outcome(&union, Outcome::Expired, Home::Join)),
            ("outcome-unknown", outcome(&union, Outcome::Unknown, Home::Join)),
            ("outcome-was-declined", outcome(&union, Outcome::WasDeclined, Home::Join)),
            ("outcome-too-many", outcome(&union, Outcome::TooMany { retry_after: 40 }, Home::Join)),
            ("outcome-sign-ups-off", outcome(&union, Outcome::SignUpsOff, Home::Join)),
            ("outcome-problem", outcome(&union, Outcome::Problem, Home::Join)),
            ("outcome-not-found", outcome(&union, Outcome::NotFound, Home::Join)),
            ("outcome-wrong-origin", outcome(&union, Outcome::WrongOrigin, Home::Join)),
            ("mailbox", mailbox(&union, &entries)),
            ("mailbox-empty", mailbox(&union, &[])),
            ("opened-mail", opened_mail(&union, &mail, "/dev/mailbox/1/html")),
        ]
    }

    fn without_our_scripts(html: &str) -> String {
        ["copy", "proof"].iter().fold(html.to_owned(), |html, name| {
            html.replace(&format!("<script src=\"/{name}.js\" defer></script>"), "")
        })
    }

    #[test]
    fn every_page_is_whole_and_loads_nothing_but_our_own() {
        let pages = every_page("");
        // For looking at them: `UNIONHALL_PAGES_TO=FOLDER cargo test --lib every_page_is_whole`.
        if let Some(folder) = std::env::var_os("UNIONHALL_PAGES_TO") {
            let folder = std::path::Path::new(&folder);
            pages
                .iter()
                .for_each(|(name, html)| std::fs::write(folder.join(name).with_extension("html"), html).unwrap());
        }
        for (name, html) in pages {
            assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"), "{name}");
            assert_eq!(html.matches("<h1").count(), 1, "{name}");
            assert_eq!(html.matches("<main").count(), 1, "{name}");
            assert!(html.contains("Consumer Union</title>"), "{name}: a title that ends with the union's name");
            assert!(html.contains("12 Mill Street") && html.contains("mailto:hello@union.example"), "{name}");
            // Scripts of our own, which nothing depends on.
            let html = without_our_scripts(&html);
            for forbidden in ["<script", "style=", "src=", "<style", " onclick", "javascript:", "@import", "<img"] {
                assert!(!html.contains(forbidden), "{name} holds {forbidden}");
            }
            let sheets: Vec<_> = html.split("<link ").skip(1).map(|rest| rest.split('>').next().unwrap()).collect();
            let own = [r#"rel="stylesheet" href="/style.css""#, r#"rel="icon" href="/icon.svg" type="image/svg+xml""#];
            assert_eq!(sheets, own, "{name}");
        }
    }

    #[test]
    fn nothing_of_the_callers_becomes_markup() {
        for (name, html) in every_page(HOSTILE) {
            assert!(html.contains("&#60;script&#62;"), "{name} shows the text as text");
            let html = without_our_scripts(&html);
            for forbidden in ["<script", "<img", "style=\""] {
                assert!(!html.contains(forbidden), "{name} lets {forbidden} through");
            }
        }
    }

    #[test]
    fn ids_are_unique_and_every_reference_finds_its_own() {
        for (name, html) in every_page("") {
            let values = |attribute: &str| -> Vec<String> {
                let opening = format!(" {attribute}=\"");
                let parts = html.split(&opening).skip(1);
                parts.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
            };
            let ids = values("id");
            let distinct: std::collections::HashSet<_> = ids.iter().collect();
            assert_eq!(distinct.len(), ids.len(), "{name}: {ids:?}");
            let described = values("aria-describedby").join(" ");
            let labelled = values("aria-labelledby").join(" ");
            let links = values("href").into_iter().filter_map(|link| link.strip_prefix('#').map(str::to_owned));
            let named = described.split_whitespace().chain(labelled.split_whitespace()).map(str::to_owned);
            for target in named.chain(values("for")).chain(links) {
                assert!(ids.contains(&target), "{name}: nothing is called {target}");
            }
        }
    }

    #[test]
    fn a_union_without_an_address_says_nothing_of_one() {
        let bare = Union { contact_email: None, postal_address: None, ..UnionSettings::sample() };
        let html = declined(&bare);
        assert!(!html.contains("mailto:") && !html.contains("Mill Street"));
    }
}
