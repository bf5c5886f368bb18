//! The pages from the form to the membership: check your inbox, confirm, share, decline.

use askama::Template;

use super::campaign::{MemberCards, MemberPart, PartPlace};
use super::join::ReferralOffer;
use super::{Frame, days_to_confirm, rendered};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::figure::dollars;
use crate::domain::language::Words;
use crate::domain::share::ShareWays;
use crate::domain::time::Timestamp;
use crate::domain::union::notice::Notice;

#[derive(Template)]
#[template(path = "check_inbox.html")]
struct CheckInboxPage<'a> {
    page: Frame<'a>,
    email: &'a str,
    /// The form, to be shown again.
    sent: &'a [(&'static str, String)],
    /// Its mail may be held.
    may_wait: bool,
    days: u64,
}

/// The page after the form, to whoever sent it. It is the same whatever the address's state, so that it tells nobody who is a
/// member.
pub fn check_inbox(page: Frame<'_>, email: &str, sent: &[(&'static str, String)], may_wait: bool) -> String {
    rendered(page, &CheckInboxPage { page, email, sent, may_wait, days: days_to_confirm() })
}

/// What a person is about to confirm.
#[derive(Debug, Clone, Copy)]
pub struct ConfirmView<'a> {
    pub masked_address: &'a str,
    /// The partner whose assistant asked; none when our own form was used.
    pub partner: Option<&'a str>,
    /// The state's name.
    pub us_state: Option<&'a str>,
    /// Labels and yearly savings.
    pub categories: &'a [(&'a str, u32)],
    /// Where one is part of another, less than their sum.
    pub total: u32,
    /// In the sender's own words; empty where none were sent.
    pub comments: &'a str,
    /// The first letters of whoever is credited with it; empty once they are erased.
    pub referrer: Option<&'a str>,
    /// Which answers these are; sent back with the button.
    pub seen: i64,
    /// They are not the ones that were shown before.
    pub changed: bool,
    pub confirm_path: &'a str,
    pub decline_path: &'a str,
}

impl<'a> ConfirmView<'a> {
    /// The bills with their savings, what those are together, and whether that is less than their sum.
    fn bills(&self) -> (Vec<(&'a str, String)>, String, bool) {
        let rows = self.categories.iter().map(|(label, savings)| (*label, dollars(*savings))).collect();
        let sum: u32 = self.categories.iter().map(|(_, savings)| savings).sum();
        (rows, dollars(self.total), sum != self.total)
    }
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    page: Frame<'a>,
    notice: &'a Notice,
    view: &'a ConfirmView<'a>,
    categories: Vec<(&'a str, String)>,
    total: String,
    overlap: bool,
}

/// Shows what is being confirmed. Opening it changes nothing; its first POST form confirms.
pub fn confirm(page: Frame<'_>, view: &ConfirmView<'_>) -> String {
    let notice = page.union.notices.in_language(page.language);
    let (categories, total, overlap) = view.bills();
    rendered(page, &ConfirmPage { page, notice, view, categories, total, overlap })
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
    campaigns: MemberCards<'a>,
}

/// The campaigns that somebody who joined just now can take part in.
#[derive(Debug, Clone, Copy)]
pub struct NextCampaigns<'a> {
    pub campaigns: &'a [(&'a CampaignRecord, MemberPart<'a>)],
    pub now: Timestamp,
}

/// How somebody comes to the page with their own referral link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Welcome {
    /// They confirmed just now.
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
    next: NextCampaigns<'a>,
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
            campaigns: MemberCards::of(page, next.campaigns, PartPlace::Welcome, next.now),
        },
    )
}

/// What "this wasn't me" is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeclineState {
    /// It can be withdrawn.
    Asks,
    Withdrawn,
    Confirmed,
    Lapsed,
}

/// A sign-up, as whoever holds the link of its mail decides about it.
#[derive(Debug, Clone, Copy)]
pub struct DeclineView<'a> {
    pub state: DeclineState,
    /// Whether its person is a member, whatever becomes of it.
    pub is_member: bool,
    pub masked_address: &'a str,
    pub partner: Option<&'a str>,
    /// What would be confirmed.
    pub facts: ConfirmView<'a>,
    pub path: &'a str,
    /// Of the link that brings the form back, once it has lapsed.
    pub again_path: &'a str,
    pub can_take_back: bool,
    /// What is not sent.
    pub no_again: bool,
    pub no_partner: bool,
    pub silent_until: Option<Timestamp>,
    /// What is not to be sent was changed just now.
    pub saved: bool,
}

