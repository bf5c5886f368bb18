//! The pages of trust: who this is, what is kept and for how long, what joining means. What the program says there it takes
//! from what it does; the union's own text stands above it.

use std::borrow::Cow;

use askama::Template;

use super::join::ReferralOffer;
use super::{Frame, rendered};
use crate::domain::answers::Answers;
use crate::domain::figure::{dollars, grouped};
use crate::domain::language::Phrase;
use crate::domain::person::RetentionTimes;
use crate::domain::sign_in::REMEMBERED_FOR;
use crate::domain::sign_up::PENDING_FOR;
use crate::people::retention::MAILBOXES_KEPT_FOR;
use crate::site::own_text::PolicyPage;

/// What stands above the facts of each page.
struct PolicyHead<'a> {
    title: &'static str,
    heading: String,
    own_text: Option<Cow<'a, str>>,
}

#[derive(Template)]
#[template(path = "about.html")]
struct AboutPage<'a> {
    page: Frame<'a>,
    head: PolicyHead<'a>,
    members: Option<String>,
    rows: Vec<(&'a str, String)>,
    total: String,
    /// What the total does not count, by name.
    left_out: String,
    offer: ReferralOffer,
}

impl<'a> AboutPage<'a> {
    fn of(page: Frame<'a>, head: PolicyHead<'a>, member_count: Option<u64>) -> Self {
        let (catalog, words) = (&page.union.catalog, page.words);
        let rows = catalog.listed().iter().map(|(category, savings)| (words.category(*category), dollars(*savings)));
        let left_out: Vec<_> = catalog.left_out().into_iter().map(|category| words.category(category)).collect();
        Self {
            page,
            head,
            members: page.members(member_count).and(member_count).map(grouped),
            rows: rows.collect(),
            total: dollars(catalog.headline_savings()),
            left_out: words.list(&left_out),
            offer: ReferralOffer::of(page),
        }
    }
}

#[derive(Template)]
#[template(path = "privacy.html")]
struct PrivacyPage<'a> {
    page: Frame<'a>,
    head: PolicyHead<'a>,
    /// The labels of what the form asks.
    answers: String,
    times: RetentionTimes,
}

#[derive(Template)]
#[template(path = "terms.html")]
struct TermsPage<'a> {
    page: Frame<'a>,
    head: PolicyHead<'a>,
}

pub fn policy(page: Frame<'_>, which: PolicyPage, member_count: Option<u64>, times: RetentionTimes) -> String {
    let words = page.words;
    // Marked where it is not in the language around it, for those who hear the page.
    let own_text =
        page.branding.texts.find(which, page.language).map(|(language, html)| match language == page.language {
            true => Cow::Borrowed(html),
            false => Cow::Owned(format!("<div lang=\"{}\">{html}</div>", language.code())),
        });
    let (title, heading) = match which {
        PolicyPage::About => (&words.about.title, words.about.heading.put("union", &page.union.name).plain()),
        PolicyPage::Privacy => (&words.privacy.title, words.privacy.heading.to_string()),
        PolicyPage::Terms => (&words.terms.title, words.terms.heading.to_string()),
    };
    let head = PolicyHead { title: title.as_str(), heading, own_text };
    match which {
        PolicyPage::About => rendered(page, &AboutPage::of(page, head, member_count)),
        PolicyPage::Privacy => {
            let answers = words.list(&Answers::labels(words).map(Phrase::as_str));
            rendered(page, &PrivacyPage { page, head, answers, times })
        }
        PolicyPage::Terms => rendered(page, &TermsPage { page, head }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::language::Language;
    use crate::domain::time::Timestamp;
    use crate::site::branding::Branding;

    const NOW: Timestamp = Timestamp::from_millis(0);

    #[test]
    fn what_is_said_is_what_is_set() {
        let times = RetentionTimes { left: Duration::from_secs(777 * 24 * 3600), ..RetentionTimes::DEFAULT };
        let union = UnionSettings::sample();
        let privacy =
            |language| policy(Frame::new(&union, language, "/privacy", NOW), PolicyPage::Privacy, None, times);
        assert!(privacy(Language::English).contains("deleted 777 days after they left"));
        assert!(privacy(Language::Spanish).contains("777"));
    }

    #[test]
    fn the_unions_own_text_stands_above() {
        let union = UnionSettings::sample();
        let mut branding = Branding::default();
        branding.texts.add(PolicyPage::Terms, Language::English, "Our *own* terms.");
        let terms = |language| {
            let frame = Frame::new(&union, language, "/terms", NOW).branded(&branding);
            policy(frame, PolicyPage::Terms, None, RetentionTimes::DEFAULT)
        };
        let english = terms(Language::English);
        assert!(english.contains("<p>Our <em>own</em> terms.</p>"));
        assert!(english.find("own</em> terms").unwrap() < english.find("By confirming, you join").unwrap());
        assert!(terms(Language::Spanish).contains("<div lang=\"en\"><p>Our"));
    }
}
