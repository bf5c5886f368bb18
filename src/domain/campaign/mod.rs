//! Campaigns: one category, some states or all, one offer. What a campaign may do next, and the days that act by themselves.

pub mod acceptance;
pub mod bid;
pub mod contact;
pub mod demand;
pub mod draft;
mod figures_in_text;
mod file;
pub mod handover;
mod improvement;
pub mod mailing;
pub mod mandate;
pub mod offer;
pub mod participation;
pub mod price;
pub mod reckoning;
pub mod record;
pub mod wording;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::Span;
use jiff::civil::Date;

use super::json::{json_text, named_enum};
use super::time::Timestamp;

pub use self::file::BadFile;

/// A campaign's name in addresses, commands and files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CampaignSlug(String);

json_text!(CampaignSlug, |slug: &CampaignSlug| slug.0.clone());

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write {}", CampaignSlug::FORM)]
pub struct BadSlug;

impl CampaignSlug {
    pub const FORM: &str = "3 to 60 lower-case letters, digits and single hyphens, a letter first and no hyphen last, such as \
                            internet-2027";

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CampaignSlug {
    type Err = BadSlug;

    fn from_str(text: &str) -> Result<Self, BadSlug> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_good = (3..=60).contains(&text.len())
            && text.bytes().all(is_plain)
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && !text.ends_with('-')
            && !text.contains("--");
        if is_good { Ok(Self(text.to_owned())) } else { Err(BadSlug) }
    }
}

impl fmt::Display for CampaignSlug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

named_enum! {
    /// How far a campaign is.
    pub enum CampaignState {
        /// The operator's alone.
        Draft = "draft",
        /// Members say whether they are in.
        Gathering = "gathering",
        /// So they still do, while the offer is negotiated.
        Negotiating = "negotiating",
        /// Those who are in accept the offer or pass.
        Offered = "offered",
        /// The deal runs.
        Active = "active",
        Closed = "closed",
        Cancelled = "cancelled",
    }
}

named_enum! {
    /// What members are mailed about a campaign, each kind for itself.
    pub enum CampaignMail {
        /// A campaign opened for a bill that they ticked.
        Opened = "campaign_opened",
        /// An offer waits for those who are in.
        Offer = "campaign_offer",
        /// What came of it, for those who were in or accepted.
        Result = "campaign_result",
    }
}

/// What the operator, or a day that was named, does to a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignStep {
    Open,
    Negotiate,
    Offer,
    /// The supplier takes its offer back, or the union does.
    WithdrawOffer,
    Activate,
    Close,
    Cancel,
}

/// Why a step makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the campaign is {}{}", from.words(), self.why())]
pub struct BadStep {
    pub from: CampaignState,
    pub step: CampaignStep,
}

impl BadStep {
    fn why(&self) -> String {
        match (self.from, self.step) {
            (CampaignState::Gathering, CampaignStep::Open)
            | (CampaignState::Negotiating, CampaignStep::Negotiate)
            | (CampaignState::Active, CampaignStep::Activate)
            | (CampaignState::Closed, CampaignStep::Close)
            | (CampaignState::Cancelled, CampaignStep::Cancel) => " already".to_owned(),
            (_, step) => format!(", and {}", step.needs()),
        }
    }
}

impl CampaignState {
    const fn words(self) -> &'static str {
        match self {
            Self::Draft => "still a draft",
            Self::Gathering => "gathering members",
            Self::Negotiating => "being negotiated",
            Self::Offered => "waiting for members to decide about its offer",
            Self::Active => "active",
            Self::Closed => "closed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Where a step leads.
    pub const fn after(self, step: CampaignStep) -> Result<Self, BadStep> {
        match (self, step) {
            (Self::Draft, CampaignStep::Open) => Ok(Self::Gathering),
            (Self::Gathering, CampaignStep::Negotiate) => Ok(Self::Negotiating),
            // A supplier may answer before anybody asked, and improve what it offers.
            (Self::Gathering | Self::Negotiating | Self::Offered, CampaignStep::Offer) => Ok(Self::Offered),
            (Self::Offered, CampaignStep::WithdrawOffer) => Ok(Self::Negotiating),
            (Self::Offered, CampaignStep::Activate) => Ok(Self::Active),
            (Self::Active, CampaignStep::Close) => Ok(Self::Closed),
            (
                Self::Draft | Self::Gathering | Self::Negotiating | Self::Offered | Self::Active,
                CampaignStep::Cancel,
            ) => Ok(Self::Cancelled),
            (from, step) => Err(BadStep { from, step }),
        }
    }

    /// Whether members may count themselves in or out.
    pub const fn gathers(self) -> bool {
        matches!(self, Self::Gathering | Self::Negotiating)
    }

    /// Whether suppliers can say what they ask: until the deal starts, one that is published can be improved.
    pub const fn takes_bids(self) -> bool {
        matches!(self, Self::Gathering | Self::Negotiating | Self::Offered)
    }

    /// The mailing that begins with this state.
    pub const fn mailed_about(self) -> Option<CampaignMail> {
        match self {
            Self::Gathering => Some(CampaignMail::Opened),
            Self::Offered => Some(CampaignMail::Offer),
            Self::Closed | Self::Cancelled => Some(CampaignMail::Result),
            Self::Draft | Self::Negotiating | Self::Active => None,
        }
    }

    /// Whether members are counted when it begins.
    pub const fn begins_with_count(self) -> bool {
        matches!(self, Self::Negotiating | Self::Offered | Self::Active | Self::Closed)
    }

    /// Whether everybody may see it.
    pub const fn is_public(self) -> bool {
        !matches!(self, Self::Draft | Self::Cancelled)
    }
}

impl CampaignStep {
    const fn needs(self) -> &'static str {
        match self {
            Self::Open => "only a draft can be opened",
            Self::Negotiate => "only one that gathers members can go into negotiation",
            Self::Offer => {
                "an offer is published while it gathers members or is being negotiated, and improved until the deal starts"
            }
            Self::WithdrawOffer => "only an offer that is published, and whose deal has not started, can be withdrawn",
            Self::Activate => "only one with a published offer can become active",
            Self::Close => "only an active one can be closed",
            Self::Cancel => "what is over cannot be cancelled",
        }
    }
}

