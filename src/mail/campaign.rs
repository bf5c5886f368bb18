//! The letters about a campaign: it opened, an offer waits, what somebody accepted, what came of it. What the operator wrote is text in them, never markup.

use askama::Template;

use super::letter::{Body, Common, LetterFacts, rendered};
use crate::domain::campaign::acceptance::Handover;
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::wording::{OfferView, result_words};
use crate::domain::campaign::{CampaignMail, CampaignState, LastDay};
use crate::domain::language::{Language, Phrase};
use crate::domain::mail::{MailKind, Receipt};

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
    let day = |day: LastDay| words.date(day.begins_at());
    let result = campaign.result().filter(|result| campaign.state == CampaignState::Closed && result.accepted > 0);
    let (heading, why, facts, next, button) = match (kind, &campaign.offer) {
        (CampaignMail::Offer, Some(offer)) => (
            &mail.campaign_offer_heading,
            mail.campaign_offer_why.as_str().to_owned(),
            named(OfferView::of(offer, letter.language, (campaign.last_day_to_accept(), None), true), letter.language),
            mail.campaign_offer_next.as_str().to_owned(),
            &mail.campaign_offer_button,
        ),
        (CampaignMail::Offer, None) => {
            let withdrawn = campaign.withdrawn.as_ref().map(|withdrawn| {
                let of_offer = words.handover.withdrawn.put("supplier", &withdrawn.supplier);
                let of_offer = of_offer.put("date", words.date(withdrawn.at));
                of_offer.put("reason", withdrawn.reason(letter.language)).plain()
            });
            let next = format!("{} {}", withdrawn.unwrap_or_default(), mail.campaign_withdrawn_next.as_str());
            let why = mail.campaign_offer_why.as_str().to_owned();
            (&mail.campaign_withdrawn_heading, why, Vec::new(), next, &mail.campaign_button)
        }
        (CampaignMail::Result, _) => {
            let next = match (campaign.state, result) {
                (CampaignState::Cancelled, _) => mail.campaign_cancelled.as_str().to_owned(),
                (_, Some(result)) => {
                    let reached = result_words(result, letter.language);
                    let reached = mail.campaign_result_reached.put("result", reached).plain();
                    match result.offer.bid() {
                        Some(_) => reached,
                        None => format!("{reached} {}", words.deal.as_text.as_str()),
                    }
                }
                (_, None) => mail.campaign_result_few.as_str().to_owned(),
            };
            let why = mail.campaign_result_why.as_str().to_owned();
            let deal = result.map(|result| named(OfferView::of_result(result.offer, letter.language), letter.language));
            (&mail.campaign_result_heading, why, deal.unwrap_or_default(), next, &mail.campaign_button)
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
    let subject = match (kind, &campaign.offer) {
        (CampaignMail::Offer, None) => &mail.campaign_withdrawn_subject,
        _ => MailKind::from(kind).subject_words(letter.language),
    };
    let subject = subject.put("union", &letter.union.name).put("title", title).plain();
    let text = rendered(&CampaignLetterText { letter, news });
    Body { text, html: rendered(&CampaignLetterHtml { letter, subject: &subject, news }), subject }
}

#[derive(Template)]
#[template(path = "mail/receipt.txt")]
struct ReceiptText<'a> {
    letter: &'a Common<'a>,
    receipt: &'a ReceiptWords<'a>,
}

#[derive(Template)]
#[template(path = "mail/receipt.html")]
struct ReceiptHtml<'a> {
    letter: &'a Common<'a>,
    subject: &'a str,
    receipt: &'a ReceiptWords<'a>,
}

/// What a receipt says.
struct ReceiptWords<'a> {
    title: &'a str,
    /// That it was accepted, and when.
    accepted: String,
    /// What it is called, and the code or reference.
    code: (&'static str, String),
    /// What is done with it, or what the supplier gets.
    use_it: String,
    facts: Vec<(&'static Phrase, String)>,
    /// How one changes one's mind, until when, and what that ends.
    change: &'static str,
    withdrawing: String,
    page: &'a str,
}

/// What somebody accepted: nothing is promoted in it, and it cannot be switched off.
pub(super) fn receipt(receipt: &Receipt, facts: &LetterFacts<'_>, page: &str) -> Body {
    let letter = &facts.common(page);
    let (words, campaign) = (letter.words, &receipt.campaign);
    let (mail, handover) = (&words.mail, &words.handover);
    let title = campaign.draft.text(letter.language).map_or("", |text| &*text.title);
    let offer = campaign.offer.as_ref();
    let supplier = offer.map_or("", Offer::supplier);
    let gives_address = offer.is_some_and(|offer| offer.terms.handover == Some(Handover::Address));
    let (label, use_it, withdrawing) = match gives_address {
        true => (&handover.your_reference, &handover.address_waits, &handover.withdrawing_address),
        false => (&handover.your_code, &handover.use_code, &handover.withdrawing),
    };
    let reference = receipt.reference.to_string();
    let use_it = use_it.put("supplier", supplier).put("reference", &reference).plain();
    // It is decided: no day to decide by.
    let facts = offer.map(|offer| named(OfferView::of(offer, letter.language, (None, None), true), letter.language));
    let words = &ReceiptWords {
        title,
        accepted: mail.receipt_accepted.put("date", letter.words.date(receipt.accepted_at)).plain(),
        code: (label.as_str(), reference),
        use_it,
        facts: facts.unwrap_or_default(),
        change: mail.receipt_change.as_str(),
        withdrawing: withdrawing.put("supplier", supplier).plain(),
        page,
    };
    let subject = MailKind::Receipt.subject_words(letter.language);
    let subject = subject.put("union", &letter.union.name).put("title", title).plain();
    let text = rendered(&ReceiptText { letter, receipt: words });
    Body { text, html: rendered(&ReceiptHtml { letter, subject: &subject, receipt: words }), subject }
}

fn named(offer: OfferView, language: Language) -> Vec<(&'static Phrase, String)> {
    offer.listed(language).into_iter().map(|fact| (fact.label, fact.value)).collect()
}
