//! What a deal costs, as data: a price of one of three forms, its steps and its fees. [`super::reckoning`] makes figures of it.

use schemars::JsonSchema;
use serde::Serialize;

use super::file::FileReader;
use crate::domain::json::named_enum;

named_enum! {
    /// How often an amount is due.
    pub enum Period {
        Month = "month",
        Year = "year",
        /// A stay, a cruise, a visit.
        Use = "use",
    }
}

named_enum! {
    /// How often a fee is due.
    pub enum FeePeriod {
        Once = "once",
        Month = "month",
        Year = "year",
        Use = "use",
    }
}

/// A price for one unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Price {
    /// So much, so often.
    Flat { cents: u64, per: Period },
    /// Simple interest of a year on an example balance.
    Loan { apr_basis_points: u32, on_cents: u64 },
    /// A discount on one's own bill, of a typical size.
    Discount { off_basis_points: u32, on_cents: u64, per: Period },
}

/// A price that begins in that month; 1 is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PriceStep {
    pub from_month: u32,
    pub price: Price,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fee {
    pub name: String,
    #[serde(flatten)]
    pub amount: FeeAmount,
    pub per: FeePeriod,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FeeAmount {
    Cents(u64),
    /// Of a loan's balance, of the bill that a discount is on, or of a flat price.
    BasisPoints(u32),
}

const FORMS: &str = "one of { cents = 4800, per = \"month\" }, { apr_basis_points = 649, on_cents = 2000000 } and \
                     { off_basis_points = 1000, on_cents = 180000, per = \"year\" }";
const PERIODS: &str = "\"month\", \"year\" or \"use\"";
const FEE_PERIODS: &str = "\"once\", \"month\", \"year\" or \"use\"";
const ALL: u32 = 10_000;

/// Steps of a price, and fees, at the most.
pub const MOST_PARTS: usize = 12;

/// The last month that a step can begin in.
pub const LONGEST_MONTHS: u32 = 360;

impl Price {
    pub(super) fn read(file: &mut FileReader, field: &'static str) -> Option<Self> {
        file.table(field, &format!("form: {FORMS}"), Self::of_table)
    }

    fn of_table(price: &mut FileReader) -> Option<Self> {
        if price.has("apr_basis_points") {
            let apr_basis_points = price.whole("apr_basis_points", 0, ALL);
            let on_cents = price.cents("on_cents");
            return Some(Self::Loan { apr_basis_points: apr_basis_points?, on_cents: on_cents? });
        }
        if price.has("off_basis_points") {
            let off_basis_points = price.whole("off_basis_points", 0, ALL);
            let on_cents = price.cents("on_cents");
            let per = price.parsed("per", PERIODS, Period::from_name);
            return Some(Self::Discount { off_basis_points: off_basis_points?, on_cents: on_cents?, per: per? });
        }
        let cents = price.cents("cents");
        let per = price.parsed("per", PERIODS, Period::from_name);
        Some(Self::Flat { cents: cents?, per: per? })
    }

    /// Why two prices cannot be compared, if they cannot. `uses_are_known`: how often a year something is used.
    pub fn differs_from(&self, benchmark: &Self, uses_are_known: bool) -> Option<&'static str> {
        match (self, benchmark) {
            (Self::Flat { per, .. }, Self::Flat { per: other, .. }) => {
                let one_is_by_use = (*per == Period::Use) != (*other == Period::Use);
                (one_is_by_use && !uses_are_known)
                    .then_some("one of them is for each use; write uses_a_year into the campaign's file")
            }
            (Self::Loan { on_cents, .. }, Self::Loan { on_cents: other, .. }) => {
                (on_cents != other).then_some("it must be on the same balance, on_cents")
            }
            (Self::Discount { on_cents, per, .. }, Self::Discount { on_cents: other, per: often, .. }) => {
                ((on_cents, per) != (other, often)).then_some("it must be on the same bill, on_cents and per")
            }
            _ => Some("it must be of the same form"),
        }
    }
}

impl PriceStep {
    /// A price for good, or the steps that it takes.
    pub(super) fn read_all(file: &mut FileReader) -> Option<Vec<Self>> {
        if !file.has("steps") {
            return Some(vec![Self { from_month: 1, price: Price::read(file, "price")? }]);
        }
        if file.has("price") {
            let _read = Price::read(file, "price");
            file.wrong("price", "there are steps, too; leave out one of them");
        }
        let before = file.mistakes.len();
        let steps = file.tables("steps", ("from_month and price", MOST_PARTS), |step| {
            let from_month = step.whole("from_month", 1, LONGEST_MONTHS);
            let price = Price::read(step, "price");
            Some(Self { from_month: from_month?, price: price? })
        });
        if file.mistakes.len() > before {
            return None;
        }
        let is_in_order = steps.windows(2).all(|pair| pair[0].from_month < pair[1].from_month);
        if steps.first().is_none_or(|first| first.from_month != 1) || !is_in_order {
            file.wrong("steps", "the first must begin in month 1, and each later than the one before it");
            return None;
        }
        if let Some(why) = steps.iter().find_map(|step| step.price.differs_from(&steps[0].price, true)) {
            file.wrong("steps", &format!("one price is not like the first: {why}"));
            return None;
        }
        Some(steps)
    }
}

impl Fee {
    /// `price` is the first one, which a part of it is measured by.
    pub(super) fn read_all(file: &mut FileReader, price: Option<Price>) -> Vec<Self> {
        file.tables("fees", ("name, cents or basis_points, and per", MOST_PARTS), |fee| {
            let name = fee.text("name", 60, "modem");
            let amount = match (fee.has("cents"), fee.has("basis_points")) {
                (true, true) => {
                    let _read = (fee.cents("cents"), fee.whole("basis_points", 0, ALL));
                    fee.wrong("basis_points", "there are cents, too; leave out one of them");
                    None
                }
                (_, false) => fee.cents("cents").map(FeeAmount::Cents),
                (false, true) => fee.whole("basis_points", 0, ALL).map(FeeAmount::BasisPoints),
            };
            let per = fee.parsed("per", FEE_PERIODS, FeePeriod::from_name);
            if let (Some(FeeAmount::BasisPoints(_)), Some(per), Some(price)) = (amount, per, price)
                && let Some(wants) = part_of(price, per)
            {
                fee.wrong("per", wants);
            }
            Some(Self { name: name?, amount: amount?, per: per? })
        })
    }
}

/// What a fee in basis points must be due by, if it is not.
fn part_of(price: Price, per: FeePeriod) -> Option<&'static str> {
    let as_often = |often: Period| match often {
        Period::Month => FeePeriod::Month,
        Period::Year => FeePeriod::Year,
        Period::Use => FeePeriod::Use,
    };
    match price {
        Price::Loan { .. } => {
            (per == FeePeriod::Use).then_some("a part of a balance is due \"once\", each \"month\" or each \"year\"")
        }
        Price::Flat { per: often, .. } | Price::Discount { per: often, .. } => (per != FeePeriod::Once
            && per != as_often(often))
        .then_some("a part of the price is due \"once\", or as often as the price; write it in cents otherwise"),
    }
}
