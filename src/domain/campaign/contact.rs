//! Whether a text names an email address or a phone number. What a negotiator notes must have none: people read it later, and it stays.

use serde_json::Value;

/// What a text names, for a sentence.
fn named_in(text: &str) -> Option<&'static str> {
    if has_address(text) {
        Some("an email address")
    } else if has_phone_number(text) {
        Some("a phone number")
    } else {
        None
    }
}

/// What is wrong with a field of a negotiator, if anything.
pub fn refusal(field: &str, text: &str) -> Option<String> {
    let what = named_in(text)?;
    Some(format!(
        "{field}: it has {what} in it; leave that out, also of a quotation; the company, or a role such as \"regional sales\", says enough"
    ))
}

/// The same of every text inside a value but those whose field is `allowed`, each with its place.
pub fn refusals(place: &str, value: &Value, allowed: &str) -> Vec<String> {
    match value {
        Value::String(text) => refusal(place, text).into_iter().collect(),
        Value::Array(values) => {
            let numbered = values.iter().enumerate();
            numbered.flat_map(|(at, value)| refusals(&format!("{place}.{}", at + 1), value, allowed)).collect()
        }
        Value::Object(fields) => {
            let read = fields.iter().filter(|(name, _)| *name != allowed);
            let inner = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
            read.flat_map(|(name, value)| refusals(&inner(name), value, allowed)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn has_address(text: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        let is_local = text[..at].ends_with(|c: char| c.is_alphanumeric() || "._%+-\"".contains(c));
        let rest = &text[at + 1..];
        let domain = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '.').unwrap_or(rest.len())];
        let labels: Vec<_> = domain.trim_end_matches('.').split('.').collect();
        let last = labels.last().map_or("", |last| last);
        is_local && labels.len() > 1 && labels.iter().all(|label| !label.is_empty()) && last.chars().count() > 1
    })
}

/// What people write between the parts of a number.
const BETWEEN: [&str; 11] = ["", "-", ".", " ", ")", ") ", ")-", " - ", "/", "\u{2011}", "\u{2013}"];

/// Of the US, in any usual form; or international, beginning with a plus sign.
fn has_phone_number(text: &str) -> bool {
    // Each group of digits: where it begins and ends.
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        match groups.last_mut() {
            Some((_, end)) if *end == at => *end = at + c.len_utf8(),
            _ => groups.push((at, at + 1)),
        }
    }
    (0..groups.len()).any(|first| {
        let begin = groups[first].0;
        let before = text[..begin].trim_end_matches('(').chars().next_back();
        if matches!(before, Some('$' | ',')) {
            return false;
        }
        let mut digits = String::new();
        let mut sizes = Vec::new();
        for (at, (start, end)) in groups[first..].iter().enumerate() {
            if at > 0 {
                let between = text[groups[first + at - 1].1..*start].replace('(', "");
                if !BETWEEN.contains(&between.as_str()) {
                    break;
                }
            }
            digits.push_str(&text[*start..*end]);
            sizes.push(end - start);
            if before == Some('+') && (8..=15).contains(&digits.len()) {
                return true;
            }
            let is_formed = matches!(sizes.as_slice(), [10] | [3, 7] | [3, 3, 4])
                || matches!(sizes.as_slice(), [11] | [1, 10] | [1, 3, 7] | [1, 3, 3, 4]) && digits.starts_with('1');
            let own = digits.get(digits.len().saturating_sub(10)..).unwrap_or_default();
            let begins_well = |at: usize| own.as_bytes().get(at).is_some_and(|digit| (b'2'..=b'9').contains(digit));
            if is_formed && begins_well(0) && begins_well(3) {
                return true;
            }
            if digits.len() > 15 {
                break;
            }
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn addresses_and_phone_numbers_are_found() {
        for text in [
            "ana@example.com",
            "Write to Ana <ana.lee+deals@mail.fiber.example>.",
            "ana@fiber.example.",
            "münz@käse.example",
        ] {
            assert_eq!(named_in(text), Some("an email address"), "{text}");
        }
        for text in [
            "415-555-0123",
            "call (415) 555-0123 today",
            "+1 415 555 0123",
            "1-415-555-0123",
            "tel:4155550123",
            "415.555.0123",
            "415 5550123",
            "+44 20 7946 0958",
            "+52 (55) 5512-3456",
        ] {
            assert_eq!(named_in(text), Some("a phone number"), "{text}");
        }
    }

    #[test]
    fn prices_days_and_counts_are_neither() {
        for text in [
            "$48 a month for at least 1,230 households until 2027-03-15",
            "decide by 2027-03-15, valid 2027-03-31",
            "$1,000,000,000 and 415,555,0123",
            "100-200 members; 300-500 Mbit/s; 2027-2028",
            "1000000000",
            "two @ $48, 12 months @ 50",
            "see @fiber on the page",
            "https://fiber.example/plans/2027",
            "12 34 56 78",
        ] {
            assert_eq!(named_in(text), None, "{text}");
        }
    }

    #[test]
    fn each_text_is_named_by_its_place() {
        let sent = json!({
            "supplier": "Example Fiber", "complaints": "help@fiber.example", "evidence": "Ask ana@fiber.example.",
            "fees": [{ "name": "modem" }, { "name": "call 415-555-0123" }],
        });
        let found = refusals("bid", &sent, "complaints");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("bid.evidence: it has an email address in it; "), "{found:?}");
        assert!(found[1].starts_with("bid.fees.2.name: it has a phone number in it; "), "{found:?}");
    }
}
