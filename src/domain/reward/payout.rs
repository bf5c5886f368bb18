//! Payouts, and the two files that go to whoever pays them and come back (CSV).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::campaign::CampaignSlug;
use super::super::json::named_enum;
use super::super::text::csv_field;
use super::super::time::Timestamp;

named_enum! {
    pub enum PayoutState {
        /// In a file, and not settled.
        Out = "out",
        Paid = "paid",
        Failed = "failed",
        /// All of it went to what was paid too much before; it is in no file.
        Netted = "netted",
    }
}

impl PayoutState {
    /// What was paid may come back; what failed is due again, and goes out under another id.
    pub fn may_become(self, next: Self) -> bool {
        matches!((self, next), (Self::Out, Self::Paid | Self::Failed) | (Self::Paid, Self::Failed))
    }
}

/// What one member is paid for one campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutRecord {
    pub id: i64,
    pub batch: i64,
    pub external_id: String,
    /// None once they are erased.
    pub email: Option<String>,
    pub amount_cents: i64,
    pub campaign: CampaignSlug,
    pub groups: u32,
    pub state: PayoutState,
    pub paid_at: Option<Timestamp>,
}

impl PayoutRecord {
    /// The first line of a batch's file.
    pub const HEADER: &str = "external_id,email,amount_cents,currency,campaign,groups\n";

    /// Its line.
    pub fn line(&self) -> String {
        let mut line = String::new();
        let email = self.email.as_deref().unwrap_or_default();
        let fields = [
            &self.external_id,
            email,
            &self.amount_cents.to_string(),
            "USD",
            self.campaign.as_str(),
            &self.groups.to_string(),
        ];
        for (place, field) in fields.into_iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            // Writing into a string cannot fail.
            let _ = write!(line, "{comma}{}", csv_field(field));
        }
        line.push('\n');
        line
    }
}

/// What the provider says about one payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    pub external_id: String,
    /// Paid, or failed.
    pub is_paid: bool,
    pub reference: Option<String>,
    pub paid_at: Option<Timestamp>,
    pub reason: Option<String>,
}

impl Settlement {
    /// The columns of the provider's file, in any order; further ones are ignored.
    pub const COLUMNS: [&str; 5] = ["external_id", "status", "reference", "paid_at", "reason"];

    pub const fn state(&self) -> PayoutState {
        if self.is_paid { PayoutState::Paid } else { PayoutState::Failed }
    }
}

/// Reads the provider's file, what it says with the line that says it; all mistakes at once, each with its line.
pub fn read_settlements(text: &str) -> Result<Vec<(usize, Settlement)>, Vec<String>> {
    let rows = read_csv(text.strip_prefix('\u{feff}').unwrap_or(text)).map_err(|mistake| vec![mistake])?;
    let mut rows = rows.into_iter();
    let header = rows.next().map(|(_, fields)| fields).unwrap_or_default();
    let places: Vec<_> =
        Settlement::COLUMNS.iter().map(|name| header.iter().position(|column| column.trim() == *name)).collect();
    let missing: Vec<_> = Settlement::COLUMNS.iter().zip(&places).filter(|(_, place)| place.is_none()).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|(name, _)| **name).collect();
        return Err(vec![format!(
            "line 1: no column {}; the first line must be {}",
            names.join(", "),
            Settlement::COLUMNS.join(",")
        )]);
    }
    let (mut read, mut mistakes, mut seen) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (line, fields) in rows {
        if fields.len() == 1 && fields[0].trim().is_empty() {
            continue;
        }
        if fields.len() != header.len() {
            mistakes.push(format!("line {line}: {} fields; the first line has {}", fields.len(), header.len()));
            continue;
        }
        let field = |column: usize| places[column].and_then(|place| fields.get(place)).map_or("", |field| field.trim());
        match settlement(line, field) {
            Ok(settlement) => {
                let first = seen.entry(settlement.external_id.clone()).or_insert((line, read.len()));
                match read.get(first.1) {
                    Some((_, same)) if *same == settlement => {}
                    Some(_) => mistakes.push(format!(
                        "line {line}: external_id {} is on line {} too, and says something else",
                        settlement.external_id, first.0
                    )),
                    None => read.push((line, settlement)),
                }
            }
            Err(wrong) => mistakes.extend(wrong),
        }
    }
    if mistakes.is_empty() { Ok(read) } else { Err(mistakes) }
}