/// A day that something ends with: over once it has ended everywhere in the US, at 10:00 UTC of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LastDay(pub Date);

impl LastDay {
    const EPOCH: Date = Date::constant(1970, 1, 1);
    const OVER: Duration = Duration::from_secs(34 * 3600);

    /// Its first moment in UTC: pages write its date by that.
    pub fn begins_at(self) -> Timestamp {
        Timestamp::from_millis(self.number() * 86_400_000)
    }

    /// The moment from which it is over.
    pub fn ends_at(self) -> Timestamp {
        self.begins_at().plus(Self::OVER)
    }

    /// The day that it is, in UTC.
    pub fn of(now: Timestamp) -> Self {
        let days = now.as_millis().div_euclid(86_400_000);
        Self(Self::EPOCH.checked_add(Span::new().days(days.clamp(0, 365 * 1000))).unwrap_or(Self::EPOCH))
    }

    /// Days since 1970, as it is kept.
    pub fn number(self) -> i64 {
        i64::from(self.0.since(Self::EPOCH).map_or(0, |span| span.get_days()))
    }

    pub fn is_over(self, now: Timestamp) -> bool {
        now >= self.ends_at()
    }

    /// Days that follow until it is over: 0 on the day itself. None once it is over.
    pub fn days_left(self, now: Timestamp) -> Option<u64> {
        let left = u64::try_from(self.ends_at().as_millis() - now.as_millis()).ok().filter(|left| *left > 0)?;
        Some((left - 1) / 86_400_000)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("write a day, such as 2027-01-31")]
pub struct NotADay;

impl FromStr for LastDay {
    type Err = NotADay;

    fn from_str(text: &str) -> Result<Self, NotADay> {
        text.parse().map(Self).map_err(|_| NotADay)
    }
}

json_text!(LastDay, |day: &LastDay| *day);

impl fmt::Display for LastDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::bid::{Bid, RecordedBid};
    use super::draft::CampaignDraft;
    use super::offer::{Offer, Proposal};
    use super::record::{CampaignId, CampaignRecord};
    use super::*;

    pub(super) const DRAFT: &str = r#"
        slug = "internet-2027"
        category = "internet"
        gather_until = 2027-01-31
        [text.en]
        title = "Home internet, winter 2027"
        summary = "Faster for less."
        [text.es]
        title = "Internet en casa, invierno de 2027"
        summary = "Más rápido por menos."
        [benchmark]
        price = { cents = 6800, per = "month" }
        source = "FCC urban rate survey"
        url = "https://fcc.example/rates"
        date = 2026-10-01
    "#;
    /// To be appended to [`DRAFT`].
    pub(super) const MANDATE: &str = r#"
        [mandate]
        target_cents = 57600
        walk_away_cents = 69600
        longest_term_months = 12
        most_exit_fee_cents = 0
        most_commission_cents = 2500
        suppliers = ["Example Fiber"]
        never = ["automatic renewal at another price"]
        reply_by = 2027-02-28
    "#;
    pub(super) const OFFER: &str = r#"
        bid = 1
        decide_by = 2027-03-15
        complaints = "help@fiber.example"
        [text.en]
        how = "Example Fiber emails you a code."
        [text.es]
        how = "Example Fiber te manda un código por correo."
    "#;
    /// As version 1.0.0 took it.
    pub(super) const OLD_OFFER: &str = r#"
        supplier = "Example Fiber"
        annual_saving = 240
        term_months = 12
        decide_by = 2027-03-15
        complaints = "help@fiber.example"
        benchmark = { price = "$68 a month", source = "FCC urban rate survey", date = 2026-12-01 }
        [text.en]
        price = "$48 a month"
        exit_fee = "None"
        how = "Example Fiber emails you a code."
        [text.es]
        price = "$48 al mes"
        exit_fee = "Ninguno"
        how = "Example Fiber te manda un código por correo."
    "#;

