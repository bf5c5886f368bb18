//! What the provider says became of payouts: its file (CSV).

use std::collections::BTreeMap;

use super::super::csv::{Columns, CsvRow, CsvRows, add_mistake};
use super::super::time::Timestamp;
use super::payout::PayoutState;

/// What the provider says about one payout.
#[derive(Clone, PartialEq, Eq)]
pub struct Settlement {
    pub external_id: String,
    /// Paid, or failed.
    pub is_paid: bool,
    pub reference: Option<String>,
    pub paid_at: Option<Timestamp>,
    pub reason: Option<String>,
}

impl Settlement {
    pub const fn state(&self) -> PayoutState {
        if self.is_paid { PayoutState::Paid } else { PayoutState::Failed }
    }
}

/// The provider's file.
#[derive(Default, PartialEq, Eq)]
pub struct ProviderAnswer {
    pub lines: Vec<AnswerLine>,
    /// What is wrong, each with its line.
    pub mistakes: Vec<(usize, String)>,
}

/// A line of it that names a payout.
#[derive(PartialEq, Eq)]
pub struct AnswerLine {
    pub line: usize,
    pub external_id: String,
    /// How much was paid, where the file says so.
    pub amount_cents: Option<i64>,
    /// None where something in the line is wrong.
    pub settlement: Option<Settlement>,
}

/// A first line and what a file has under it.
const COLUMNS: Columns<6> = Columns {
    names: ["external_id", "status", "reference", "paid_at", "reason", "amount_cents"],
    needed: 2,
    sample: "external_id,status,reference,paid_at,reason",
    each: "payout",
};

/// Reads the provider's file; all mistakes at once.
pub fn read_answer(text: &str) -> ProviderAnswer {
    let CsvRows { rows, mistakes } = COLUMNS.read(text);
    let mut answer = ProviderAnswer { mistakes, ..ProviderAnswer::default() };
    let mut seen = BTreeMap::new();
    for CsvRow { line, fields } in rows {
        let (read, wrong) = read_line(line, &fields);
        wrong.into_iter().for_each(|what| add_mistake(&mut answer.mistakes, line, what));
        let Some(read) = read else { continue };
        let before: Option<&AnswerLine> = seen.get(&read.external_id).map(|place: &usize| &answer.lines[*place]);
        match before {
            Some(same) if same.settlement == read.settlement && same.amount_cents == read.amount_cents => {}
            Some(other) => {
                let what =
                    format!("external_id {} is on line {} too, and says something else", read.external_id, other.line);
                add_mistake(&mut answer.mistakes, line, what);
            }
            None => {
                seen.insert(read.external_id.clone(), answer.lines.len());
                answer.lines.push(read);
            }
        }
    }
    answer.mistakes.sort_by_key(|(line, _)| *line);
    answer
}

/// A line by its fields, in the order of [`COLUMNS`]; none where it names no payout. And what is wrong with it.
fn read_line(line: usize, fields: &[String; 6]) -> (Option<AnswerLine>, Vec<String>) {
    let mut mistakes = Vec::new();
    let [external_id, status, reference, paid_at, reason, amount] = fields.each_ref().map(String::as_str);
    if external_id.is_empty() {
        mistakes.push("no external_id".to_owned());
    }
    let is_paid = status == "paid";
    if !is_paid && status != "failed" {
        mistakes.push(format!("status \"{}\"; write paid or failed", shown(status)));
    }
    let time = read_time(paid_at);
    if is_paid && time.is_none() {
        mistakes.push(format!(
            "paid_at \"{}\"; write when it was paid, such as 2027-05-04 or 2027-05-04T12:00:00Z",
            shown(paid_at)
        ));
    }
    for (name, text) in [("reference", reference), ("reason", reason)] {
        if text.chars().count() > 200 || text.chars().any(char::is_control) {
            mistakes.push(format!("{name} is longer than 200 characters, or has control characters"));
        }
    }
    let amount_cents = amount.parse().ok();
    if amount_cents.is_none() && !amount.is_empty() {
        mistakes.push(format!("amount_cents \"{}\"; write whole cents, such as 10000", shown(amount)));
    }
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    // Payouts outlive an erasure: an address is left out of what is kept with them.
    let kept = |text: &str| {
        let words: Vec<_> = text.split(' ').map(|word| if word.contains('@') { "(address)" } else { word }).collect();
        some(&words.join(" "))
    };
    let settlement = mistakes.is_empty().then(|| Settlement {
        external_id: external_id.to_owned(),
        is_paid,
        reference: kept(reference),
        paid_at: time.filter(|_| is_paid),
        reason: kept(reason).filter(|_| !is_paid),
    });
    let read = some(external_id).map(|external_id| AnswerLine { line, external_id, amount_cents, settlement });
    (read, mistakes)
}

