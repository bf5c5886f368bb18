//! What each account was paid in a year, as rows of CSV: for the command and the operator's page.

use super::Operator;
use crate::domain::csv::{self, WOULD_RUN, WithheldRows};
use crate::domain::figure::{counted, money};
use crate::domain::reward::RewardAccount;
use crate::domain::time::Timestamp;
use crate::rewards::PAGE;
use crate::rewards::standing::ListPaidBetween;
use crate::store::StoreError;

/// The first row.
pub const TAX_HEADER: &str = "account,email,paid_cents,currency";

/// A year that has a next one, in UTC.
#[derive(Clone, Copy)]
pub struct TaxYear {
    pub year: u16,
    since: Timestamp,
    until: Timestamp,
}

impl TaxYear {
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let read = || {
            let year = text.trim().parse().ok().filter(|year| (2000..=9998).contains(year))?;
            let begins = |year: u16| format!("{year}-01-01").parse().ok();
            Some(Self { year, since: begins(year)?, until: begins(year + 1)? })
        };
        read().ok_or("write a year from 2000 to 9998, such as 2027")
    }
}

/// What all of them were paid.
#[derive(Default)]
pub struct TaxSums {
    pub accounts: u64,
    pub cents: i64,
    withheld: WithheldRows,
    withheld_cents: i64,
}

impl TaxSums {
    /// "$300 paid to 2 accounts".
    pub fn words(&self) -> String {
        format!("{} paid to {}", money(self.cents), counted(self.accounts, "account"))
    }

    /// What no row is for, if anything.
    pub fn withheld_words(&self) -> Option<String> {
        (!self.withheld.is_empty()).then(|| {
            format!(
                "Of that withheld from the rows, {WOULD_RUN} the address as a formula: {}, {} ({}).",
                counted(self.withheld.rows, "account"),
                money(self.withheld_cents),
                self.withheld.ids()
            )
        })
    }

    /// Adds an account; its row, unless a spreadsheet would run it.
    fn add(&mut self, of: &RewardAccount) -> Option<String> {
        let RewardAccount { account, email, paid_cents, .. } = of;
        (self.accounts, self.cents) = (self.accounts + 1, self.cents + paid_cents);
        let email = email.as_deref().unwrap_or_default();
        let row = csv::row(&[account.as_str(), email, &paid_cents.to_string(), "USD"]);
        if row.is_none() {
            self.withheld.add(account.as_str());
            self.withheld_cents += paid_cents;
        }
        row
    }
}

impl Operator {
    /// Hands each row of a year on, without the first one and the ends of lines.
    pub async fn tax<E: From<StoreError>>(
        &self,
        year: TaxYear,
        mut visit: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<TaxSums, E> {
        let (mut sums, mut after) = (TaxSums::default(), String::new());
        let TaxYear { since, until, .. } = year;
        loop {
            let page = self.ask(ListPaidBetween { since, until, after: after.clone(), most: PAGE }).await?;
            let Some(last) = page.last() else { return Ok(sums) };
            last.account.as_str().clone_into(&mut after);
            for account in &page {
                if let Some(row) = sums.add(account) {
                    visit(&row)?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_has_a_next_one() {
        assert!(TaxYear::read(" 2027 ").is_ok_and(|read| read.year == 2027 && read.since < read.until));
        for bad in ["", "1999", "9999", "27", "2027-01-01", "-2027", "x"] {
            assert!(TaxYear::read(bad).is_err(), "{bad}");
        }
    }
}
