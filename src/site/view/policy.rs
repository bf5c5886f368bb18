//! The pages of trust: who this is, what is kept and for how long, what joining means. What the program says there it takes
//! from what it does; the union's own text stands above it.

use askama::Template;

use super::join::ReferralOffer;
use super::{Frame, rendered};
use crate::domain::figure::{dollars, grouped};
use crate::domain::language::Phrase;
use crate::domain::person::RetentionTimes;
use crate::domain::sign_in::REMEMBERED_FOR;
use crate::domain::sign_up::PENDING_FOR;
use crate::people::retention::MAILBOXES_KEPT_FOR;
use crate::site::own_text::PolicyPage;

#[derive(Template)]
#[template(path = "about.html")]
struct AboutPage<'a> {
    page: Frame<'a>,
    title: &'a str,
    heading: String,
    no_text: &'a Phrase,
    own_text: Option<String>,
    members: Option<String>,
    docs: String,
    rows: Vec<(&'a str, String)>,
    total: String,
    /// What the total does not count, by name.
    left_out: String,
    offer: ReferralOffer,
}

#[derive(Template)]
#[template(path = "privacy.html")]
struct PrivacyPage<'a> {
    page: Frame<'a>,
    title: &'a str,
    heading: String,
    no_text: &'a Phrase,
    own_text: Option<String>,
    sign_ins: String,
    pending: String,
    answers: String,
    unconfirmed: String,
    left: String,
    mailboxes: String,
    complaints: String,
}

#[derive(Template)]
#[template(path = "terms.html")]
struct TermsPage<'a> {
    page: Frame<'a>,
    title: &'a str,
    heading: String,
    no_text: &'a Phrase,
    own_text: Option<String>,
    notice: &'a str,
    rules: Vec<String>,
}

pub fn policy(page: Frame<'_>, which: PolicyPage, member_count: Option<u64>, times: RetentionTimes) -> String {
    let words = page.words;
    // Marked where it is not in the language around it, for those who hear the page.
    let own_text =
        page.branding.texts.find(which, page.language).map(|(language, html)| match language == page.language {
            true => html.to_owned(),
            false => format!("<div lang=\"{}\">{html}</div>", language.code()),
        });
    match which {
        PolicyPage::About => rendered(
            page,
            &AboutPage {
                page,
                title: words.about.title.as_str(),
                heading: words.about.heading.put("union", &page.union.name).plain(),
                no_text: &words.about.no_text,
                own_text,
                members: page.members(member_count).and(member_count).map(grouped),
                docs: format!("{}/docs", page.union.base_url),
                rows: {
                    let listed = page.union.catalog.listed().iter();
                    listed.map(|(category, savings)| (words.category(*category), dollars(*savings))).collect()
                },
                total: dollars(page.union.catalog.headline_savings()),
                left_out: {
                    let left_out = page.union.catalog.left_out();
                    words.list(&left_out.into_iter().map(|category| words.category(category)).collect::<Vec<_>>())
                },
                offer: ReferralOffer::of(page),
            },
        ),
        PolicyPage::Privacy => rendered(
            page,
            &PrivacyPage {
                page,
                title: words.privacy.title.as_str(),
                heading: words.privacy.heading.to_string(),
                no_text: &words.privacy.no_text,
                own_text,
                sign_ins: words.days(REMEMBERED_FOR),
                pending: words.days(PENDING_FOR),
                answers: words.days(times.answers),
                unconfirmed: words.days(times.unconfirmed),
                left: words.days(times.left),
                mailboxes: words.days(MAILBOXES_KEPT_FOR),
                complaints: words.days(times.complaints),
            },
        ),
        PolicyPage::Terms => rendered(
            page,
            &TermsPage {
                page,
                title: words.terms.title.as_str(),
                heading: words.terms.heading.to_string(),
                no_text: &words.terms.no_text,
                own_text,
                notice: &page.union.notices.in_language(page.language).words,
                rules: page.union.catalog.rules(page.language),
            },
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::language::Language;
    use crate::site::branding::Branding;

    #[test]
    fn what_is_said_is_what_is_set() {
        let times = RetentionTimes { left: Duration::from_secs(777 * 24 * 3600), ..RetentionTimes::DEFAULT };
        let union = UnionSettings::sample();
        let privacy = |language| policy(Frame::new(&union, language, "/privacy"), PolicyPage::Privacy, None, times);
        assert!(privacy(Language::English).contains("deleted 777 days after they left"));
        assert!(privacy(Language::Spanish).contains("777"));
        assert!(privacy(Language::English).contains("hasn't added any text of its own"));
    }

    #[test]
    fn the_unions_own_text_stands_above_and_takes_the_place_of_the_excuse() {
        let union = UnionSettings::sample();
        let mut branding = Branding::default();
        branding.texts.add(PolicyPage::Terms, Language::English, "Our *own* terms.");
        let terms = |language| {
            let frame = Frame::new(&union, language, "/terms").branded(&branding);
            policy(frame, PolicyPage::Terms, None, RetentionTimes::DEFAULT)
        };
        let english = terms(Language::English);
        assert!(english.contains("<p>Our <em>own</em> terms.</p>") && !english.contains("hasn't added any text"));
        assert!(english.find("own</em> terms").unwrap() < english.find("By confirming, you join").unwrap());
        assert!(terms(Language::Spanish).contains("<div lang=\"en\"><p>Our"));
    }
}
