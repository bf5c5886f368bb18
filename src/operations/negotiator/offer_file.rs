//! A proposal as a file for `campaigns offer`: the same fields, written in TOML, so that one reader checks both.

use serde_json::{Map, Value};

use crate::domain::campaign::LastDay;

/// The fields that hold a day, which JSON can only write as a text.
const DAYS: [&str; 3] = ["decide_by", "open_until", "date"];

/// The file, valid or not: the reader of offers says what is wrong with it.
pub(super) fn write(offer: &Map<String, Value>) -> String {
    let mut file = String::new();
    write_table(&mut file, "", offer);
    file
}

/// What belongs to a table stands before the tables inside it.
fn write_table(file: &mut String, path: &str, table: &Map<String, Value>) {
    for (name, value) in table {
        if let Some(value) = value_of(name, value) {
            file.push_str(&format!("{} = {value}\n", key(name)));
        }
    }
    for (name, value) in table {
        if let Value::Object(inner) = value {
            let path = if path.is_empty() { key(name) } else { format!("{path}.{}", key(name)) };
            // One that holds tables alone needs no line of its own.
            if inner.is_empty() || inner.values().any(|value| !value.is_object()) {
                file.push_str(&format!("\n[{path}]\n"));
            }
            write_table(file, &path, inner);
        }
    }
}

/// None for a table, and for null, which means the same as leaving it out.
fn value_of(name: &str, value: &Value) -> Option<String> {
    match value {
        Value::Object(_) | Value::Null => None,
        Value::String(day)
            if DAYS.contains(&name) && day.parse::<LastDay>().is_ok_and(|read| read.to_string() == *day) =>
        {
            Some(day.clone())
        }
        // TOML knows every escape that JSON writes.
        Value::String(text) => Some(quoted_text(text)),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => Some(match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(number)) if number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
            (None, number) => format!("{:e}", number.unwrap_or_default()),
        }),
        // No field holds a list: enough that it is one.
        Value::Array(_) => Some("[]".to_owned()),
    }
}

fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_bare { name.to_owned() } else { quoted_text(name) }
}

fn quoted_text(text: &str) -> String {
    // The one control character that JSON writes as it is.
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::campaign::offer::Offer;

    fn file(offer: Value) -> String {
        let Value::Object(offer) = offer else { panic!("{offer}") };
        write(&offer)
    }

    #[test]
    fn a_proposal_reads_back_as_the_offer_it_is() {
        let file = file(json!({
            "supplier": "Example \"Fiber\"\nInc.", "annual_saving": 240.0, "term_months": 12, "decide_by": "2027-03-15",
            "open_until": null, "complaints": "help@fiber.example",
            "benchmark": { "price": "$68 a month", "source": "FCC", "date": "2026-11-01" },
            "text": {
                "en": { "price": "$48 a month", "exit_fee": "None" },
                "es": { "price": "$48 al mes", "exit_fee": "Ninguno", "details": "Instalación gratis." }
            }
        }));
        let offer = Offer::parse(&file).unwrap();
        assert_eq!((offer.supplier.as_str(), offer.annual_saving), ("Example \"Fiber\"\nInc.", 240));
        assert_eq!((offer.decide_by.to_string().as_str(), offer.open_until), ("2027-03-15", None));
        assert!(file.contains("annual_saving = 240\nterm_months = 12\ndecide_by = 2027-03-15\ncomplaints"), "{file}");
        assert!(file.contains("\n[text.es]\nprice = \"$48 al mes\"\n"), "{file}");
    }

    /// Whatever a model sends is TOML, so that the reader can say what is wrong with each field.
    #[test]
    fn nothing_that_was_sent_breaks_the_file() {
        let odd = "a\"b]\u{7f}\u{1b}\u{2028}= '''\\";
        let sent = json!({
            odd: { odd: odd, "": 1, "a.b": [1, { "c": null }] }, "big": u64::MAX, "float": 1.5e300, "small": -1e-9,
            "decide_by": "2027-3-5", "date": "2027-02-30", "open_until": "2027-01-01\nsupplier = 1", "yes": true, "no": null
        });
        let Value::Object(sent) = sent else { unreachable!() };
        let file = write(&sent);
        let read = toml::from_str::<toml::Table>(&file).unwrap_or_else(|error| panic!("{error}\n{file}"));
        assert_eq!(read[odd][odd].as_str(), Some(odd));
        assert_eq!(read.len(), sent.len() - 1, "null is nothing");
        assert_eq!(read["decide_by"].as_str(), Some("2027-3-5"), "no day");
        assert!(!read.contains_key("supplier"));
    }
}
