//! The letters: confirm your sign-up, you are a member already, and the way to your own page.
//!
//! Pure functions from facts to a subject, a text part and an HTML part. Those about a sign-up say who asked and when, and give a
//! way to say "this wasn't me". Whoever has a letter sent may not put words into it: there is no field for any.

use askama::Template;

use crate::domain::mail::MailKind;
use crate::domain::share;
use crate::domain::sign_in::SIGN_IN_FOR;
use crate::domain::sign_up::PENDING_FOR;

/// A letter's content, ready to be put into an envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// Asks a person to confirm the sign-up that was made for their address.
#[derive(Debug, Clone, Copy)]
pub struct ConfirmMail<'a> {
    pub union: &'a str,
    /// Where the union can be reached, on one line: its postal address, its contact address, or both.
    pub contact: Option<&'a str>,
    /// The partner whose assistant asked; none when our own form was used.
    pub partner: Option<&'a str>,
    /// A date in words, such as 14 November 2026.
    pub asked_on: &'a str,
    pub confirm_url: &'a str,
    pub decline_url: &'a str,
    pub referral_link: &'a str,
    /// What they agree to.
    pub notice: &'a str,
    pub own_page: &'a str,
}

#[derive(Template)]
#[template(path = "mail/confirm.txt")]
struct ConfirmText<'a> {
    letter: &'a ConfirmMail<'a>,
    days: u64,
}

#[derive(Template)]
#[template(path = "mail/confirm.html")]
struct ConfirmHtml<'a> {
    letter: &'a ConfirmMail<'a>,
    subject: &'a str,
    days: u64,
}

impl ConfirmMail<'_> {
    pub fn body(&self) -> Body {
        let subject = MailKind::Confirm.subject(self.union);
        let days = PENDING_FOR.as_secs() / (24 * 3600);
        Body {
            text: rendered(&ConfirmText { letter: self, days }),
            html: rendered(&ConfirmHtml { letter: self, subject: &subject, days }),
            subject,
        }
    }
}

/// Tells a member that somebody asked to sign their address up again. Only the mailbox learns of the membership; the
/// caller who asked does not.
#[derive(Debug, Clone, Copy)]
pub struct AlreadyMemberMail<'a> {
    pub union: &'a str,
    /// As in [`ConfirmMail`].
    pub contact: Option<&'a str>,
    pub partner: Option<&'a str>,
    pub asked_on: &'a str,
    pub referral_link: &'a str,
    pub decline_url: &'a str,
    pub own_page: &'a str,
}

#[derive(Template)]
#[template(path = "mail/already_member.txt")]
struct AlreadyMemberText<'a> {
    letter: &'a AlreadyMemberMail<'a>,
}

#[derive(Template)]
#[template(path = "mail/already_member.html")]
struct AlreadyMemberHtml<'a> {
    letter: &'a AlreadyMemberMail<'a>,
    subject: &'a str,
    share_by_mail: String,
}

impl AlreadyMemberMail<'_> {
    pub fn body(&self) -> Body {
        let subject = MailKind::AlreadyMember.subject(self.union);
        let share_by_mail = share::by_mail(self.union, self.referral_link);
        Body {
            text: rendered(&AlreadyMemberText { letter: self }),
            html: rendered(&AlreadyMemberHtml { letter: self, subject: &subject, share_by_mail }),
            subject,
        }
    }
}

/// The way to one's own page: a link, and a code for another device.
#[derive(Debug, Clone, Copy)]
pub struct SignInMail<'a> {
    pub union: &'a str,
    /// As in [`ConfirmMail`].
    pub contact: Option<&'a str>,
    pub enter_url: &'a str,
    pub code: &'a str,
    pub own_page: &'a str,
}

#[derive(Template)]
#[template(path = "mail/sign_in.txt")]
struct SignInText<'a> {
    letter: &'a SignInMail<'a>,
    minutes: u64,
}

