//! Rows of files that people open in a spreadsheet (CSV), and those that are withheld from such a file.

use super::text::is_hidden;

/// Why a row is withheld, as the middle of a sentence about its cell.
pub const WOULD_RUN: &str = "because a spreadsheet would run";

/// What a formula begins with. Some programs read the full-width signs as the others.
const SIGNS: [char; 10] = ['=', '+', '-', '@', '|', '%', '＝', '＋', '－', '＠'];

/// A row as RFC 4180 has it, without the end of its line. None if a spreadsheet would run one of its cells as a formula: nothing
/// that is written before such a cell keeps every spreadsheet from it, and an address with something before it is another address.
pub fn row(cells: &[&str]) -> Option<String> {
    let is_safe = !cells.iter().any(|cell| is_formula(cell));
    is_safe.then(|| cells.iter().map(|cell| field(cell)).collect::<Vec<_>>().join(","))
}

/// Programs that import a file may drop quotes, spaces and control characters before they look at a cell.
fn is_formula(cell: &str) -> bool {
    let is_dropped = |c: char| matches!(c, '"' | '\'') || c.is_whitespace() || is_hidden(c);
    cell.starts_with(char::is_control) || cell.trim_start_matches(is_dropped).starts_with(SIGNS)
}

fn field(cell: &str) -> String {
    let is_plain = !cell.contains(['"', ',', '\r', '\n']);
    if is_plain { cell.to_owned() } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
}

/// Rows that were withheld from a file, by ids that are no addresses.
#[derive(Default)]
pub struct WithheldRows {
    pub rows: u64,
    ids: Vec<String>,
}

impl WithheldRows {
    /// How many are named one by one.
    const NAMED: usize = 100;

    pub fn add(&mut self, id: &str) {
        self.rows += 1;
        if self.ids.len() < Self::NAMED {
            self.ids.push(id.to_owned());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// "a, b and 3 more".
    pub fn ids(&self) -> String {
        let more = self.rows - self.ids.len() as u64;
        let ids = self.ids.join(", ");
        if more == 0 { ids } else { format!("{ids} and {more} more") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_quotes_what_it_must() {
        for (cell, written) in [
            ("ana@example.com", "ana@example.com"),
            ("a+b=c@example.com", "a+b=c@example.com"),
            ("Bills, Bills", "\"Bills, Bills\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("\"a,b\"@example.com", "\"\"\"a,b\"\"@example.com\""),
            ("two\nlines", "\"two\nlines\""),
            ("10000", "10000"),
            ("", ""),
        ] {
            assert_eq!(row(&["x", cell]), Some(format!("x,{written}")));
        }
    }

    #[test]
    fn a_row_with_a_formula_is_no_row() {
        for cell in [
            "=1+1@example.com",
            "=cmd|x@example.com",
            "+kim@example.com",
            "-2@example.com",
            "@x",
            "|x",
            "%x",
            "＝1+1",
            "＋1",
            "－1",
            "＠x",
            "\t=1",
            "\r=1",
            "\n=1",
            "\tx",
            " =1",
            "\u{feff}=1",
            "\"=1+1\"@example.com",
            "'=1",
            "\"'=1",
            "=a,\"b\"",
        ] {
            assert_eq!(row(&["x", cell]), None, "{cell:?}");
            assert_eq!(row(&[cell, "x"]), None, "{cell:?}");
        }
    }

    #[test]
    fn however_many_are_withheld_some_are_named() {
        let mut withheld = WithheldRows::default();
        assert!(withheld.is_empty() && withheld.ids().is_empty());
        for n in 0..WithheldRows::NAMED {
            withheld.add(&n.to_string());
        }
        assert!(withheld.ids().ends_with("98, 99"));
        withheld.add("one more");
        assert!(withheld.ids().ends_with("98, 99 and 1 more") && withheld.rows == 101);
    }
}
