//! Files of rows (CSV): those that people open in a spreadsheet, with what is withheld from them, and those that come back.

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

/// Mistakes of a file that are listed: somebody reads no more, and a file of short lines has hundreds of thousands.
pub const MOST_MISTAKES: usize = 1000;

/// Adds what is wrong with a line: one more than are listed, so that it is known that there are more.
pub fn add_mistake(mistakes: &mut Vec<(usize, String)>, line: usize, what: String) {
    if mistakes.len() <= MOST_MISTAKES {
        mistakes.push((line, what));
    }
}

/// The columns of a file that is read.
pub struct Columns<const N: usize> {
    /// In any order and any case; further columns are ignored.
    pub names: [&'static str; N],
    /// How many of them, from the first on, have to be there.
    pub needed: usize,
    /// A first line as it should be.
    pub sample: &'static str,
    /// What a row is about, in one word.
    pub each: &'static str,
}

/// A file that was read.
#[derive(Debug, PartialEq, Eq)]
pub struct CsvRows<const N: usize> {
    pub rows: Vec<CsvRow<N>>,
    /// What is wrong, each with its line.
    pub mistakes: Vec<(usize, String)>,
}

/// A row of it.
#[derive(Debug, PartialEq, Eq)]
pub struct CsvRow<const N: usize> {
    /// The line that it begins on.
    pub line: usize,
    /// Trimmed, in the order of [`Columns::names`]; empty where the file has no such column.
    pub fields: [String; N],
}

impl<const N: usize> Columns<N> {
    /// Reads a file; all mistakes at once. Empty lines are skipped.
    pub fn read(&self, text: &str) -> CsvRows<N> {
        let mut read = CsvRows { rows: Vec::new(), mistakes: Vec::new() };
        let rows = match split(text.strip_prefix('\u{feff}').unwrap_or(text)) {
            Ok(rows) => rows,
            Err(mistake) => return CsvRows { mistakes: vec![mistake], ..read },
        };
        let mut rows = rows.into_iter().filter(|(_, fields)| fields.len() > 1 || !fields[0].trim().is_empty());
        let (first, header) = rows.next().unwrap_or((1, Vec::new()));
        let places = match self.places(&header) {
            Ok(places) => places,
            Err(mistakes) => {
                read.mistakes = mistakes.into_iter().map(|mistake| (first, mistake)).collect();
                return read;
            }
        };
        for (line, fields) in rows {
            if fields.len() == header.len() {
                let field = |place: Option<usize>| place.map_or("", |place| fields[place].trim()).to_owned();
                read.rows.push(CsvRow { line, fields: places.map(field) });
            } else {
                let what = format!("{} fields; the first line has {}", fields.len(), header.len());
                add_mistake(&mut read.mistakes, line, what);
            }
        }
        if read.rows.is_empty() && read.mistakes.is_empty() {
            let none = format!("this is the only line; a line for each {} comes after it", self.each);
            read.mistakes.push((first, none));
        }
        read
    }

    /// Where the columns are, by the first line.
    fn places(&self, header: &[String]) -> Result<[Option<usize>; N], Vec<String>> {
        let is_named = |column: &String, name: &str| column.trim().eq_ignore_ascii_case(name);
        let of = |name: &str| -> Vec<_> { (0..header.len()).filter(|place| is_named(&header[*place], name)).collect() };
        let found = self.names.map(of);
        let twice = self.names.iter().zip(&found).filter(|(_, places)| places.len() > 1);
        let mut mistakes: Vec<_> =
            twice.map(|(name, places)| format!("{} columns are named {name}; keep one", places.len())).collect();
        let needed = self.names.iter().zip(&found).take(self.needed);
        let missing: Vec<_> = needed.filter(|(_, places)| places.is_empty()).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            let other = match header {
                [] => "the file is empty; ".to_owned(),
                [one] if one.contains(';') => "the columns are separated by semicolons; use commas; ".to_owned(),
                [one] if one.contains('\t') => "the columns are separated by tabs; use commas; ".to_owned(),
                _ => format!("no column {}; ", missing.join(", ")),
            };
            mistakes.push(format!("{other}the first line names the columns, such as {}", self.sample));
        }
        if mistakes.is_empty() { Ok(found.map(|places| places.first().copied())) } else { Err(mistakes) }
    }
}

/// The line that a row begins on, and its fields.
type Fields = (usize, Vec<String>);

/// All rows; or what is wrong and where.
fn split(text: &str) -> Result<Vec<Fields>, (usize, String)> {
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
            '"' => return Err((line, "a quotation mark inside a field; double it, and quote the field".to_owned())),
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
        return Err((first_line, "a quotation mark that is never closed".to_owned()));
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

    #[test]
    fn a_file_is_read_by_its_columns() {
        const COLUMNS: Columns<3> = Columns {
            names: ["reference", "status", "date"],
            needed: 2,
            sample: "reference,status,date",
            each: "reference",
        };
        let row = |line, fields: [&str; 3]| CsvRow { line, fields: fields.map(str::to_owned) };
        let read =
            COLUMNS.read("\u{feff}note,Status , reference\r\n\"two\nlines\", ordered ,A1\r\n\r\n,\"a \"\"b\"\"\",B2");
        let rows = vec![row(2, ["A1", "ordered", ""]), row(5, ["B2", "a \"b\"", ""])];
        assert_eq!(read, CsvRows { rows, mistakes: vec![] });
        let read = COLUMNS.read("reference,status\nA1\nB2,ordered\nC3,ordered,x\n");
        assert_eq!(read.rows, [row(3, ["B2", "ordered", ""])]);
        let wrong = [(2, "1 fields; the first line has 2"), (4, "3 fields; the first line has 2")];
        assert_eq!(read.mistakes, wrong.map(|(line, what)| (line, what.to_owned())));
        let none = COLUMNS.read("reference,status\n").mistakes;
        assert_eq!(none, [(1, "this is the only line; a line for each reference comes after it".to_owned())]);
    }
}
