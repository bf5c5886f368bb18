//! Hand-over: the file that tells a supplier who accepted, and the one in which it says what became of their orders.

use serde::Serialize;

use super::acceptance::{OrderStatus, Reference, SupplierReport};
use super::{CampaignSlug, LastDay};
use crate::domain::csv::{self, Columns, CsvRow, CsvRows, add_mistake};
use crate::domain::figure::grouped;
use crate::domain::text::quote;
use crate::domain::time::Timestamp;

/// A file for a supplier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoverBatch {
    pub id: i64,
    pub campaign: CampaignSlug,
    /// From 1, in its campaign.
    pub number: u32,
    /// Everybody is in it.
    pub is_whole: bool,
    pub is_written: bool,
    pub gives_addresses: bool,
}

/// One row of it.
#[derive(Clone, PartialEq, Eq)]
pub struct HandoverRow {
    pub reference: Reference,
    /// Or they do no longer, and the supplier knows them.
    pub accepts: bool,
    /// It ended since the file was made, so a file that is written again has no row for it.
    pub ended_since: bool,
    /// Of those who agreed to that.
    pub address: Option<(String, String)>,
}

impl HandoverBatch {
    /// The first line of its file.
    pub const fn header(&self) -> &'static str {
        if self.gives_addresses { "reference,status,email,state\n" } else { "reference,status\n" }
    }

    /// A line of it; none if it is withheld.
    pub fn line(&self, row: &HandoverRow) -> Option<String> {
        let (reference, status) = (row.reference.to_string(), if row.accepts { "accepted" } else { "withdrawn" });
        let (email, state) = row.address.as_ref().map_or(("", ""), |(email, state)| (email, state));
        let cells = [&reference, status, email, state];
        let row = csv::row(if self.gives_addresses { &cells } else { &cells[..2] })?;
        Some(format!("{row}\n"))
    }
}

/// What the supplier's file says, line by line.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SupplierAnswer {
    pub lines: Vec<(usize, Reference, SupplierReport)>,
    /// What is wrong, each with its line.
    pub mistakes: Vec<(usize, String)>,
}

const COLUMNS: Columns<3> =
    Columns { names: ["reference", "status", "date"], needed: 3, sample: "reference,status,date", each: "reference" };

impl SupplierAnswer {
    /// Reads the file; all mistakes at once.
    pub fn read(text: &str) -> Self {
        let CsvRows { rows, mistakes } = COLUMNS.read(text);
        let mut answer = Self { lines: Vec::new(), mistakes };
        for CsvRow { line, fields: [reference, status, date] } in rows {
            let known = Reference::parse(&reference);
            let mut wrong = |what: String| add_mistake(&mut answer.mistakes, line, what);
            if known.is_none() {
                wrong(format!(
                    "reference {}; write one of our files' references, such as K3V9Q1T7MB",
                    quote(&reference)
                ));
            }
            // Suppliers spell it either way, and so do we: pages write it as Americans do.
            let read = OrderStatus::from_name(&status.to_ascii_lowercase().replace("canceled", "cancelled"));
            if read.is_none() {
                wrong(format!("status {}; write ordered, switched, rejected or cancelled", quote(&status)));
            }
            let on = date.parse().ok().filter(|on: &LastDay| on.to_string() == date && on.number() >= 0);
            if on.is_none() {
                wrong(format!("date {}; write a day, such as 2027-01-31", quote(&date)));
            }
            if let (Some(reference), Some(status), Some(on)) = (known, read, on) {
                answer.lines.push((line, reference, SupplierReport { status, on }));
            }
        }
        answer.mistakes.sort_by_key(|(line, _)| *line);
        answer
    }
}

/// How many of a campaign's orders stand how, exactly: for operators alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderCounts {
    /// Acceptances that stand.
    pub accepting: u64,
    /// Those that no file has yet.
    pub waiting: u64,
    /// Ended since they were handed over, and no file says so yet.
    pub to_withdraw: u64,
    pub ordered: u64,
    pub switched: u64,
    pub rejected: u64,
    pub cancelled: u64,
    /// Members who say that it did not work.
    pub in_trouble: u64,
}

impl OrderCounts {
    /// Acceptances that are counted one by one.
    pub const MOST: u32 = 10_000;

    /// What there is to know, each with its name.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("Accepting", self.accepting),
            ("Not handed over yet", self.waiting),
            ("Withdrawn since, and not told yet", self.to_withdraw),
            ("Ordered, says the supplier", self.ordered),
            ("Switched, says the supplier", self.switched),
            ("Rejected, says the supplier", self.rejected),
            ("Canceled, says the supplier", self.cancelled),
            ("It didn't work, say members", self.in_trouble),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name, words(count))).collect()
    }
}

/// "10,000+" where no more are counted.
fn words(count: u64) -> String {
    let more = if count < OrderCounts::MOST.into() { "" } else { "+" };
    format!("{}{more}", grouped(count))
}

/// An order of which the member and the supplier say different things.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    pub reference: Reference,
    pub report: Option<SupplierReport>,
    pub trouble_at: Timestamp,
}

impl Difference {
    pub const MOST: u32 = 100;

    /// "K3V9Q1T7MB: switched on 2027-01-12, says the supplier; it didn't work, the member said at …".
    pub fn words(&self) -> String {
        let Self { reference, report, trouble_at } = self;
        let says = report.map_or("the supplier says nothing yet".to_owned(), |SupplierReport { status, on }| {
            format!("{} on {on}, says the supplier", status.name())
        });
        format!("{reference}: {says}; it didn't work, the member said at {trouble_at}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_with_all_its_mistakes() {
        let reference = Reference::from_random(&[1, 2, 3, 4, 5, 6]);
        let good = SupplierAnswer::read(&format!("Date,reference,status,note\n2027-01-12,{reference},Switched,x\n"));
        let report = SupplierReport { status: OrderStatus::Switched, on: "2027-01-12".parse().unwrap() };
        assert_eq!(good, SupplierAnswer { lines: vec![(2, reference, report)], mistakes: vec![] });
        let bad = SupplierAnswer::read(&format!(
            "reference,status,date\nABC,switchd,12/1/2027\n{reference},ordered,2027-01-12\n"
        ));
        assert_eq!((bad.lines.len(), bad.mistakes.len()), (1, 3), "{bad:?}");
        assert!(bad.mistakes.iter().all(|(line, _)| *line == 2));
        assert_eq!(SupplierAnswer::read("reference;status;date\n").mistakes.len(), 1);
    }

    #[test]
    fn a_file_has_references_alone_or_addresses_too() {
        let batch = |gives_addresses| HandoverBatch {
            id: 1,
            campaign: "internet-2027".parse().unwrap(),
            number: 1,
            is_whole: true,
            is_written: false,
            gives_addresses,
        };
        let reference = Reference::from_random(&[1, 2, 3, 4, 5, 6]);
        let row = |email: &str| {
            let address = Some((email.to_owned(), "CA".to_owned()));
            HandoverRow { reference, accepts: true, ended_since: false, address }
        };
        assert_eq!(batch(false).line(&row("ana@example.com")).unwrap(), format!("{reference},accepted\n"));
        assert_eq!(
            batch(true).line(&row("ana@example.com")).unwrap(),
            format!("{reference},accepted,ana@example.com,CA\n")
        );
        assert_eq!(batch(true).line(&row("=cmd@example.com")), None);
        let withdrawn = HandoverRow { accepts: false, address: None, ..row("") };
        assert_eq!(batch(true).line(&withdrawn).unwrap(), format!("{reference},withdrawn,,\n"));
    }
}
