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

/// An amount in whole US dollars: $1,234.
pub fn dollars(amount: u32) -> String {
    format!("${}", grouped(amount.into()))
}

/// An amount in cents as US dollars: $1,234, or $1,234.50.
pub fn cents(amount: i64) -> String {
    let (sign, whole) = (if amount < 0 { "-" } else { "" }, amount.unsigned_abs());
    let part = if whole.is_multiple_of(100) { String::new() } else { format!(".{:02}", whole % 100) };
    format!("{sign}${}{part}", grouped(whole / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_at_every_third_digit() {
        for (amount, text) in
            [(0, "$0"), (7, "$7"), (999, "$999"), (1000, "$1,000"), (12_345, "$12,345"), (1_234_567, "$1,234,567")]
        {
            assert_eq!(dollars(amount), text);
        }
        for (amount, text) in [(0, "$0"), (123_400, "$1,234"), (5, "$0.05"), (-10_050, "-$100.50")] {
            assert_eq!(cents(amount), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