    /// The offer of [`OFFER`], made of the bid of `bid.rs`.
    pub(crate) fn offer() -> Offer {
        let (at, who) = (Timestamp::from_millis(0), "ada".to_owned());
        let bid = Bid::parse(super::bid::tests::BID).unwrap();
        let bids = [RecordedBid { number: 1, at, who, bid, is_superseded: false }];
        let draft = CampaignDraft::parse(DRAFT).unwrap();
        Offer::of(&draft, &bids, &Proposal::parse(OFFER).unwrap(), "2026-11-19".parse().unwrap()).unwrap()
    }

    pub(crate) fn campaign(state: CampaignState) -> CampaignRecord {
        CampaignRecord {
            id: CampaignId(1),
            state,
            draft: CampaignDraft::parse(DRAFT).unwrap(),
            offer: None,
            withdrawn: None,
            opened_at: (state != CampaignState::Draft).then_some(Timestamp::from_millis(0)),
            negotiating_at: None,
            offered_at: None,
            created_at: Timestamp::from_millis(0),
            active_at: None,
            closed_at: None,
            terms: None,
            sheet: None,
            is_counting: false,
            switched: None,
        }
    }

    pub(crate) fn offered(state: CampaignState) -> CampaignRecord {
        CampaignRecord { offer: Some(offer()), ..campaign(state) }
    }

    #[test]
    fn slugs_are_plain() {
        for good in ["internet-2027", "abc", "a1-b2-c3", &"a".repeat(60)] {
            assert_eq!(good.parse::<CampaignSlug>().unwrap().as_str(), good);
        }
        for bad in ["", "ab", "Internet", "1st", "-abc", "abc-", "a--b", "a b", "a/b", "é23", &"a".repeat(61)] {
            assert_eq!(bad.parse::<CampaignSlug>(), Err(BadSlug), "{bad}");
        }
    }

    /// The whole table, so that a new state or step is thought about.
    #[test]
    fn steps_lead_forward_or_are_refused_with_a_sentence() {
        use CampaignState::*;
        use CampaignStep as Step;
        let all =
            [Step::Open, Step::Negotiate, Step::Offer, Step::WithdrawOffer, Step::Activate, Step::Close, Step::Cancel];
        let expected = [
            (Draft, [Some(Gathering), None, None, None, None, None, Some(Cancelled)]),
            (Gathering, [None, Some(Negotiating), Some(Offered), None, None, None, Some(Cancelled)]),
            (Negotiating, [None, None, Some(Offered), None, None, None, Some(Cancelled)]),
            (Offered, [None, None, Some(Offered), Some(Negotiating), Some(Active), None, Some(Cancelled)]),
            (Active, [None, None, None, None, None, Some(Closed), Some(Cancelled)]),
            (Closed, [None; 7]),
            (Cancelled, [None; 7]),
        ];
        for (from, leads) in expected {
            for (step, to) in all.into_iter().zip(leads) {
                assert_eq!(from.after(step).ok(), to, "{from:?} {step:?}");
            }
        }
        assert_eq!(
            Closed.after(Step::Open).unwrap_err().to_string(),
            "the campaign is closed, and only a draft can be opened"
        );
        assert_eq!(Cancelled.after(Step::Cancel).unwrap_err().to_string(), "the campaign is cancelled already");
    }

    #[test]
    fn a_day_is_over_when_it_has_ended_in_hawaii() {
        let day = LastDay(Date::constant(2027, 1, 31));
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(day.ends_at(), at("2027-02-01T10:00:00Z"));
        assert!(!day.is_over(at("2027-02-01T09:59:59Z")) && day.is_over(at("2027-02-01T10:00:00Z")));
        assert_eq!((day.to_string().as_str(), day.number()), ("2027-01-31", 20_849));
        assert_eq!([at("2027-01-31"), at("2027-01-31T23:59:59Z")].map(LastDay::of), [day, day]);
        let left = |text| day.days_left(at(text));
        assert_eq!(["2027-01-31T10:00:00Z", "2027-02-01T09:59:59Z"].map(left), [Some(0), Some(0)]);
        assert_eq!(["2027-01-31T09:59:59Z", "2027-01-22T10:00:00Z"].map(left), [Some(1), Some(8)]);
        assert_eq!(["2027-02-01T10:00:00Z", "2030-01-01"].map(left), [None, None]);
    }
}
