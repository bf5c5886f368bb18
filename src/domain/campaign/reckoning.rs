//! Figures of a deal, reckoned from its numbers: what it costs in a year with everything in it, and what it saves. Nobody types them.
//!
//! All in whole numbers, and exact until the last step: a cost is rounded up to the cent, a saving down to the dollar.

use serde::Serialize;

use super::price::{Fee, FeeAmount, FeePeriod, Period, Price, PriceStep};

/// What one household takes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Household {
    /// Lines, travelers.
    pub units: u32,
    /// How often a year; once where nobody said.
    pub uses_a_year: Option<u32>,
}

impl Household {
    /// Whether figures are of one use, because nobody said how many there are in a year.
    pub fn is_by_use(self, price: Price) -> bool {
        let is = matches!(price, Price::Flat { per: Period::Use, .. } | Price::Discount { per: Period::Use, .. });
        is && self.uses_a_year.is_none()
    }

    fn uses(self) -> u128 {
        self.uses_a_year.unwrap_or(1).into()
    }
}

/// What is to be paid over the months of a term.
#[derive(Debug, Clone, Copy)]
pub struct Cost<'a> {
    /// The first from month 1, the others in order.
    pub steps: &'a [PriceStep],
    pub fees: &'a [Fee],
    /// 0: none.
    pub term_months: u32,
}

/// As a year, for one household.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Reckoning {
    pub all_in_cents: u64,
    /// The benchmark's cost.
    pub typical_cents: u64,
    /// In whole dollars against the benchmark.
    pub saving: u64,
}

/// Parts of a cent that every share of a month is a whole number of: a twelfth of a ten-thousandth.
const PARTS: u128 = 120_000;

/// The months of a loan that are looked at: most are paid off or changed by then.
const LONGEST_LOAN: u32 = 60;

pub fn reckon(cost: Cost<'_>, benchmark: Price, household: Household) -> Reckoning {
    let months = months(cost);
    let units = u128::from(household.units);
    let all_in = total(cost, household, months) * units;
    let typical = month_share(benchmark, household) * u128::from(months) * units;
    let a_year = |total: u128| (total * 12).div_ceil(u128::from(months) * PARTS);
    let saving = typical.saturating_sub(all_in) * 12 / (u128::from(months) * PARTS * 100);
    let [all_in_cents, typical_cents, saving] =
        [a_year(all_in), a_year(typical), saving].map(|figure| u64::try_from(figure).unwrap_or(u64::MAX));
    Reckoning { all_in_cents, typical_cents, saving }
}

/// The months that are looked at.
fn months(cost: Cost<'_>) -> u32 {
    let months = cost.term_months.max(12);
    let is_loan = cost.steps.first().is_some_and(|step| matches!(step.price, Price::Loan { .. }));
    if is_loan { months.min(LONGEST_LOAN) } else { months }
}

/// Of one unit over those months.
fn total(cost: Cost<'_>, household: Household, months: u32) -> u128 {
    let ends = cost.steps.iter().skip(1).map(|step| step.from_month).chain([u32::MAX]);
    let mut total = 0;
    for (step, next) in cost.steps.iter().zip(ends) {
        let lasts = u128::from(next.min(months + 1).saturating_sub(step.from_month));
        let share = month_share(step.price, household);
        total += lasts * share;
        let fees = cost.fees.iter().filter(|fee| fee.per != FeePeriod::Once);
        total += lasts * fees.map(|fee| fee_share(fee, step.price, household)).sum::<u128>();
    }
    let first = cost.steps.first().map_or(0, |first| {
        let once = cost.fees.iter().filter(|fee| fee.per == FeePeriod::Once);
        once.map(|fee| fee_once(fee, first.price)).sum()
    });
    total + first
}

fn often(per: Period, household: Household) -> u128 {
    match per {
        Period::Month => 12,
        Period::Year => 1,
        Period::Use => household.uses(),
    }
}

/// A twelfth of what a price comes to in a year.
fn month_share(price: Price, household: Household) -> u128 {
    match price {
        Price::Flat { cents, per } => u128::from(cents) * 10_000 * often(per, household),
        Price::Loan { apr_basis_points, on_cents } => u128::from(apr_basis_points) * u128::from(on_cents),
        Price::Discount { off_basis_points, on_cents, per } => {
            let rest = u128::from(10_000_u32.saturating_sub(off_basis_points));
            u128::from(on_cents) * rest * often(per, household)
        }
    }
}

/// A twelfth of what a fee comes to in a year.
fn fee_share(fee: &Fee, price: Price, household: Household) -> u128 {
    let often = match fee.per {
        FeePeriod::Month => 12,
        FeePeriod::Year => 1,
        FeePeriod::Use => household.uses(),
        FeePeriod::Once => 0,
    };
    fee_base(fee, price) * often
}

fn fee_once(fee: &Fee, first: Price) -> u128 {
    fee_base(fee, first) * 12
}

