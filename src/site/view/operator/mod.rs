//! The operator's page, rendered: the overview in pictures.

mod charts;
mod pictures;
mod scale;
mod summary;
mod tiles;

use askama::Template;

use self::charts::Chart;
use self::pictures::{Picture, PictureContent, pictures, rewards};
pub(in crate::site) use self::pictures::{accepted, next, title};
use self::summary::{Deadline, KeyFigure, deadlines, key_figures};
use crate::domain::catalog::Catalog;
use crate::domain::time::Timestamp;
use crate::operator::overview::Overview;

/// All figures, as a part of a page.
#[derive(Template)]
#[template(path = "operator/pictures.html")]
pub struct OverviewPart {
    read_at: Timestamp,
    key_figures: Vec<KeyFigure>,
    deadlines: Vec<Deadline>,
    pictures: Vec<Picture>,
}

impl OverviewPart {
    pub fn new(overview: &Overview, catalog: &Catalog) -> Self {
        Self {
            read_at: overview.read_at,
            key_figures: key_figures(overview),
            deadlines: deadlines(overview),
            pictures: pictures(overview, catalog),
        }
    }
}

#[derive(Template)]
#[template(path = "operator/one_picture.html")]
pub struct RewardsPart {
    picture: Picture,
}

impl RewardsPart {
    pub fn new(overview: &Overview) -> Self {
        Self { picture: rewards(overview) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::campaign::CampaignState;
    use crate::domain::campaign::tests::{campaign, offered};
    use crate::domain::mail::budget::{Reputation, SourceStatus};
    use crate::domain::referral::ReferralCode;
    use crate::domain::reward::report::{OnTheWay, RewardTotals};
    use crate::operator::Funnel;
    use crate::operator::demand::{DemandRow, OTHERS};
    use crate::operator::overview::{DayFigures, MailFigures};
    use crate::rewards::BatchRecord;

    const NOW: Timestamp = Timestamp::from_millis(1_794_743_200_000);

    fn day_one() -> Overview {
        Overview {
            read_at: NOW,
            members: 0,
            days: vec![DayFigures { day: 20_772, funnel: Funnel::default(), members: 0 }],
            sources: Vec::new(),
            by_state: Vec::new(),
            by_category: Vec::new(),
            referred: 0,
            top_referrers: Vec::new(),
            mail: MailFigures { waiting: 0, about_campaigns: 0, held: 0, given_up: 0, oldest: None },
            senders: Vec::new(),
            campaigns: Vec::new(),
            rewards: RewardTotals::default(),
            on_the_way: OnTheWay { is_whole: true, ..OnTheWay::default() },
            batches: Vec::new(),
        }
    }

    /// A union that is a year old; `partner` is the name of one.
    fn a_year(partner: &str) -> Overview {
        let day = |n: u64| {
            let confirmed = 20 + n * 7 % 13 + n / 12;
            let funnel = Funnel {
                signed_up: confirmed * 2,
                mailed: confirmed * 2 - 3,
                confirmed,
                declined: n % 3,
                lapsed: n % 5,
                left: n % 2,
            };
            DayFigures { day: 20_772 - 365 + n as i64, funnel, members: 1000 + n * n / 9 + 30 * n }
        };
        let row = |code: &str, name: &str, members| DemandRow { code: code.into(), name: name.into(), members };
        let source = |name: &str, signed_up, mailed, confirmed, declined| {
            (name.to_owned(), Funnel { signed_up, mailed, confirmed, declined, ..Funnel::default() })
        };
        let reputation = Reputation { asked: 900, bounced: 12, complained: 2, declined: 9, ..Reputation::default() };
        Overview {
            members: 27_110,
            days: (0..=365).map(day).collect(),
            sources: vec![
                source("", 2110, 2050, 1500, 11),
                source(partner, 700, 690, 420, 95),
                source("A partner with a name that is quite long", 3, 0, 0, 0),
            ],
            by_state: vec![
                row("CA", "California", Some(9120)),
                row("NY", "New York", Some(4800)),
                row("", "not said", Some(2400)),
                row("TX", "Texas", Some(1200)),
                row(OTHERS, "3 more, fewer than 5 each", None),
            ],
            by_category: vec![
                row("internet", "internet", Some(12_000)),
                row("mobile_bills", "mobile_bills", Some(9000)),
                row("groceries", "groceries", Some(40)),
                row(OTHERS, "2 more, fewer than 5 each", Some(6)),
            ],
            referred: 6210,
            top_referrers: vec![(ReferralCode::from_canonical("0123456789ab").unwrap(), 77)],
            mail: MailFigures {
                waiting: 42,
                about_campaigns: 0,
                held: 7,
                given_up: 1,
                oldest: Some(Timestamp::from_millis(NOW.as_millis() - 185_000)),
            },
            senders: vec![SourceStatus { source: partner.to_owned(), reputation, held: 7, ..SourceStatus::default() }],
            campaigns: vec![
                campaign(CampaignState::Gathering),
                offered(CampaignState::Offered),
                offered(CampaignState::Active),
                offered(CampaignState::Closed),
                campaign(CampaignState::Cancelled),
            ],
            rewards: RewardTotals {
                accounts: 210,
                due_cents: 1_250_000,
                erased_cents: 10_000,
                out_cents: 300_000,
                paid_cents: 4_100_050,
                negative_accounts: 1,
                negative_cents: -10_000,
            },
            on_the_way: OnTheWay { on_hold: 310, waiting: 44, is_whole: false },
            ..day_one()
        }
    }

    fn html(overview: &Overview) -> String {
        OverviewPart::new(overview, &Catalog::sample()).render().unwrap()
    }

    #[test]
    fn every_picture_has_its_figures_in_words_and_in_a_table() {
        let page = html(&a_year("Acme"));
        assert_eq!(page.matches("<svg ").count(), 9);
        assert_eq!(page.matches("role=\"img\"").count(), 9);
        for words in [
            "27,110 members now. 1,",
            "% more than in the 30 before",
            "Most members live in California: 9,120 of 27,110.",
            "Not on the map: 3 more, fewer than 5 each, &#60;5 together.",
            "6,210 members were referred by another, 23% of all.",
            "42 mails are waiting, the oldest for 3 minutes; 7 held and 1 failed for good.",
            "61% yes, 14% no",
            "5 campaigns: 1 gathering, 1 offered, 1 active, 1 closed, 1 cancelled.",
            "$12,500 is due, $3,000 is being paid, and $41,000.50 was paid.",
            "at least 310 are on hold and at least 44 wait for a full group.",
            "1 account owes $100.",
            "<strong>27,110</strong>",
            "<strong>42</strong> <span class=\"note\">7 held</span>",
            "<strong>$12,500</strong> <span class=\"note\">$3,000 being paid</span>",
            "<h3>Next deadlines</h3>",
            "Other outcomes</text>",
        ] {
            assert!(page.contains(words), "{words} in {page}");
        }
    }

    #[test]
    fn day_one_says_what_to_do() {
        let page = html(&day_one());
        assert_eq!(page.matches("<svg ").count(), 1, "mail alone");
        for words in [
            "Nobody has joined yet.",
            "unionhall keys issue NAME",
            "unionhall campaigns sample | unionhall campaigns new -",
            "Nobody has earned a reward yet.",
            "0 mails are waiting; 0 held and 0 failed for good.",
            "none in the 7 before",
            "<strong>–</strong> <span class=\"note\">of 0 sign-ups</span>",
        ] {
            assert!(page.contains(words), "{words} in {page}");
        }
        assert!(!page.contains("Next deadlines"), "{page}");
    }

    #[test]
    fn deadlines_come_in_their_order_and_what_is_overdue_is_a_finding() {
        let batch = |id, created_at, is_written| BatchRecord {
            who: "ana (page)".to_owned(),
            id,
            created_at,
            is_written,
            payouts: 1,
            cents: 100,
            out: 1,
            out_cents: 100,
        };
        let now = NOW.minus(Duration::from_secs(86_400));
        let batches = vec![batch(1, Timestamp::from_millis(0), true), batch(2, NOW, true), batch(3, now, false)];
        let page = html(&Overview { campaigns: Vec::new(), batches, ..a_year("Acme") });
        let (_, deadlines) = page.split_once("class=\"deadlines\"").unwrap();
        let deadlines = deadlines.split_once("</ul>").unwrap().0;
        assert_eq!(deadlines.matches("<li>").count(), 2, "{deadlines}");
        let at = |text: &str| deadlines.find(text).unwrap_or_else(|| panic!("{text} in {deadlines}"));
        assert!(at("/operator/rewards#batches\">Batch 3 of rewards</a>: download its file") < at("Batch 2"));
        assert!(at("2026-11-28") < at("2026-11-29"));
    }

    #[test]
    fn nothing_of_others_is_markup_and_nothing_overflows() {
        let page = html(&a_year("\"><script>alert(1)</script><b style='x'>"));
        assert!(!page.contains("<script") && !page.contains("<b ") && !page.contains("style='"), "{page}");
        let most =
            Funnel { signed_up: u64::MAX, mailed: 1, confirmed: u64::MAX, declined: u64::MAX, lapsed: 0, left: 0 };
        let mut huge = day_one();
        huge.members = u64::MAX;
        huge.days[0] = DayFigures { day: i64::from(i32::MAX), funnel: most, members: u64::MAX };
        huge.sources = vec![("Acme".to_owned(), most)];
        huge.by_category =
            vec![DemandRow { code: "internet".into(), name: "internet".into(), members: Some(u64::MAX) }];
        huge.rewards =
            RewardTotals { accounts: 1, due_cents: i64::MAX, paid_cents: i64::MAX, ..RewardTotals::default() };
        assert!(html(&huge).contains("18,446,744,073,709,551,615 members now"));
    }
}
