//! A step of a campaign as an operator takes it, by a command or on the page: what is refused and why, and what the step means.

use crate::domain::api_key::Mode;
use crate::domain::campaign::offer::NotPublished;
use crate::domain::campaign::record::{CampaignRecord, OfferDraft};
use crate::domain::campaign::wording::result_words;
use crate::domain::campaign::{BadStep, CampaignSlug, CampaignState, LastDay};
use crate::domain::catalog::{CountsOn, ReferralTerms};
use crate::domain::figure::{counted, dollars};
use crate::domain::language::Language;
use crate::domain::remedy::{Remedy, WriteRemedy};
use crate::domain::time::Timestamp;

#[derive(Clone, Copy)]
pub struct StepNote<'a> {
    pub who: &'a str,
    pub note: &'a str,
    /// Whether to mail the people it concerns.
    pub mails: bool,
}

pub struct DoneStep {
    pub before: CampaignRecord,
    pub after: CampaignRecord,
    /// The draft that was made instead, for another person to publish.
    pub draft: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefusedStep {
    #[error("there is no campaign {0}")]
    Unknown(CampaignSlug),
    #[error("{0}: {1}")]
    Bad(CampaignSlug, BadStep),
    #[error("gather_until of {0} is {1}, which is over")]
    GatheringOver(CampaignSlug, LastDay),
    #[error("{1}")]
    NotReviewed(CampaignSlug, String),
    #[error("the supplier delivers to {needs} members at least, and {accepted} have accepted {slug} now")]
    TooFewAccepted { slug: CampaignSlug, needs: u32, accepted: u32 },
    #[error(
        "the offer of {0} was published by version 1.0.0, which kept no acceptances one by one; its campaign can be closed or cancelled"
    )]
    OfferAsText(CampaignSlug),
    #[error("draft {1} of {0}'s offer is your own; another person has to publish it")]
    OwnDraft(CampaignSlug, u32),
    #[error("{0} has {most} drafts of an offer already, which is the most", most = OfferDraft::MOST)]
    DraftsFull(CampaignSlug),
    #[error("the offer of {0} is not published: {sentence}", sentence = .1.sentence())]
    NotPublished(CampaignSlug, NotPublished),
}

impl RefusedStep {
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::GatheringOver(slug, _) | Self::NotReviewed(slug, _) => Some(Remedy::EditCampaign(slug.clone())),
            Self::NotPublished(_, NotPublished::Unsigned(points)) => {
                Some(Remedy::SignOffer { outside: !points.outside.is_empty(), figures: !points.figures.is_empty() })
            }
            _ => None,
        }
    }
}