/// A time, or a day, which counts from noon: the same day everywhere in the US.
fn read_time(text: &str) -> Option<Timestamp> {
    if text.len() == 10 { format!("{text}T12:00:00Z").parse().ok() } else { text.parse().ok() }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "external_id,status,reference,paid_at,reason\n";

    fn settlements(text: &str) -> Vec<Settlement> {
        let answer = read_answer(text);
        assert_eq!(answer.mistakes, []);
        answer.lines.into_iter().map(|line| line.settlement.unwrap()).collect()
    }

    fn mistakes(text: &str) -> String {
        read_answer(text).mistakes.iter().map(|(line, what)| format!("line {line}: {what}\n")).collect()
    }

    #[test]
    fn a_providers_answer_is_read() {
        let text = format!(
            "\u{feff}{HEADER}a-1-1,paid,tx-9,2027-05-04,\r\n\nb-1-1,failed,,,\"no, \"\"account\"\"\"\na-1-1,paid,tx-9,2027-05-04,\n"
        );
        let read = settlements(&text);
        assert_eq!(read.len(), 2, "the same twice is once");
        assert!(read[0].is_paid && read[0].paid_at == "2027-05-04T12:00:00Z".parse().ok());
        assert_eq!((read[1].state(), read[1].reason.as_deref()), (PayoutState::Failed, Some("no, \"account\"")));
        let other = "Reason,note,paid_at,Status,external_id,reference\n,x,2027-05-04T01:02:03Z,paid,a-1-1,r";
        assert_eq!(settlements(other)[0].reference.as_deref(), Some("r"), "columns in any order, and any case");
        assert_eq!(settlements("external_id,status\na-1-1,failed")[0].reason, None, "what may be empty may be away");
        let named = "external_id,status,reason\na-1-1,failed,no account ana@example.com said";
        assert_eq!(settlements(named)[0].reason.as_deref(), Some("no account (address) said"));
        let amount = read_answer("external_id,status,amount_cents\na-1-1,failed,10000");
        assert_eq!(amount.lines[0].amount_cents, Some(10_000));
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let text = format!("{HEADER}a,payed,,,\nb,paid,,,\n,failed,,,\nc,paid\nd,failed,,,x\nd,failed,,,y\n");
        let told = mistakes(&text);
        for part in [
            "line 2: status \"payed\"; write paid or failed",
            "line 3: paid_at \"\"",
            "line 4: no external_id",
            "line 5: 2 fields; the first line has 5",
            "line 7: external_id d is on line 6 too",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        assert_eq!(read_answer(&text).lines.len(), 3, "those that name a payout are looked for");
        let amount = mistakes("external_id,status,amount_cents\na,failed,$5");
        assert!(amount.contains("amount_cents \"$5\"; write whole cents"));
        for bad in ["\"x", "a\"b\n", "\"a\"\"", "\"a\"b\"\n"] {
            assert!(!mistakes(&format!("{HEADER}{bad}")).is_empty(), "{bad}");
        }
    }

    #[test]
    fn a_first_line_that_is_wrong_says_how() {
        for (text, part) in [
            ("external_id,reason\n", "line 1: no column status; the first line names the columns, such as "),
            ("external_id,status,Status\n", "line 1: 2 columns are named status; keep one"),
            ("\u{feff}external_id;status\n", "line 1: the columns are separated by semicolons; use commas; "),
            ("external_id\tstatus\n", "line 1: the columns are separated by tabs; use commas; "),
            ("\n", "line 1: the file is empty; the first line names "),
            (HEADER, "line 1: this is the only line; "),
        ] {
            assert!(mistakes(text).starts_with(part), "{text}: {}", mistakes(text));
        }
    }
}
