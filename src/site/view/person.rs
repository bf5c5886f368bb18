//! The pages from the form to the membership: check your inbox, confirm, share, decline.

use askama::Template;

use super::campaign::{CampaignCard, MemberPart, PartPlace, member_cards};
use super::join::ReferralOffer;
use super::{Frame, days_to_confirm, rendered};
use crate::domain::answers::{Answers, ShownAnswer};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::figure::dollars;
use crate::domain::language::Phrase;
use crate::domain::share::ShareWays;
use crate::domain::sign_up::{SignUpRecord, SignUpState};
use crate::domain::text::seen;

#[derive(Template)]
#[template(path = "check_inbox.html")]
struct CheckInboxPage<'a> {
    page: Frame<'a>,
    email: &'a str,
    sent: &'a [(&'static str, String)],
    may_wait: bool,
    days: u64,
}

/// The page after the form, to whoever sent it. It is the same whatever the address's state, so that it tells nobody who is a
/// member.
pub fn check_inbox(page: Frame<'_>, email: &str, sent: &[(&'static str, String)], may_wait: bool) -> String {
    rendered(page, &CheckInboxPage { page, email, sent, may_wait, days: days_to_confirm() })
}

/// A sign-up that waits for its person's button, and where the page leads to.
#[derive(Clone, Copy)]
pub struct ConfirmView<'a> {
    pub sign_up: &'a SignUpRecord,
    /// Its answers are not the ones that were shown before.
    pub changed: bool,
    pub confirm_path: &'a str,
    pub decline_path: &'a str,
}

struct SignUpFacts<'a> {
    masked_address: String,
    /// The partner whose assistant asked; none when our own form was used.
    partner: Option<&'a str>,
    answers: Vec<ShownAnswer<'a>>,
    /// The first letters of the address that is credited with it; empty once its person was erased.
    referrer: Option<String>,
    categories: Vec<(&'static str, String)>,
    total: String,
    /// Where one is part of another, the total is less than their sum.
    overlap: bool,
}

impl<'a> SignUpFacts<'a> {
    fn of(page: Frame<'a>, sign_up: &'a SignUpRecord) -> Self {
        let (catalog, words, answers) = (&page.union.catalog, page.words, &sign_up.answers);
        let chosen = answers.chosen();
        let listed: Vec<_> = catalog.listed().iter().filter(|(category, _)| chosen.contains(*category)).collect();
        let sum: u32 = listed.iter().map(|(_, savings)| savings).sum();
        let total = catalog.combined_savings(chosen);
        let categories = listed.into_iter().map(|(category, savings)| (words.category(*category), dollars(*savings)));
        let referrer = sign_up.referrer.as_ref();
        Self {
            masked_address: sign_up.email.masked(),
            partner: sign_up.partner.as_deref(),
            answers: answers.shown(words).filter(|answer| answer.name != Answers::BILLS).collect(),
            referrer: referrer.map(|named| named.email.as_ref().map(|email| email.masked()).unwrap_or_default()),
            categories: categories.collect(),
            total: dollars(total),
            overlap: sum != total,
        }
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    page: Frame<'a>,
    view: &'a ConfirmView<'a>,
    facts: SignUpFacts<'a>,
}

/// Shows what is being confirmed. Opening it changes nothing; its first POST form confirms.
pub fn confirm(page: Frame<'_>, view: &ConfirmView<'_>) -> String {
    rendered(page, &ConfirmPage { page, view, facts: SignUpFacts::of(page, view.sign_up) })
}

#[derive(Template)]
#[template(path = "share.html")]
struct SharePage<'a> {
    page: Frame<'a>,
    welcome: Welcome,
    link: &'a str,
    ways: ShareWays,
    members: Option<String>,
    offer: ReferralOffer,
    /// Those that somebody who joined just now can take part in.
    campaigns: Vec<CampaignCard<'a>>,
}

/// How somebody comes to the page with their own referral link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Welcome {
    FirstTime,
    /// They had confirmed that sign-up before.
    Again,
    /// They are a member by another sign-up; this one came to nothing.
    Member,
}

/// The page after confirming, the first time or again, with the person's own referral link.
pub fn share<'a>(
    page: Frame<'a>,
    welcome: Welcome,
    link: &'a str,
    member_count: Option<u64>,
    next: &[(&'a CampaignRecord, MemberPart<'a>)],
) -> String {
    rendered(
        page,
        &SharePage {
            page,
            welcome,
            link,
            ways: ShareWays::of(page.words, &page.union.name, link),
            members: page.members(member_count),
            offer: ReferralOffer::of(page),
            campaigns: member_cards(page, next, PartPlace::Welcome),
        },
    )
}

