//! What a negotiator may agree to, as the operator wrote it into the campaign's file.

use schemars::JsonSchema;
use serde::Serialize;

use super::LastDay;
use super::file::FileReader;
use super::price::LONGEST_MONTHS;
use crate::domain::figure::money;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mandate {
    /// All-in, a year.
    pub target_cents: u64,
    /// For people alone: a supplier's words share the negotiator's context.
    pub walk_away_cents: u64,
    pub rules: MandateRules,
}

/// What the negotiator reads beside the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MandateRules {
    pub longest_term_months: u32,
    pub most_exit_fee_cents: u64,
    pub most_commission_cents: u64,
    /// Empty: any.
    pub suppliers: Vec<String>,
    /// What a deal must not contain; a person has to look.
    pub never: Vec<String>,
    /// The day by which suppliers are asked to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_by: Option<LastDay>,
}

/// Which price a bid is measured by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The negotiator's: the target alone, so that nobody can find the other price by trying.
    Target,
    /// Of a person who publishes.
    WalkAway,
}

impl Mandate {
    pub(super) fn read(mandate: &mut FileReader) -> Option<Self> {
        let target_cents = mandate.cents("target_cents");
        let walk_away_cents = mandate.cents("walk_away_cents");
        let longest_term_months = mandate.whole("longest_term_months", 0, LONGEST_MONTHS);
        let most_exit_fee_cents = mandate.cents("most_exit_fee_cents");
        let most_commission_cents = mandate.cents("most_commission_cents");
        let names = "at most 50 names of companies, or leave it out for any";
        let suppliers = mandate.texts_of("suppliers", (50, 100), names);
        let never = mandate.texts_of("never", (20, 200), "at most 20 texts of 1 to 200 characters");
        let reply_by = mandate.optional_day("reply_by");
        if let (Some(target), Some(walk_away)) = (target_cents, walk_away_cents)
            && walk_away < target
        {
            mandate.wrong("walk_away_cents", "it must not be below target_cents");
        }
        Some(Self {
            target_cents: target_cents?,
            walk_away_cents: walk_away_cents?,
            rules: MandateRules {
                longest_term_months: longest_term_months?,
                most_exit_fee_cents: most_exit_fee_cents?,
                most_commission_cents: most_commission_cents?,
                suppliers,
                never,
                reply_by,
            },
        })
    }
}

pub(super) fn in_money(cents: u64) -> String {
    money(i64::try_from(cents).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::bid::tests::BID;
    use super::super::bid::{Bid, missed};
    use super::super::draft::CampaignDraft;
    use super::super::tests::{DRAFT, MANDATE};
    use super::*;

    fn campaign() -> CampaignDraft {
        CampaignDraft::parse(&format!("{DRAFT}{MANDATE}")).unwrap()
    }

    fn misses(bid: &str, measure: Measure) -> Vec<String> {
        let (campaign, bid) = (campaign(), Bid::parse(bid).unwrap());
        missed(campaign.mandate.as_ref(), &bid, bid.reckoned(&campaign).unwrap(), measure)
    }

    #[test]
    fn a_bid_is_within_or_misses_points() {
        let good = BID.replace("cents = 500", "cents = 0");
        assert_eq!(misses(&good, Measure::Target), [""; 0]);
        let dear = "it costs $636 a year with everything, and the target is $576";
        assert_eq!((misses(BID, Measure::Target), misses(BID, Measure::WalkAway)), (vec![dear.to_owned()], vec![]));
        let bad = BID
            .replace("4800", "6800")
            .replace("Example Fiber", "Other")
            .replace("term_months = 12", "term_months = 24")
            .replace("exit_fee_cents = 0", "exit_fee_cents = 9_950")
            .replace("commission_cents = 2500", "commission_cents = 2501");
        let expected = [
            "it costs $876 a year with everything, and the most that the mandate allows is $696",
            "its term is 24 months, and the longest is 12 months",
            "leaving early costs $99.50, and the most is $0",
            "the union gets $25.01 for each switch, and the most is $25",
            "\"Other\" is not one of the suppliers: Example Fiber",
            "it saves nothing against the benchmark",
        ];
        assert_eq!(misses(&bad, Measure::WalkAway), expected);
    }

    #[test]
    fn without_a_mandate_a_bid_must_save_something() {
        let campaign = CampaignDraft::parse(DRAFT).unwrap();
        let of = |bid: &str| {
            let bid = Bid::parse(bid).unwrap();
            missed(None, &bid, bid.reckoned(&campaign).unwrap(), Measure::WalkAway)
        };
        assert_eq!(of(BID), [""; 0]);
        assert_eq!(of(&BID.replace("4800", "6300")), ["it saves nothing against the benchmark"]);
    }

    #[test]
    fn a_mandate_makes_sense() {
        let bad = MANDATE.replace("57600", "70000").replace("never = [\"", "never = [\"\", \"");
        let Err(super::super::file::BadFile(mistakes)) = CampaignDraft::parse(&format!("{DRAFT}{bad}")) else {
            panic!("it is taken")
        };
        let expected = [
            "mandate.never: \"\" is not a text; write at most 20 texts of 1 to 200 characters",
            "mandate.walk_away_cents: it must not be below target_cents",
        ];
        assert_eq!(mistakes, expected);
    }
}
