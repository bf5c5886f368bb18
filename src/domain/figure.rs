//! Figures as people read them: one way to write money and counts, in rules, pages and mail alike.

/// A whole number with a comma every three digits: 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count that stops at a bound: 1,234, or 10,000+ where it was reached.
pub fn capped(count: u64, most: u32) -> String {
    format!("{}{}", grouped(count), if count < most.into() { "" } else { "+" })
}

/// A count with its noun: 1 member, 1,234 members, 2 drafts of an offer.
pub fn counted(count: u64, what: &str) -> String {
    let (noun, rest) = what.find(' ').map_or((what, ""), |end| what.split_at(end));
    if count == 1 { format!("1 {what}") } else { format!("{} {noun}s{rest}", grouped(count)) }
}

/// An amount in whole US dollars: $1,234.
pub fn dollars(amount: u32) -> String {
    format!("${}", grouped(amount.into()))
}

/// An amount in cents: $1,234, $0.05, or -$20 if it is owed back.
pub fn money(cents: i64) -> String {
    let (sign, all) = (if cents < 0 { "-" } else { "" }, cents.unsigned_abs());
    let rest = if all % 100 == 0 { String::new() } else { format!(".{:02}", all % 100) };
    format!("{sign}${}{rest}", grouped(all / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_thousands() {
        for (amount, text) in
            [(0, "$0"), (7, "$7"), (999, "$999"), (1000, "$1,000"), (12_345, "$12,345"), (1_234_567, "$1,234,567")]
        {
            assert_eq!(dollars(amount), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn counts_use_singular_and_plural() {
        for (count, text) in [(0, "0 members"), (1, "1 member"), (1234, "1,234 members")] {
            assert_eq!(counted(count, "member"), text);
        }
        assert_eq!(
            (counted(1, "draft of an offer"), counted(2, "draft of an offer")),
            ("1 draft of an offer".to_owned(), "2 drafts of an offer".to_owned())
        );
    }

    #[test]
    fn cents_are_written_where_there_are_some() {
        for (cents, text) in [(0, "$0"), (123_400, "$1,234"), (5, "$0.05"), (-10_050, "-$100.50")] {
            assert_eq!(money(cents), text);
        }
    }
}