#[derive(Template)]
#[template(path = "decline.html")]
struct DeclinePage<'a> {
    page: Frame<'a>,
    notice: &'a Notice,
    asks: &'a DeclineView<'a>,
    /// What would be confirmed.
    view: &'a ConfirmView<'a>,
    categories: Vec<(&'a str, String)>,
    total: String,
    overlap: bool,
    title: &'a str,
    kicker: &'a str,
    heading: &'a str,
    texts: Vec<Html>,
    button: &'a str,
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
    let Words { decline: words, .. } = page.words;
    let asked = match view.partner {
        Some(partner) => words.lead_partner.put("partner", partner),
        None => words.lead_form.put("address", view.masked_address),
    };
    let asked = asked.put("address", view.masked_address).to_string();
    let (title, kicker, heading, texts) = match (view.state, view.is_member) {
        (DeclineState::Asks, false) => {
            (&words.title, &words.kicker, &words.heading, vec![asked, words.ask.to_string()])
        }
        (DeclineState::Asks, true) => {
            (&words.member_title, &words.kicker, &words.member_heading, vec![asked, words.member_ask.to_string()])
        }
        (DeclineState::Withdrawn, false) => {
            let mut texts = vec![words.done_text.to_string()];
            if !view.can_take_back {
                texts.push(words.lapsed_again.put("path", view.again_path).to_string());
            }
            (&words.done_title, &words.done_kicker, &words.done_heading, texts)
        }
        (DeclineState::Withdrawn, true) => (
            &words.done_title,
            &words.done_kicker,
            &words.member_done_heading,
            vec![words.member_done_text.to_string()],
        ),
        (DeclineState::Confirmed, is_member) => {
            let since = if is_member { &words.confirmed_member } else { &words.confirmed_left };
            let texts = vec![words.confirmed_text.to_string(), since.to_string()];
            (&words.confirmed_title, &words.kicker, &words.confirmed_heading, texts)
        }
        (DeclineState::Lapsed, true) => {
            let texts = vec![words.lapsed_text.to_string(), words.lapsed_member.to_string()];
            (&words.lapsed_title, &words.kicker, &words.lapsed_heading, texts)
        }
        (DeclineState::Lapsed, false) => {
            let again = words.lapsed_again.put("path", view.again_path).to_string();
            (&words.lapsed_title, &words.kicker, &words.lapsed_heading, vec![words.lapsed_text.to_string(), again])
        }
    };
    let (categories, total, overlap) = view.facts.bills();
    rendered(
        page,
        &DeclinePage {
            page,
            notice: page.union.notices.in_language(page.language),
            categories,
            total,
            overlap,
            asks: view,
            view: &view.facts,
            title: title.as_str(),
            kicker: kicker.as_str(),
            heading: heading.as_str(),
            texts: texts.into_iter().map(Html).collect(),
            button: if view.is_member { &words.member_button } else { &words.button }.as_str(),
            silence: match view.silent_until {
                Some(until) => words.no_mail_until.put("date", page.words.date(until)).plain(),
                None => words.no_mail.to_string(),
            },
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::language::Language;

    const VIEW: ConfirmView<'_> = ConfirmView {
        masked_address: "a•••@example.com",
        partner: Some("Acme Assistant"),
        us_state: Some("California"),
        categories: &[("Mobile Plan", 420), ("Mortgage", 1800)],
        total: 2220,
        comments: "Two cars <b>and</b> a cat",
        referrer: Some("k•••@e•••.com"),
        seen: 1_800_000_000_000,
        changed: true,
        confirm_path: "/confirm/token",
        decline_path: "/decline/token",
    };

    const DECLINE: DeclineView<'_> = DeclineView {
        state: DeclineState::Asks,
        is_member: false,
        masked_address: "a•••@example.com",
        partner: Some("Acme Assistant"),
        facts: VIEW,
        path: "/not-me/token",
        again_path: "/confirm/token",
        can_take_back: false,
        no_again: false,
        no_partner: false,
        silent_until: None,
        saved: false,
    };

    const NOTHING_NEXT: NextCampaigns<'_> = NextCampaigns { campaigns: &[], now: Timestamp::from_millis(0) };

    fn with(make: impl Fn(Frame<'_>) -> String) -> String {
        make(Frame::new(&UnionSettings::sample(), Language::English, "/"))
    }

    fn forms(html: &str) -> Vec<String> {
        html.split("<form ").skip(1).map(|rest| rest.split('>').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_first_and_only_form_of_the_confirm_page_confirms() {
        let html = with(|page| confirm(page, &VIEW));
        assert_eq!(forms(&html), [r#"method="post" action="/confirm/token""#]);
        assert!(html.contains(r#"<a href="/decline/token">"#));
        for part in
            ["a•••@example.com", "Acme Assistant", "California", "Mobile Plan", "$1,800", "$2,220", "k•••@e•••.com"]
        {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("counted twice"));
        assert!(with(|page| confirm(page, &ConfirmView { total: 1800, ..VIEW })).contains("counted twice"));
    }

    #[test]
    fn the_confirm_page_says_only_what_the_sign_up_holds() {
        let bare = ConfirmView { partner: None, us_state: None, categories: &[], comments: "", referrer: None, ..VIEW };
        let html = with(|page| confirm(page, &bare));
        assert!(html.contains("our form") && html.contains("None chosen"));
        assert!(!html.contains("State") && !html.contains("Comments") && !html.contains('$'));
        let gone = with(|page| confirm(page, &ConfirmView { referrer: Some(""), ..VIEW }));
        assert!(gone.contains("Someone who has left the union"));
    }

    #[test]
    fn declining_asks_first_and_silences_nothing_by_itself() {
        let html = with(|page| decline(page, &DECLINE));
        assert_eq!(forms(&html), [r#"method="post" action="/not-me/token""#]);
        assert!(html.contains("Acme Assistant") && !html.contains("checked"));
        assert!(!html.contains(r#"name="again""#), "nobody who is no member is asked about members' mail");
        let member = with(|page| decline(page, &DeclineView { is_member: true, partner: None, ..DECLINE }));
        assert!(member.contains("You're already a member and will stay one") && member.contains(r#"name="again""#));
        assert!(!member.contains(r#"name="partner""#), "nobody asked but the form");
    }

    #[test]
    fn what_was_withdrawn_can_be_taken_back_and_what_is_silent_says_so() {
        let done = DeclineView { state: DeclineState::Withdrawn, can_take_back: true, no_partner: true, ..DECLINE };
        let html = with(|page| decline(page, &done));
        assert_eq!(forms(&html).len(), 2);
        assert!(html.contains("It was me: confirm and join") && html.contains("By confirming, you join"));
        assert_eq!(html.matches(" checked").count(), 1);
        let silent = DeclineView { silent_until: Some(Timestamp::from_millis(1_794_743_200_000)), ..done };
        assert!(with(|page| decline(page, &silent)).contains("until Nov 15, 2026"));
        let lapsed = DeclineView { state: DeclineState::Lapsed, ..DECLINE };
        assert!(with(|page| decline(page, &lapsed)).contains(r#"<a href="/confirm/token">"#));
        for (is_member, said) in [(true, "You are now a member"), (false, "has since ended")] {
            let confirmed = DeclineView { state: DeclineState::Confirmed, is_member, ..DECLINE };
            let html = with(|page| decline(page, &confirmed));
            assert!(html.contains(said) && !html.contains("It was me"), "{said}");
        }
    }

    #[test]
    fn the_share_page_gives_the_link_once_to_copy_and_to_send() {
        let link = "https://union.example/joinus0123456789ab";
        let first = with(|page| share(page, Welcome::FirstTime, link, Some(500), NOTHING_NEXT));
        let again = with(|page| share(page, Welcome::Again, link, None, NOTHING_NEXT));
        for html in [&first, &again] {
            assert_eq!(html.matches(&format!(">{link}</")).count(), 1);
            assert!(html.contains("mailto:?subject=Join%20me") && html.contains("sms:?&#38;body="));
            assert!(html.contains("$100") && html.contains("$1,000") && html.contains("5 people"));
        }
        assert!(first.contains("500 members") && !first.contains("already"));
        assert!(again.contains("already") && !again.contains("members strong"));
        assert!(
            !with(|page| share(page, Welcome::FirstTime, link, Some(5), NOTHING_NEXT)).contains("5 members"),
            "too few to show off"
        );
    }
}
