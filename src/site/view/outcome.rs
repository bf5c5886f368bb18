//! Pages for when a request did not lead where it was meant to: what happened, and what to do next.

use askama::Template;

use super::{Frame, rendered};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// The link names no sign-up of ours.
    Unknown,
    /// What was confirmed once has ended since.
    Left,
    /// Somebody said that this sign-up was not theirs.
    WasDeclined {
        /// Where they take it back.
        take_back: &'a str,
    },
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
    LinkUsed {
        /// Where another one is asked for.
        again: &'a str,
    },
    /// Nobody can sign in, for no mail is sent.
    NoMail,
    /// A sign-up of the sandbox that can be confirmed no more; elsewhere the form is shown again.
    Lapsed,
    /// No campaign that anybody may see has that address.
    NoCampaign,
    /// What the sandbox has no page for.
    NotInSandbox,
}

#[derive(Template)]
#[template(path = "outcome.html")]
struct OutcomePage<'a> {
    page: Frame<'a>,
    title: &'a str,
    happened: String,
    next: &'a str,
    /// What it leads to, and where that is.
    action: Option<(&'a str, &'a str)>,
}

/// Where a page that did not work leads back to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The page to join on.
    Join,
    /// A member's own.
    Own,
    /// Nowhere: the sandbox has no form.
    Sandbox,
}

pub fn outcome(page: Frame<'_>, outcome: Outcome<'_>, home: Home) -> String {
    let words = &page.words.outcome;
    let (back, own) = match home {
        Home::Own => ((words.back_own.as_str(), "/me"), true),
        Home::Join | Home::Sandbox => ((words.back_form.as_str(), "/join"), false),
    };
    let inside = &page.words.sandbox;
    let to_form = (words.to_form.as_str(), "/join");
    let again = (words.sign_up_again.as_str(), "/join");
    let (title, happened, next, action) = match outcome {
        Outcome::Unknown if own => (&words.unknown, &words.unknown_text, &words.unknown_own, Some(back)),
        Outcome::Unknown => (&words.unknown, &words.unknown_text, &words.unknown_next, Some(again)),
        Outcome::Left => (&words.left, &words.left_text, &words.left_next, Some(again)),
        Outcome::WasDeclined { take_back } => {
            let action = (words.declined_action.as_str(), take_back);
            (&words.declined, &words.declined_text, &words.declined_next, Some(action))
        }
        Outcome::TooMany { .. } => (&words.too_many, &words.too_many_text, &words.too_many_next, Some(back)),
        Outcome::SignUpsOff => (&words.paused, &words.paused_text, &words.paused_next, None),
        Outcome::Problem => (&words.problem, &words.problem_text, &words.problem_next, Some(back)),
        Outcome::Unsure if own => (&words.unsure, &words.unsure_text, &words.unsure_own, Some(back)),
        Outcome::Unsure => (&words.unsure, &words.unsure_text, &words.unsure_next, None),
        Outcome::NotFound => (&words.not_found, &words.not_found_text, &words.not_found_next, Some(to_form)),
        Outcome::NoCampaign => {
            let action = (page.words.campaign.all.as_str(), "/campaigns");
            (&words.no_campaign, &words.no_campaign_text, &words.no_campaign_next, Some(action))
        }
        Outcome::WrongOrigin if own => (&words.old_form, &words.old_form_text, &words.old_form_next, Some(back)),
        Outcome::WrongOrigin => (&words.origin, &words.origin_text, &words.origin_next, Some(to_form)),
        Outcome::LinkUsed { again } => {
            (&words.used, &words.used_text, &words.used_next, Some((words.used_action.as_str(), again)))
        }
        Outcome::NoMail => (&words.no_mail, &words.no_mail_text, &words.no_mail_next, None),
        Outcome::Lapsed => (&page.words.decline.lapsed_title, &page.words.decline.lapsed_text, &inside.next, None),
        Outcome::NotInSandbox => (&inside.title, &inside.text, &inside.next, None),
    };
    // What leads to the form leads nowhere in the sandbox; what was declined there can be taken back there.
    let (next, action) = match (home, outcome) {
        (Home::Sandbox, Outcome::WasDeclined { .. }) | (Home::Join | Home::Own, _) => (next, action),
        (Home::Sandbox, _) => (&inside.next, None),
    };
    let happened = match outcome {
        Outcome::TooMany { retry_after } => happened.put("wait", page.words.wait(retry_after)).plain(),
        _ => happened.to_string(),
    };
    rendered(page, &OutcomePage { page, title: title.as_str(), happened, next: next.as_str(), action })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::language::Language;
    use crate::domain::time::Timestamp;

    fn shown(what: Outcome<'_>) -> String {
        let union = UnionSettings::sample();
        outcome(Frame::new(&union, Language::English, "/", Timestamp::from_millis(0)), what, Home::Join)
    }

    #[test]
    fn each_says_what_to_do_next() {
        let all = [
            Outcome::Unknown,
            Outcome::TooMany { retry_after: 3 },
            Outcome::Problem,
            Outcome::NotFound,
            Outcome::WrongOrigin,
        ];
        for one in all {
            assert!(shown(one).contains(r#"<a class="button" href="/join">"#), "{one:?}");
        }
        assert!(shown(Outcome::TooMany { retry_after: 91 }).contains("in 2 minutes"));
        for closed in [Outcome::SignUpsOff, Outcome::Unsure] {
            assert!(!shown(closed).contains("class=\"button\""), "a form that would lead nowhere");
        }
        let declined = shown(Outcome::WasDeclined { take_back: "/not-me/abc" });
        assert!(declined.contains(r#"<a class="button" href="/not-me/abc">"#), "{declined}");
    }
}