fn settlement<'a>(line: usize, field: impl Fn(usize) -> &'a str) -> Result<Settlement, Vec<String>> {
    let mut mistakes = Vec::new();
    let [external_id, status, reference, paid_at, reason] = std::array::from_fn(&field);
    if external_id.is_empty() {
        mistakes.push(format!("line {line}: no external_id"));
    }
    let is_paid = status == "paid";
    if !is_paid && status != "failed" {
        mistakes.push(format!("line {line}: status \"{}\"; write paid or failed", shown(status)));
    }
    let time = read_time(paid_at);
    if is_paid && time.is_none() {
        mistakes.push(format!(
            "line {line}: paid_at \"{}\"; write when it was paid, such as 2027-05-04 or 2027-05-04T12:00:00Z",
            shown(paid_at)
        ));
    }
    for (name, text) in [("reference", reference), ("reason", reason)] {
        if text.chars().count() > 200 || text.chars().any(char::is_control) {
            mistakes.push(format!("line {line}: {name} is longer than 200 characters, or has control characters"));
        }
    }
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    if mistakes.is_empty() {
        let paid_at = time.filter(|_| is_paid);
        let (reference, reason) = (some(reference), some(reason).filter(|_| !is_paid));
        Ok(Settlement { external_id: external_id.to_owned(), is_paid, reference, paid_at, reason })
    } else {
        Err(mistakes)
    }
}

/// A time, or a day, which counts from noon: the same day everywhere in the US.
fn read_time(text: &str) -> Option<Timestamp> {
    if text.len() == 10 { format!("{text}T12:00:00Z").parse().ok() } else { text.parse().ok() }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// Rows of fields, each with the line that it begins on.
fn read_csv(text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut first_line, mut is_quoted, mut was_quoted) = (1, 1, false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if field.is_empty() && !was_quoted => (is_quoted, was_quoted) = (true, true),
            '"' => return Err(format!("line {line}: a quotation mark inside a field; double it, and quote the field")),
            ',' if !is_quoted => {
                row.push(std::mem::take(&mut field));
                was_quoted = false;
            }
            '\r' if !is_quoted && chars.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut field));
                rows.push((first_line, std::mem::take(&mut row)));
                (line, was_quoted) = (line + 1, false);
                first_line = line;
            }
            _ => {
                line += usize::from(c == '\n');
                field.push(c);
            }
        }
    }
    if is_quoted {
        return Err(format!("line {first_line}: a quotation mark that is never closed"));
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push((first_line, row));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "external_id,status,reference,paid_at,reason\n";

    #[test]
    fn a_providers_file_is_read() {
        let text = format!(
            "\u{feff}{HEADER}a-1-1,paid,tx 1,2027-05-04,\r\nb-1-1,failed,,,\"no, \"\"account\"\"\"\n\na-1-1,paid,tx 1,2027-05-04,\n"
        );
        let (lines, read): (Vec<_>, Vec<_>) = read_settlements(&text).unwrap().into_iter().unzip();
        assert_eq!(lines, [2, 3], "the same line twice is one");
        assert!(read[0].is_paid && read[0].paid_at == "2027-05-04T12:00:00Z".parse().ok());
        assert_eq!((read[1].state(), read[1].reason.as_deref()), (PayoutState::Failed, Some("no, \"account\"")));
        let other = "reason,note,paid_at,status,external_id,reference\n,x,2027-05-04T01:02:03Z,paid,a-1-1,r";
        assert_eq!(read_settlements(other).unwrap()[0].1.reference.as_deref(), Some("r"), "columns in any order");
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let text = format!("{HEADER}a,payed,,,\nb,paid,,,\n,failed,,,\nc,paid\nd,failed,,,x\nd,failed,,,y\n");
        let mistakes = read_settlements(&text).unwrap_err().join("\n");
        for part in [
            "line 2: status \"payed\"; write paid or failed",
            "line 3: paid_at \"\"",
            "line 4: no external_id",
            "line 5: 2 fields; the first line has 5",
            "line 7: external_id d is on line 6 too",
        ] {
            assert!(mistakes.contains(part), "{part} in {mistakes}");
        }
        assert!(
            read_settlements("external_id,status\n").unwrap_err()[0].contains("no column reference, paid_at, reason")
        );
        assert!(read_settlements("").unwrap_err()[0].contains("no column external_id"));
        for bad in ["\"x", "a\"b\n", "\"a\"\"", "\"a\"b\"\n"] {
            assert!(read_settlements(&format!("{HEADER}{bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_line_quotes_what_it_must() {
        let payout = PayoutRecord {
            id: 1,
            batch: 1,
            external_id: "abc-1-1".to_owned(),
            email: Some("\"a,b\"@example.com".to_owned()),
            amount_cents: 20_000,
            campaign: "internet-2027".parse().unwrap(),
            groups: 2,
            state: PayoutState::Out,
            paid_at: None,
        };
        assert_eq!(payout.line(), "abc-1-1,\"\"\"a,b\"\"@example.com\",20000,USD,internet-2027,2\n");
    }
}
