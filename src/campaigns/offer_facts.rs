//! An offer as operators read it, with everything that members will read of it in each language.

use crate::domain::campaign::acceptance::Handover;
use crate::domain::campaign::offer::{Deal, Offer};
use crate::domain::campaign::wording::OfferView;
use crate::domain::language::Language;

/// What each fact is, and the fact.
pub fn offer_facts(offer: &Offer) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    match &offer.deal {
        Deal::Reckoned(deal) => facts.push(("Bid".to_owned(), deal.number.to_string())),
        Deal::AsText(_) => {
            facts.push(("Not reckoned".to_owned(), "published by version 1.0.0, from its texts".to_owned()));
        }
    }
    if let Some(handover) = offer.terms.handover {
        let what = match handover {
            Handover::Code => "a code of each member who accepts",
            Handover::Address => "the address and state of each member who accepts",
        };
        facts.push(("The supplier gets".to_owned(), what.to_owned()));
    }
    let days = (Some(offer.terms.decide_by), offer.terms.open_until);
    for language in Language::ALL {
        let own = language.words().site.language.as_str();
        for fact in OfferView::of(offer, language, days, true).listed(language) {
            let name =
                if language == Language::English { fact.label.to_string() } else { format!("{own}: {}", fact.label) };
            facts.push((name, fact.value));
        }
    }
    facts
}