/// What is due each time, in ten-thousandths of a cent.
fn fee_base(fee: &Fee, price: Price) -> u128 {
    let on = match price {
        Price::Flat { cents, .. } => cents,
        Price::Loan { on_cents, .. } | Price::Discount { on_cents, .. } => on_cents,
    };
    match fee.amount {
        FeeAmount::Cents(cents) => u128::from(cents) * 10_000,
        FeeAmount::BasisPoints(part) => u128::from(on) * u128::from(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Household = Household { units: 1, uses_a_year: None };

    fn flat(cents: u64, per: Period) -> Price {
        Price::Flat { cents, per }
    }

    fn fee(amount: FeeAmount, per: FeePeriod) -> Fee {
        Fee { name: "fee".to_owned(), amount, per }
    }

    fn of(steps: &[(u32, Price)], fees: &[Fee], term_months: u32, benchmark: Price, household: Household) -> Reckoning {
        let steps: Vec<_> = steps.iter().map(|&(from_month, price)| PriceStep { from_month, price }).collect();
        reckon(Cost { steps: &steps, fees, term_months }, benchmark, household)
    }

    fn saving(price: Price, fees: &[Fee], term_months: u32, benchmark: Price) -> u64 {
        of(&[(1, price)], fees, term_months, benchmark, ONE).saving
    }

    /// One of each kind of bill.
    #[test]
    fn savings_are_what_people_would_reckon() {
        use FeeAmount::{BasisPoints, Cents};
        use Period::{Month, Use, Year};
        let two = Household { units: 2, uses_a_year: None };
        let mobile = of(&[(1, flat(2500, Month))], &[], 0, flat(4000, Month), two);
        assert_eq!((mobile.all_in_cents, mobile.typical_cents, mobile.saving), (60_000, 96_000, 360));
        let internet = of(&[(1, flat(2000, Month)), (4, flat(9000, Month))], &[], 12, flat(6800, Month), ONE);
        assert_eq!((internet.all_in_cents, internet.saving), (87_000, 0), "cheap for three months");
        let hidden = [fee(Cents(1295), FeePeriod::Month), fee(Cents(1100), FeePeriod::Month)];
        assert_eq!(saving(flat(4500, Month), &hidden, 12, flat(6800, Month)), 0);
        let insurance = |off_basis_points| Price::Discount { off_basis_points, on_cents: 180_000, per: Year };
        assert_eq!(saving(insurance(1000), &[], 12, insurance(0)), 180);
        let card = |apr_basis_points| Price::Loan { apr_basis_points, on_cents: 600_000 };
        assert_eq!(saving(card(1299), &[fee(BasisPoints(300), FeePeriod::Once)], 0, card(2199)), 360);
        let mortgage = |apr_basis_points| Price::Loan { apr_basis_points, on_cents: 30_000_000 };
        assert_eq!(saving(mortgage(600), &[fee(Cents(600_000), FeePeriod::Once)], 360, mortgage(650)), 300);
        let auto = |apr_basis_points| Price::Loan { apr_basis_points, on_cents: 2_000_000 };
        assert_eq!(saving(auto(599), &[], 60, auto(749)), 300);
        let resort = [fee(Cents(22_500), FeePeriod::Use)];
        assert_eq!(saving(flat(140_000, Use), &resort, 0, flat(175_000, Use)), 125);
        let cruise = [fee(Cents(22_000), FeePeriod::Use)];
        assert_eq!(of(&[(1, flat(110_000, Use))], &cruise, 0, flat(145_000, Use), two).saving, 260);
        let travel = |off_basis_points| Price::Discount { off_basis_points, on_cents: 250_000, per: Use };
        assert_eq!(saving(travel(800), &[], 0, travel(0)), 200);
        let renews = of(&[(1, flat(9900, Year)), (13, flat(13_900, Year))], &[], 12, flat(13_900, Year), ONE);
        assert_eq!(renews.saving, 40);
        let groceries = |off_basis_points| Price::Discount { off_basis_points, on_cents: 90_000, per: Month };
        assert_eq!(saving(groceries(500), &[fee(Cents(5900), FeePeriod::Year)], 0, groceries(0)), 481);
    }

    #[test]
    fn what_is_paid_once_is_spread_over_the_term() {
        let setup = [fee(FeeAmount::Cents(2400), FeePeriod::Once)];
        let at =
            |term_months| of(&[(1, flat(1000, Period::Month))], &setup, term_months, flat(2000, Period::Month), ONE);
        let cents = [0, 6, 12, 24, 36].map(|term| at(term).all_in_cents);
        assert_eq!(cents, [14_400, 14_400, 14_400, 13_200, 12_800]);
        let loan = |apr_basis_points| Price::Loan { apr_basis_points, on_cents: 100_000 };
        let costs = |term| of(&[(1, loan(500))], &setup, term, loan(900), ONE).all_in_cents;
        assert_eq!([60, 61, 360].map(costs), [5480; 3], "a loan is looked at for five years");
    }

    #[test]
    fn a_part_of_the_price_follows_its_steps() {
        let fees =
            [fee(FeeAmount::BasisPoints(1000), FeePeriod::Month), fee(FeeAmount::BasisPoints(5000), FeePeriod::Once)];
        let steps = [(1, flat(1000, Period::Month)), (7, flat(2000, Period::Month))];
        assert_eq!(of(&steps, &fees, 12, flat(1, Period::Month), ONE).all_in_cents, 18_000 + 1800 + 500);
    }

    #[test]
    fn the_largest_figures_fit() {
        let most = flat(1_000_000_000, Period::Use);
        let fees: Vec<_> = (0..12).map(|_| fee(FeeAmount::Cents(1_000_000_000), FeePeriod::Use)).collect();
        let crowd = Household { units: 1000, uses_a_year: Some(1000) };
        assert_eq!(of(&[(1, most)], &fees, 360, most, crowd).all_in_cents, 13_000_000_000_000_000);
    }

    /// As one would do it on paper, month by month, in floating point.
    fn naive(steps: &[PriceStep], fees: &[Fee], term: u32, benchmark: Price, household: Household) -> (f64, f64) {
        let uses = f64::from(household.uses_a_year.unwrap_or(1));
        let often = |per: Period| match per {
            Period::Month => 12.0,
            Period::Year => 1.0,
            Period::Use => uses,
        };
        let yearly = |price: Price| match price {
            Price::Flat { cents, per } => cents as f64 * often(per),
            Price::Loan { apr_basis_points, on_cents } => on_cents as f64 * f64::from(apr_basis_points) / 10_000.0,
            Price::Discount { off_basis_points, on_cents, per } => {
                on_cents as f64 * (1.0 - f64::from(off_basis_points) / 10_000.0) * often(per)
            }
        };
        let is_loan = matches!(steps[0].price, Price::Loan { .. });
        let months = if is_loan { term.clamp(12, 60) } else { term.max(12) };
        let mut total = 0.0;
        for month in 1..=months {
            let price = steps.iter().rev().find(|step| step.from_month <= month).unwrap().price;
            let on = match price {
                Price::Flat { cents, .. } => cents,
                Price::Loan { on_cents, .. } | Price::Discount { on_cents, .. } => on_cents,
            };
            total += yearly(price) / 12.0;
            for fee in fees {
                let each = match fee.amount {
                    FeeAmount::Cents(cents) => cents as f64,
                    FeeAmount::BasisPoints(part) => on as f64 * f64::from(part) / 10_000.0,
                };
                total += match fee.per {
                    FeePeriod::Once if month == 1 => each,
                    FeePeriod::Once => 0.0,
                    FeePeriod::Month => each,
                    FeePeriod::Year => each / 12.0,
                    FeePeriod::Use => each * uses / 12.0,
                };
            }
        }
        let units = f64::from(household.units);
        (total * units * 12.0 / f64::from(months), yearly(benchmark) * units)
    }

    /// Any numbers at all, from a generator of our own, so that a red run can be repeated.
    #[test]
    fn figures_agree_with_a_naive_model() {
        let mut seed: u64 = 54;
        let mut any = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % (most + 1)
        };
        let mut saved = 0;
        for case in 0..4000 {
            let form = any(2);
            let (on_cents, per) = (any(900_000), Period::ALL[any(2) as usize]);
            let price = |number: u64| match form {
                0 => flat(number * 7, per),
                1 => Price::Loan { apr_basis_points: number as u32, on_cents },
                _ => Price::Discount { off_basis_points: number as u32, on_cents, per },
            };
            let mut steps = vec![PriceStep { from_month: 1, price: price(any(10_000)) }];
            for _ in 0..any(3) {
                let from_month = steps.last().unwrap().from_month + 1 + any(20) as u32;
                steps.push(PriceStep { from_month, price: price(any(10_000)) });
            }
            let fees: Vec<_> = (0..any(3))
                .map(|_| {
                    let amount = match any(1) {
                        0 => FeeAmount::Cents(any(20_000)),
                        _ => FeeAmount::BasisPoints(any(2000) as u32),
                    };
                    fee(amount, FeePeriod::ALL[any(3) as usize])
                })
                .collect();
            let term = any(96) as u32;
            let uses_a_year = (any(1) == 1).then(|| any(30) as u32 + 1);
            let household = Household { units: any(4) as u32 + 1, uses_a_year };
            let benchmark = price(any(10_000));
            let got = reckon(Cost { steps: &steps, fees: &fees, term_months: term }, benchmark, household);
            let (all_in, typical) = naive(&steps, &fees, term, benchmark, household);
            let told =
                format!("case {case}: {got:?}, naive {all_in} and {typical}; {steps:?} {fees:?} {term} {household:?}");
            assert!((got.all_in_cents as f64 - all_in) > -0.01 && (got.all_in_cents as f64 - all_in) < 1.01, "{told}");
            let exact = (typical - all_in).max(0.0) / 100.0;
            assert!((exact - got.saving as f64) > -1e-4 && (exact - got.saving as f64) < 1.0001, "{told}");
            saved += u32::from(got.saving > 0);
        }
        assert!((500..3500).contains(&saved), "both kinds occur: {saved}");
    }
}
