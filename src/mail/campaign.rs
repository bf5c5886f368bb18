//! The letters about a campaign: it opened, an offer waits, what came of it. What the operator wrote is text in them, never markup.

use askama::Template;

use super::letter::{Body, Common, LetterFacts, rendered};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::wording::{OfferFact, deal_facts, offer_facts};
use crate::domain::campaign::{CampaignMail, CampaignState, LastDay};
use crate::domain::language::Phrase;
use crate::domain::mail::MailKind;
use crate::domain::time::Timestamp;

#[derive(Template)]
#[template(path = "mail/campaign.txt")]
struct CampaignLetterText<'a> {
    letter: &'a Common<'a>,
    news: &'a News<'a>,
}

#[derive(Template)]
#[template(path = "mail/campaign.html")]
struct CampaignLetterHtml<'a> {
    letter: &'a Common<'a>,
    subject: &'a str,
    news: &'a News<'a>,
}

/// What a letter says of its campaign.
struct News<'a> {
    heading: &'static Phrase,
    /// Why the reader gets it.
    why: String,
    title: &'a str,
    summary: &'a str,
    /// What there is to know, each with its name.
    facts: Vec<(&'static Phrase, String)>,
    /// What happens next, and what does not.
    next: String,
    button: &'static Phrase,
    page: &'a str,
    unsubscribe: &'a str,
}

/// The letter of that kind: `page` is where its button leads, `unsubscribe` where its kind is switched off.
pub(super) fn body(
    kind: CampaignMail,
    campaign: &CampaignRecord,
    facts: &LetterFacts<'_>,
    (page, unsubscribe): (&str, &str),
) -> Body {
    let letter = &facts.common(page);
    let words = letter.words;
    let mail = &words.mail;
    let text = campaign.draft.text(letter.language);
    let (title, summary) = text.map_or(("", ""), |text| (&*text.title, &*text.summary));
    let category = words.category(campaign.draft.category);
    let day = |day: LastDay| words.date(Timestamp::from_millis(day.number() * 86_400_000));
    let result = campaign.result().filter(|result| campaign.state == CampaignState::Closed && result.accepted > 0);
    let (heading, why, facts, next, button) = match (kind, &campaign.offer) {
        (CampaignMail::Offer, Some(offer)) => (
            &mail.campaign_offer_heading,
            mail.campaign_offer_why.as_str().to_owned(),
            named(offer_facts(
                offer,
                letter.language,
                (campaign.last_day_to_accept().unwrap_or(offer.terms.decide_by), None),
                true,
            )),
            mail.campaign_offer_next.as_str().to_owned(),
            &mail.campaign_offer_button,
        ),
        (CampaignMail::Result, _) => {
            let next = match (campaign.state, result) {
                (CampaignState::Cancelled, _) => mail.campaign_cancelled.as_str().to_owned(),
                (_, Some(result)) => {
                    let filled = mail.campaign_result_reached.put("members", words.members(result.accepted));
                    let reached = filled.put("saved", result.saved_words(letter.language)).plain();
                    match result.offer.bid() {
                        Some(_) => reached,
                        None => format!("{reached} {}", words.deal.as_text.as_str()),
                    }
                }
                (_, None) => mail.campaign_result_few.as_str().to_owned(),
            };
            let why = mail.campaign_result_why.as_str().to_owned();
            let deal = result.map(|result| deal_facts(result.offer, letter.language)).unwrap_or_default();
            (&mail.campaign_result_heading, why, named(deal), next, &mail.campaign_button)
        }
        _ => (
            &mail.campaign_opened_heading,
            mail.campaign_opened_why.put("category", category).plain(),
            Vec::new(),
            match campaign.state {
                CampaignState::Negotiating => mail.campaign_opened_late.as_str().to_owned(),
                _ => mail.campaign_opened_next.put("day", day(campaign.draft.gather_until)).plain(),
            },
            &mail.campaign_button,
        ),
    };
    let news = &News { heading, why, title, summary, facts, next, button, page, unsubscribe };
    let subject = MailKind::from(kind).subject_words(letter.language);
    let subject = subject.put("union", &letter.union.name).put("title", title).plain();
    let text = rendered(&CampaignLetterText { letter, news });
    Body { text, html: rendered(&CampaignLetterHtml { letter, subject: &subject, news }), subject }
}

fn named(facts: Vec<OfferFact>) -> Vec<(&'static Phrase, String)> {
    facts.into_iter().map(|fact| (fact.label, fact.value)).collect()
}
