//! The pages from the form to the membership: check your inbox, confirm, share, decline.

use askama::Template;

use super::join::Offer;
use super::{days_to_confirm, members, rendered};
use crate::domain::figure::dollars;
use crate::domain::share;
use crate::domain::union::Union;

#[derive(Template)]
#[template(path = "check_inbox.html")]
struct CheckInboxPage<'a> {
    union: &'a Union,
    address: &'a str,
    /// Its mail may be held.
    may_wait: bool,
    days: u64,
}

/// The page after the form. It is the same whatever the address's state, so that it tells nobody who is a member.
pub fn check_inbox(union: &Union, masked_address: &str, may_wait: bool) -> String {
    rendered(&CheckInboxPage { union, address: masked_address, may_wait, days: days_to_confirm() })
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
    pub total: u32,
    /// In the sender's own words; empty where none were sent.
    pub comments: &'a str,
    /// The code of whoever is credited with it.
    pub referrer: Option<&'a str>,
    /// Which answers these are; sent back with the button.
    pub seen: i64,
    /// They are not the ones that were shown before.
    pub changed: bool,
    pub confirm_path: &'a str,
    pub decline_path: &'a str,
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage<'a> {
    union: &'a Union,
    view: &'a ConfirmView<'a>,
    categories: Vec<(&'a str, String)>,
    total: String,
}

/// Shows what is being confirmed. Opening it changes nothing; its first POST form confirms.
pub fn confirm(union: &Union, view: &ConfirmView<'_>) -> String {
    let categories = view.categories.iter().map(|(label, savings)| (*label, dollars(*savings))).collect();
    rendered(&ConfirmPage { union, view, categories, total: dollars(view.total) })
}

#[derive(Template)]
#[template(path = "share.html")]
struct SharePage<'a> {
    union: &'a Union,
    first_time: bool,
    link: &'a str,
    by_mail: String,
    by_text_message: String,
    members: Option<String>,
    offer: Offer,
}

/// The page after confirming, the first time or again, with the person's own referral link.
pub fn share(union: &Union, first_time: bool, link: &str, member_count: Option<u64>) -> String {
    rendered(&SharePage {
        union,
        first_time,
        link,
        by_mail: share::by_mail(&union.name, link),
        by_text_message: share::by_text_message(&union.name, link),
        members: members(member_count),
        offer: Offer::of(&union.catalog),
    })
}

#[derive(Template)]
#[template(path = "decline.html")]
struct DeclinePage<'a> {
    union: &'a Union,
    address: &'a str,
    partner: Option<&'a str>,
    path: &'a str,
}

/// Asks whether the sign-up is to be withdrawn.
pub fn decline(union: &Union, masked_address: &str, partner: Option<&str>, decline_path: &str) -> String {
    rendered(&DeclinePage { union, address: masked_address, partner, path: decline_path })
}

#[derive(Template)]
#[template(path = "declined.html")]
struct DeclinedPage<'a> {
    union: &'a Union,
}

pub fn declined(union: &Union) -> String {
    rendered(&DeclinedPage { union })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;

    fn union() -> Union {
        UnionSettings::sample()
    }

    const VIEW: ConfirmView<'_> = ConfirmView {
        masked_address: "a•••@example.com",
        partner: Some("Acme Assistant"),
        us_state: Some("California"),
        categories: &[("Mobile Plan", 420), ("Mortgage", 1800)],
        total: 2220,
        comments: "Two cars <b>and</b> a cat",
        referrer: Some("0123456789ab"),
        seen: 1_800_000_000_000,
        changed: true,
        confirm_path: "/confirm/token",
        decline_path: "/decline/token",
    };

    #[test]
    fn the_first_and_only_form_of_the_confirm_page_confirms() {
        let html = confirm(&union(), &VIEW);
        let forms: Vec<_> = html.split("<form ").skip(1).map(|rest| rest.split('>').next().unwrap()).collect();
        assert_eq!(forms, [r#"method="post" action="/confirm/token""#]);
        assert!(html.contains(r#"<a href="/decline/token">"#));
        for part in ["a•••@example.com", "Acme Assistant", "California", "Mobile Plan", "$1,800", "$2,220"] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn the_confirm_page_says_only_what_the_sign_up_holds() {
        let bare = ConfirmView { partner: None, us_state: None, categories: &[], comments: "", referrer: None, ..VIEW };
        let html = confirm(&union(), &bare);
        assert!(html.contains("our form") && html.contains("None chosen"));
        assert!(!html.contains("State") && !html.contains("Comments") && !html.contains('$'));
    }

    #[test]
    fn declining_asks_first_and_posts_to_its_own_path() {
        let html = decline(&union(), "a•••@example.com", Some("Acme Assistant"), "/decline/token");
        assert_eq!(html.matches("<form ").count(), 1);
        assert!(html.contains(r#"<form method="post" action="/decline/token">"#));
        assert!(html.contains("Acme Assistant"));
    }

    #[test]
    fn the_share_page_gives_the_link_to_copy_and_to_send() {
        let link = "https://union.example/joinus0123456789ab";
        let first = share(&union(), true, link, Some(5));
        let again = share(&union(), false, link, None);
        for html in [&first, &again] {
            assert!(html.contains(&format!(r#"value="{link}" readonly"#)));
            assert!(html.contains("mailto:?subject=Join%20me") && html.contains("sms:?&#38;body="));
            assert!(html.contains("$100") && html.contains("$1,000") && html.contains("5 people"));
        }
        assert!(first.contains("5 members") && !first.contains("already"));
        assert!(again.contains("already") && !again.contains("members strong"));
    }
}