#[derive(Template)]
#[template(path = "mail/sign_in.html")]
struct SignInHtml<'a> {
    letter: &'a SignInMail<'a>,
    subject: &'a str,
    minutes: u64,
}

impl SignInMail<'_> {
    pub fn body(&self) -> Body {
        let subject = MailKind::SignIn.subject(self.union);
        let minutes = SIGN_IN_FOR.as_secs() / 60;
        Body {
            text: rendered(&SignInText { letter: self, minutes }),
            html: rendered(&SignInHtml { letter: self, subject: &subject, minutes }),
            subject,
        }
    }
}

/// Writing to a string fails only where a value's own formatting does, and these are texts and numbers.
fn rendered(part: &impl Template) -> String {
    part.render().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIRM: ConfirmMail<'_> = ConfirmMail {
        union: "Consumer Union",
        contact: Some("12 Mill Street, Springfield, IL 62701 · hello@union.example"),
        partner: Some("Acme Assistant"),
        asked_on: "14 November 2026",
        confirm_url: "https://union.example/confirm/1-abc",
        decline_url: "https://union.example/decline/1-abc",
        referral_link: "https://union.example/joinusyd8z2z0xsrw1",
        notice: "By confirming you join Consumer Union. You decide about everything else.",
        own_page: "https://union.example/me",
    };
    const ALREADY: AlreadyMemberMail<'_> = AlreadyMemberMail {
        union: CONFIRM.union,
        contact: CONFIRM.contact,
        partner: CONFIRM.partner,
        asked_on: CONFIRM.asked_on,
        referral_link: CONFIRM.referral_link,
        decline_url: CONFIRM.decline_url,
        own_page: CONFIRM.own_page,
    };
    const SIGN_IN: SignInMail<'_> = SignInMail {
        union: CONFIRM.union,
        contact: CONFIRM.contact,
        enter_url: "https://union.example/me/enter/1-abc",
        code: "7KQ2-M9X4",
        own_page: CONFIRM.own_page,
    };

    /// Each letter, through a partner and through our form.
    fn letters() -> [(&'static str, Body); 5] {
        [
            ("confirm", CONFIRM.body()),
            ("confirm_by_form", ConfirmMail { partner: None, contact: None, ..CONFIRM }.body()),
            ("already_member", ALREADY.body()),
            ("already_member_by_form", AlreadyMemberMail { partner: None, contact: None, ..ALREADY }.body()),
            ("sign_in", SIGN_IN.body()),
        ]
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
        let known =
            [CONFIRM.confirm_url, CONFIRM.decline_url, CONFIRM.referral_link, CONFIRM.own_page, SIGN_IN.enter_url];
        for (name, body) in letters() {
            for forbidden in ["<script", "<img", "src=", "url(", "<table", "<link"] {
                assert!(!body.html.contains(forbidden), "{name} holds {forbidden}");
            }
            let mut links = body.html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
            assert!(links.all(|link| known.contains(&link) || link.starts_with("mailto:?subject=")), "{name}");
            assert_eq!(body.html.matches("class=\"button\"").count(), 1, "{name}");
            // Whoever asks to sign in has asked for that mail, and no other comes of it.
            for link in [CONFIRM.own_page, if name == "sign_in" { SIGN_IN.enter_url } else { CONFIRM.decline_url }] {
                assert!(body.text.contains(link) && body.html.contains(link), "{name}: {link}");
            }
            assert!(!body.subject.contains('\n'));
        }
    }

    #[test]
    fn names_are_text_in_the_html_part_and_untouched_in_the_other() {
        let name = "Ann & \"Bob\" <script>";
        let body = ConfirmMail { union: name, partner: Some(name), contact: Some(name), ..CONFIRM }.body();
        assert!(!body.html.contains("<script") && body.html.contains("Ann &#38; &#34;Bob&#34; &#60;script&#62;"));
        assert!(body.text.contains(name) && body.subject.contains(name));
    }
}