/// A sign-up, as whoever holds the link of its mail decides about it.
#[derive(Clone, Copy)]
pub struct DeclineView<'a> {
    pub sign_up: &'a SignUpRecord,
    /// Of the link that brings the form back, once it has lapsed.
    pub again_path: &'a str,
    /// What is not to be sent was changed just now.
    pub saved: bool,
}

#[derive(Template)]
#[template(path = "decline.html")]
struct DeclinePage<'a> {
    page: Frame<'a>,
    view: &'a DeclineView<'a>,
    sign_up: &'a SignUpRecord,
    facts: SignUpFacts<'a>,
    title: &'a Phrase,
    kicker: &'a Phrase,
    heading: &'a Phrase,
    texts: Vec<Html>,
    button: &'a Phrase,
    silence: String,
}

/// A text of the table, filled in.
struct Html(String);

impl std::fmt::Display for Html {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

// Texts of ours in which every value was escaped.
impl askama::filters::HtmlSafe for Html {}

/// Asks whether the sign-up is to be withdrawn, or says what became of it; and what is not to be sent.
pub fn decline(page: Frame<'_>, view: &DeclineView<'_>) -> String {
    let (words, sign_up) = (&page.words.decline, view.sign_up);
    let facts = SignUpFacts::of(page, sign_up);
    let asked = match facts.partner {
        Some(partner) => words.lead_partner.put("partner", partner),
        None => words.lead_form.put("address", &facts.masked_address),
    };
    let asked = asked.put("address", &facts.masked_address).to_string();
    let (title, kicker, heading, texts) = match (sign_up.state, sign_up.is_member) {
        (SignUpState::Pending, false) => {
            (&words.title, &words.kicker, &words.heading, vec![asked, words.ask.to_string()])
        }
        (SignUpState::Pending, true) => {
            (&words.member_title, &words.kicker, &words.member_heading, vec![asked, words.member_ask.to_string()])
        }
        (SignUpState::Declined, false) => {
            let mut texts = vec![words.done_text.to_string()];
            if !sign_up.can_take_back {
                texts.push(words.lapsed_again.put("path", view.again_path).to_string());
            }
            (&words.done_title, &words.done_kicker, &words.done_heading, texts)
        }
        (SignUpState::Declined, true) => (
            &words.done_title,
            &words.done_kicker,
            &words.member_done_heading,
            vec![words.member_done_text.to_string()],
        ),
        (SignUpState::Confirmed, is_member) => {
            let since = if is_member { &words.confirmed_member } else { &words.confirmed_left };
            let texts = vec![words.confirmed_text.to_string(), since.to_string()];
            (&words.confirmed_title, &words.kicker, &words.confirmed_heading, texts)
        }
        (SignUpState::Expired, true) => {
            let texts = vec![words.lapsed_text.to_string(), words.lapsed_member.to_string()];
            (&words.lapsed_title, &words.kicker, &words.lapsed_heading, texts)
        }
        (SignUpState::Expired, false) => {
            let again = words.lapsed_again.put("path", view.again_path).to_string();
            (&words.lapsed_title, &words.kicker, &words.lapsed_heading, vec![words.lapsed_text.to_string(), again])
        }
    };
    rendered(
        page,
        &DeclinePage {
            page,
            view,
            sign_up,
            facts,
            title,
            kicker,
            heading,
            texts: texts.into_iter().map(Html).collect(),
            button: if sign_up.is_member { &words.member_button } else { &words.button },
            silence: match sign_up.silent_until {
                Some(until) => words.no_mail_until.put("date", page.words.date(until)).plain(),
                None => words.no_mail.to_string(),
            },
        },
    )
}

#[cfg(test)]
mod tests {
    use super::super::every_page::samples::sign_up_of;
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::catalog::category::CategorySet;
    use crate::domain::language::Language;
    use crate::domain::sign_up::NamedReferrer;
    use crate::domain::time::Timestamp;

    fn confirming(sign_up: &SignUpRecord) -> String {
        let paths = ("/confirm/token", "/decline/token");
        let view = ConfirmView { sign_up, changed: true, confirm_path: paths.0, decline_path: paths.1 };
        with(|page| confirm(page, &view))
    }

    fn declining(sign_up: &SignUpRecord) -> String {
        with(|page| decline(page, &DeclineView { sign_up, again_path: "/confirm/token", saved: false }))
    }