impl DoneStep {
    /// What the step means and what comes next.
    pub fn words(&self, mails: bool, now: Timestamp, write: WriteRemedy) -> Vec<String> {
        let Self { before, after, draft } = self;
        let slug = after.slug();
        if let Some(draft) = draft {
            let publish = write(&Remedy::PublishDraft(slug.clone(), *draft), Mode::Live);
            return vec![
                format!("The offer is kept as draft {draft} of {slug}, under your name. Nothing is published."),
                format!("Another person publishes it: {publish}."),
            ];
        }
        let mailed = |whom: &str| match mails {
            true => format!("The service mails {whom}, if they want such mail."),
            false => "Nobody is mailed about it.".to_owned(),
        };
        let took_part = || mailed("those who were in or accepted");
        let tell_supplier = || {
            let hand_over = write(&Remedy::HandOver(slug.clone()), Mode::Live);
            format!("Tell the supplier who accepts no longer: {hand_over}.")
        };
        match after.state {
            CampaignState::Gathering => vec![
                format!(
                    "{slug} is gathering: members are asked until the end of {}; then it becomes negotiating by itself.",
                    after.draft.gather_until
                ),
                mailed("the members it fits"),
            ],
            CampaignState::Negotiating if before.state == CampaignState::Offered => vec![
                format!(
                    "The offer of {slug} is withdrawn, and it is negotiating again. Who accepted is in again; their acceptances end."
                ),
                mailed("those who are in or accepted"),
                tell_supplier(),
            ],
            CampaignState::Negotiating => vec![
                format!("{slug} is negotiating. Members can still count themselves in or out."),
                format!("Once a supplier agrees: {}.", write(&Remedy::OfferCampaign(slug.clone()), Mode::Live)),
            ],
            CampaignState::Offered => {
                let published = after.offer.as_ref().map(|offer| {
                    format!(
                        "The offer of {} is published: members accept or pass until the end of {}.",
                        offer.supplier(),
                        offer.terms.decide_by
                    )
                });
                let mut lines: Vec<_> = published.into_iter().collect();
                let worse = after.offer.as_ref().zip(before.offer.as_ref()).map(|(new, old)| new.worse_than(old));
                match worse.as_deref() {
                    None => lines.push(mailed("those who are in")),
                    Some([]) => lines.push(STANDS.to_owned()),
                    Some(worse) => {
                        lines.push(ends(worse));
                        lines.push(mailed("those who are in or accepted the one before"));
                    }
                }
                let activate = write(&Remedy::ActivateCampaign(slug.clone()), Mode::Live);
                lines.push(format!("Once the deal has started: {activate}."));
                lines
            }
            CampaignState::Active => {
                let mut lines = vec![
                    format!("{slug} is active: the deal has started, and members who accepted take part from now on."),
                    match after.last_day_to_accept().filter(|day| !day.is_over(now)) {
                        Some(day) => format!("Members can accept until the end of {day}."),
                        None => "Nobody can accept it anymore.".to_owned(),
                    },
                ];
                let terms =
                    after.terms.map(|terms| format!("Referral terms, copied for good: {}.", terms_words(&terms)));
                lines.extend(terms);
                lines
            }
            CampaignState::Closed => {
                let reached = match after.result() {
                    None => {
                        let counting = format!("{slug} is closed. Its members are still being counted.");
                        let next = "The service finishes the count. Then the page shows the result, and mail about it goes out.";
                        return vec![counting, next.to_owned(), took_part()];
                    }
                    Some(result) if result.accepted == 0 => {
                        "fewer than 5 members had accepted at the last count.".to_owned()
                    }
                    Some(result) => result_words(result, Language::English),
                };
                vec![format!("{slug} is closed. Its page shows the result: {reached}"), took_part()]
            }
            CampaignState::Cancelled if before.state == CampaignState::Offered => vec![
                format!("{slug} is cancelled: nobody can take part anymore, and acceptances end."),
                took_part(),
                tell_supplier(),
            ],
            CampaignState::Cancelled if before.was_public() => {
                vec![format!("{slug} is cancelled: nobody can take part anymore."), took_part()]
            }
            CampaignState::Cancelled => vec![format!("The draft {slug} is cancelled; nobody ever saw it.")],
            CampaignState::Draft => vec![format!("{slug} is {}.", after.state.name())],
        }
    }
}

/// What becomes of acceptances where an offer takes the place of another that is no better in anything.
pub const STANDS: &str = "It is no worse than the one before in any field: acceptances stand, and nobody is mailed.";

/// And where it is worse in something.
pub fn ends(worse: &[String]) -> String {
    format!("It may be worse than the one before: {}. Acceptances end, and members are asked anew.", worse.join("; "))
}

pub fn read_note(text: &str) -> Result<String, String> {
    let text = text.trim();
    let is_good = text.chars().count() <= 500 && !text.chars().any(char::is_control);
    if is_good { Ok(text.to_owned()) } else { Err("write at most 500 characters on one line".to_owned()) }
}

/// Why something is done all the same: a note that says something.
pub fn read_reason(text: &str) -> Result<String, String> {
    match read_note(text)? {
        reason if reason.is_empty() => Err("write the reason".to_owned()),
        reason => Ok(reason),
    }
}

/// What a member earns by referring others to a campaign.
pub fn terms_words(terms: &ReferralTerms) -> String {
    let ReferralTerms { reward_per_group, group_size, max_groups, hold_days, counts_on } = *terms;
    let days = counted(hold_days.into(), "day");
    let once = match (counts_on, hold_days) {
        (CountsOn::Accepted, 0) => String::new(),
        (CountsOn::Accepted, _) => format!(", once each took part for {days}"),
        (CountsOn::Switched, 0) => ", once the supplier says that each switched".to_owned(),
        (CountsOn::Switched, _) => format!(", {days} after the supplier says that each switched"),
    };
    format!(
        "{} for each group of {group_size}{once}; at most {max_groups} groups a person, over all campaigns",
        dollars(reward_per_group)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_of_no_days_is_left_out_of_the_terms() {
        let words = |hold_days, counts_on| {
            let terms = ReferralTerms { reward_per_group: 100, group_size: 5, max_groups: 10, hold_days, counts_on };
            terms_words(&terms)
        };
        let [end, each] = ["; at most 10 groups a person, over all campaigns", "$100 for each group of 5"];
        for (hold_days, counts_on, once) in [
            (0, CountsOn::Accepted, ""),
            (1, CountsOn::Accepted, ", once each took part for 1 day"),
            (0, CountsOn::Switched, ", once the supplier says that each switched"),
            (30, CountsOn::Switched, ", 30 days after the supplier says that each switched"),
        ] {
            assert_eq!(words(hold_days, counts_on), format!("{each}{once}{end}"));
        }
    }
}
