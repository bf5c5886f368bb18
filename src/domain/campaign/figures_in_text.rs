//! Whether the figures in an offer's texts are its own: a price in a sentence that is none of its numbers misleads, typed or made up.

use std::collections::BTreeSet;

use super::LastDay;
use super::price::Price;

/// The numbers of an offer, in hundredths.
#[derive(Default)]
pub(super) struct Numbers {
    all: BTreeSet<u64>,
    /// Those that are amounts of money.
    money: BTreeSet<u64>,
}

impl Numbers {
    /// The figures of a text that are none of these.
    pub(super) fn unknown_in<'a>(&self, text: &'a str) -> impl Iterator<Item = String> + use<'a, '_> {
        let of_others = figures(text).filter(|figure| !self.has(figure));
        of_others.map(|figure| format!("{}{}", if figure.is_money { "$" } else { "" }, figure.text))
    }

    pub(super) fn add_hundredths(&mut self, hundredths: u64) {
        self.all.insert(hundredths);
    }

    /// Cents are hundredths of a dollar.
    pub(super) fn add_cents(&mut self, cents: u64) {
        self.add_hundredths(cents);
        self.money.insert(cents);
    }

    pub(super) fn add_whole(&mut self, number: u64) {
        self.add_hundredths(number.saturating_mul(100));
    }

    /// A basis point is a hundredth of a percent.
    pub(super) fn add_price(&mut self, price: Price) {
        match price {
            Price::Flat { cents, .. } => self.add_cents(cents),
            Price::Loan { apr_basis_points: part, on_cents }
            | Price::Discount { off_basis_points: part, on_cents, .. } => {
                self.add_hundredths(part.into());
                self.add_cents(on_cents);
            }
        }
    }

    pub(super) fn add_day(&mut self, day: LastDay) {
        let number = |number: i32| u64::try_from(number).unwrap_or_default();
        for part in [i32::from(day.0.year()), day.0.month().into(), day.0.day().into()] {
            self.add_whole(number(part));
        }
    }

    /// The figures of a name, such as "Fiber 300".
    pub(super) fn add_those_of(&mut self, name: &str) {
        for figure in figures(name) {
            self.all.extend(readings(figure.text));
        }
    }

    fn has(&self, figure: &Figure<'_>) -> bool {
        let known = if figure.is_money { &self.money } else { &self.all };
        readings(figure.text).iter().any(|reading| known.contains(reading))
    }
}

/// A figure as it stands in a text.
struct Figure<'a> {
    text: &'a str,
    /// A dollar sign stands beside it.
    is_money: bool,
}

/// The figures of a text: digits, with what parts them inside. A character that is a number by itself (½, ４) is one, too.
fn figures(text: &str) -> impl Iterator<Item = Figure<'_>> {
    let is_inside = |c: char| c.is_numeric() || matches!(c, '.' | ',' | '\u{a0}' | '\u{202f}');
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(char::is_numeric)?;
        let (before, from) = rest.split_at(start);
        let piece = &from[..from.find(|c: char| !is_inside(c)).unwrap_or(from.len())];
        let figure = piece.trim_end_matches(|c: char| !c.is_numeric());
        rest = &from[figure.len()..];
        let is_money = before.trim_end().ends_with('$') || rest.trim_start().starts_with('$');
        Some(Figure { text: figure, is_money })
    })
}

/// What a figure can mean, in hundredths: a comma or a point may part thousands, or be followed by cents.
fn readings(figure: &str) -> Vec<u64> {
    let parted: Vec<&str> = figure.split(|c: char| !c.is_ascii_digit()).collect();
    let Some((last, before)) = parted.split_last() else { return Vec::new() };
    let is_grouped = |parts: &[&str]| match parts {
        [] => false,
        [first, rest @ ..] => (1..=3).contains(&first.len()) && rest.iter().all(|part| part.len() == 3),
    };
    let whole = |parts: &[&str]| parts.concat().parse::<u64>().ok().and_then(|number| number.checked_mul(100));
    let mut readings = Vec::new();
    if before.is_empty() || is_grouped(&parted) {
        readings.extend(whole(&parted));
    }
    if (before.len() == 1 || is_grouped(before)) && (1..=2).contains(&last.len()) {
        let cents = last.parse::<u64>().ok().map(|cents| if last.len() == 1 { cents * 10 } else { cents });
        readings.extend(whole(before).zip(cents).and_then(|(whole, cents)| whole.checked_add(cents)));
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::super::draft::CampaignDraft;
    use super::super::tests::{DRAFT, offer};
    use super::*;

    fn unknown_in(details: &str) -> Vec<String> {
        let mut offer = offer();
        offer.terms.texts[1].1.details = Some(details.to_owned());
        offer.unsigned(&CampaignDraft::parse(DRAFT).unwrap()).figures
    }

    #[test]
    fn its_own_figures_may_stand_there_in_any_spelling() {
        for good in [
            "$48 a month, and $5 for the modem.",
            "$48.00, o 48,00 $ al mes.",
            "$636 a year instead of $816: you save $180 in 12 months, or 1 year.",
            "Before March 15, 2027.",
            "Nothing else.",
            "The union gets $25.",
        ] {
            assert_eq!(unknown_in(good), [""; 0], "{good}");
        }
    }

    #[test]
    fn any_other_figure_is_told_with_its_place() {
        assert_eq!(
            unknown_in("$40 al mes por 600 meses, hasta 1.000.000, ½ o ４８."),
            ["$40", "600", "1.000.000", "½", "４８"]
                .map(|figure| format!("text.es.details: {figure} is none of the offer's numbers"))
        );
        for bad in [
            "$15",
            "$12",
            "12 $",
            "$2,027",
            "$480",
            "4.8",
            "48.5",
            "$0.48",
            "4,800",
            "48.000",
            "0048000",
            "99999999999999999999999",
        ] {
            assert_eq!(unknown_in(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn points_and_commas_part_thousands_or_cents() {
        assert_eq!(readings("1,234"), [123_400]);
        assert_eq!(readings("1.234,56"), [123_456]);
        assert_eq!(readings("12,5"), [1250]);
        assert_eq!(readings("1,2345"), [0; 0]);
        assert_eq!(readings("1,234.5"), [123_450]);
    }
}