    fn with(make: impl Fn(Frame<'_>) -> String) -> String {
        let union = UnionSettings::sample();
        make(Frame::new(&union, Language::English, "/not-me/token", Timestamp::from_millis(0)))
    }

    fn forms(html: &str) -> Vec<String> {
        html.split("<form ").skip(1).map(|rest| rest.split('>').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_first_and_only_form_of_the_confirm_page_confirms() {
        let mut sign_up = sign_up_of("");
        let html = confirming(&sign_up);
        assert_eq!(forms(&html), [r#"method="post" action="/confirm/token""#]);
        assert!(html.contains(r#"<a href="/decline/token">"#));
        for part in ["a•••@e•••.com", "Acme Assistant", "California", "Mobile Plan", "$900", "$1,140", "k•••@e•••.com"]
        {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("counted twice"));
        sign_up.answers.categories = Some(CategorySet::from_slugs("insurance,car_insurance"));
        assert!(confirming(&sign_up).contains("counted twice"));
    }

    #[test]
    fn the_confirm_page_says_only_what_the_sign_up_holds() {
        let (full, answers) = (sign_up_of(""), Answers::default());
        let html = confirming(&SignUpRecord { partner: None, referrer: None, answers, ..full.clone() });
        assert!(html.contains("our form") && html.contains("None chosen"));
        assert!(!html.contains("State") && !html.contains("Comments") && !html.contains('$'));
        let referrer = full.referrer.map(|referrer| NamedReferrer { email: None, ..referrer });
        let gone = confirming(&SignUpRecord { referrer, ..sign_up_of("") });
        assert!(gone.contains("Someone who has left the union"));
    }

    #[test]
    fn declining_asks_first_and_silences_nothing_by_itself() {
        let html = declining(&sign_up_of(""));
        assert_eq!(forms(&html), [r#"method="post" action="/not-me/token""#]);
        assert!(html.contains("Acme Assistant") && !html.contains("checked"));
        assert!(!html.contains(r#"name="again""#), "nobody who is no member is asked about members' mail");
        let member = declining(&SignUpRecord { is_member: true, partner: None, ..sign_up_of("") });
        assert!(member.contains("You're already a member and will stay one") && member.contains(r#"name="again""#));
        assert!(!member.contains(r#"name="partner""#), "nobody asked but the form");
    }

    #[test]
    fn what_was_withdrawn_can_be_taken_back_and_what_is_silent_says_so() {
        let mut sign_up = SignUpRecord { state: SignUpState::Declined, can_take_back: true, ..sign_up_of("") };
        sign_up.silence.partner = true;
        let html = declining(&sign_up);
        assert_eq!(forms(&html).len(), 2);
        assert!(
            html.contains("It was me: confirm and join")
                && html.contains("<p>By confirming, you join Consumer Union.</p>")
        );
        let own_page = r#"<a href="https://union.example/me">https://union.example/me</a>"#;
        assert!(html.contains(r#"<ul class="rules"><li>"#) && html.contains(own_page), "{html}");
        assert_eq!(html.matches(" checked").count(), 1);
        sign_up.silent_until = Some(Timestamp::from_millis(1_794_743_200_000));
        assert!(declining(&sign_up).contains("until Nov 15, 2026"));
        let lapsed = SignUpRecord { state: SignUpState::Expired, ..sign_up_of("") };
        assert!(declining(&lapsed).contains(r#"<a href="/confirm/token">"#));
        for (is_member, said) in [(true, "You are now a member"), (false, "has since ended")] {
            let html = declining(&SignUpRecord { state: SignUpState::Confirmed, is_member, ..sign_up_of("") });
            assert!(html.contains(said) && !html.contains("It was me"), "{said}");
        }
    }

    #[test]
    fn the_share_page_gives_the_link_once_to_copy_and_to_send() {
        let link = "https://union.example/joinus0123456789ab";
        let first = with(|page| share(page, Welcome::FirstTime, link, Some(500), &[]));
        let again = with(|page| share(page, Welcome::Again, link, None, &[]));
        for html in [&first, &again] {
            assert_eq!(html.matches(&format!(">{link}</")).count(), 1);
            assert!(html.contains("mailto:?subject=Join%20me") && html.contains("sms:?&#38;body="));
            assert!(html.contains("$100") && html.contains("$1,000") && html.contains("5 people"));
        }
        assert!(first.contains("500 members") && !first.contains("already"));
        assert!(again.contains("already") && !again.contains("members strong"));
        assert!(
            !with(|page| share(page, Welcome::FirstTime, link, Some(5), &[])).contains("5 members"),
            "too few to show off"
        );
    }
}
