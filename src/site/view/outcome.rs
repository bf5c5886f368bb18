//! Pages for when a request did not lead where it was meant to: what happened, and what to do next.

use askama::Template;

use super::{days_to_confirm, rendered};
use crate::domain::union::Union;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The confirmation link was not used in time.
    Expired,
    /// The link names no sign-up of ours.
    Unknown,
    /// Somebody said that this sign-up was not theirs.
    WasDeclined,
    /// "This wasn't me" about a sign-up that was confirmed.
    AlreadyConfirmed,
    TooMany {
        /// Seconds.
        retry_after: u32,
    },
    SignUpsOff,
    Problem,
    /// It was done, or it was not.
    Unsure,
    NotFound,
    /// The form was sent from another site's page.
    WrongOrigin,
    /// A link to sign in with was used, has ended, or is none of ours.
    LinkUsed,
    /// Nobody can sign in, for no mail is sent.
    NoMail,
}

#[derive(Template)]
#[template(path = "outcome.html")]
struct OutcomePage<'a> {
    union: &'a Union,
    title: &'static str,
    happened: String,
    next: &'static str,
    /// What it leads to, and where that is.
    action: Option<(&'static str, &'static str)>,
}

/// Where a page that did not work leads back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The page to join on.
    Join,
    /// A member's own.
    Own,
}

pub fn outcome(union: &Union, outcome: Outcome, home: Home) -> String {
    let (back, own) = match home {
        Home::Join => (("Back to the form", "/join"), false),
        Home::Own => (("Back to your page", "/me"), true),
    };
    let (title, happened, next, action): (_, String, _, _) = match outcome {
        Outcome::Expired => (
            "This link has expired",
            format!(
                "A confirmation link works for {} days, and this one is older. The sign-up was not counted.",
                days_to_confirm()
            ),
            "Sign up again, and a new link is sent to you.",
            Some(("Sign up again", "/join")),
        ),
        Outcome::Unknown => (
            "We do not know this link",
            "Part of it may have been lost when it was copied, or broken over two lines.".into(),
            "Open it from the e-mail itself, or copy all of it. If that does not help, sign up again.",
            Some(("Sign up again", "/join")),
        ),
        Outcome::WasDeclined => (
            "This sign-up was withdrawn",
            "Somebody with this e-mail said that it was not them, so the link no longer confirms anything, and this \
             mailbox gets no mail from us for 30 days."
                .into(),
            "If that was a mistake, write to us, or sign up again once the 30 days are over.",
            None,
        ),
        Outcome::AlreadyConfirmed => (
            "This sign-up was confirmed",
            "Somebody with access to this mailbox has confirmed it, so this link can no longer withdraw it.".into(),
            "This mailbox gets no more mail from us for 30 days, not even to sign in with. If it was not you, or you want to leave before, \
             write to us.",
            None,
        ),
        Outcome::TooMany { retry_after } => (
            "One moment, please",
            format!("Too many forms came from your network at once. Try again in {}.", wait(retry_after)),
            "Nothing was saved. Going back should bring up the page as you left it.",
            Some(back),
        ),
        Outcome::SignUpsOff => (
            "Sign-ups are paused",
            "The union takes no sign-ups right now. Nothing was saved.".into(),
            "Please come back later. A referral link you were given keeps working.",
            None,
        ),
        Outcome::Problem => (
            "That did not work",
            "Something failed on our side, and nothing was saved. It is not your doing.".into(),
            "Please try again in a minute.",
            Some(back),
        ),
        Outcome::Unsure => (
            "That may have worked, or not",
            "Something failed on our side before we could see whether it was saved. It is not your doing.".into(),
            if own {
                "Open your page again in a minute: it shows what is true, and doing the same again is safe."
            } else {
                "Open the link in your e-mail again in a minute: it shows what is true, and doing the same again is safe."
            },
            own.then_some(back),
        ),
        Outcome::NotFound => (
            "There is nothing here",
            "The address may have been mistyped, or part of a link was lost.".into(),
            "The way into the union is open all the same.",
            Some(("Go to the form", "/join")),
        ),
        Outcome::WrongOrigin if own => (
            "That form was out of date",
            "It was sent from a page that is not ours, or from before you last signed in, so it was not taken and nothing was changed."
                .into(),
            "Open your page and try again.",
            Some(back),
        ),
        Outcome::WrongOrigin => (
            "This form came from somewhere else",
            "It was sent from a page that is not ours, so it was not taken. This keeps other sites from signing you up."
                .into(),
            "If you want to join, fill in the form on our own page.",
            Some(("Go to the form", "/join")),
        ),
        Outcome::LinkUsed => (
            "This link works no more",
            "A link to sign in with works once and for ten minutes, or part of it was lost when it was copied.".into(),
            "Ask for another one; it takes a minute.",
            Some(("Ask for another", "/me")),
        ),
        Outcome::NoMail => (
            "Nobody can sign in right now",
            "Signing in needs an e-mail, and the union sends none at the moment. It is not your doing.".into(),
            "Please come back later.",
            None,
        ),
    };
    rendered(&OutcomePage { union, title, happened, next, action })
}

/// A span in words; rounded up, so that who waits it out is not refused again.
fn wait(seconds: u32) -> String {
    match seconds {
        0 | 1 => "a second".to_owned(),
        2..=90 => format!("{seconds} seconds"),
        91..=5400 => format!("{} minutes", seconds.div_ceil(60)),
        _ => format!("{} hours", seconds.div_ceil(3600)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;

    fn union() -> Union {
        UnionSettings::sample()
    }

    #[test]
    fn each_says_what_to_do_next() {
        let all = [
            Outcome::Expired,
            Outcome::Unknown,
            Outcome::TooMany { retry_after: 3 },
            Outcome::Problem,
            Outcome::NotFound,
            Outcome::WrongOrigin,
        ];
        for one in all {
            assert!(outcome(&union(), one, Home::Join).contains(r#"<a class="button" href="/join">"#), "{one:?}");
        }
        assert!(outcome(&union(), Outcome::Expired, Home::Join).contains("7 days"));
        for closed in [Outcome::SignUpsOff, Outcome::WasDeclined, Outcome::AlreadyConfirmed, Outcome::Unsure] {
            assert!(
                !outcome(&union(), closed, Home::Join).contains("class=\"button\""),
                "a form that would lead nowhere"
            );
        }
        for silent in [Outcome::WasDeclined, Outcome::AlreadyConfirmed] {
            let page = outcome(&union(), silent, Home::Join);
            assert!(page.contains("30 days") && page.contains("write to us"), "{page}");
        }
    }

    #[test]
    fn a_wait_is_told_in_words_and_never_too_short() {
        for (seconds, text) in [
            (0, "a second"),
            (1, "a second"),
            (90, "90 seconds"),
            (91, "2 minutes"),
            (3600, "60 minutes"),
            (5401, "2 hours"),
        ] {
            assert_eq!(wait(seconds), text);
        }
    }
}
