//! The two colors of a union, from which all others on pages and in mails follow. Colors that cannot be read on each other are
//! refused.

use std::fmt;

/// A color of the screen (sRGB).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(pub [u8; 3]);

impl Color {
    const WHITE: Self = Self([255; 3]);
    pub const BLACK: Self = Self([0; 3]);
    /// What a dark page has behind its text.
    const DARK_CARD: Self = Self([0x1c, 0x21, 0x1e]);
    /// Text on the main color, and on the highlight.
    pub const PALE: Self = Self([0xfd, 0xf8, 0xec]);
    const INK: Self = Self([0x24, 0x1a, 0x02]);

    /// Reads `#0a4d3f`, as the web writes colors.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text
            .trim()
            .strip_prefix('#')
            .filter(|digits| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        Some(Self([part(0)?, part(2)?, part(4)?]))
    }

    /// How well two colors can be told apart, from 1 to 21 (WCAG 2).
    pub fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// This color with some hundredths of another in it.
    #[must_use]
    pub fn with(self, other: Self, hundredths: u16) -> Self {
        let part = |at: usize| {
            let mixed = u16::from(self.0[at]) * (100 - hundredths) + u16::from(other.0[at]) * hundredths;
            u8::try_from(mixed / 100).unwrap_or(u8::MAX)
        };
        Self([part(0), part(1), part(2)])
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colors {
    /// The band at the top, links, and the band of mails.
    main: Color,
    /// Buttons, and what stands out on the band.
    highlight: Color,
}

impl Default for Colors {
    fn default() -> Self {
        Self { main: Color([0x0a, 0x4d, 0x3f]), highlight: Color([0xf2, 0xb5, 0x3c]) }
    }
}

impl Colors {
    /// For text, with room for its paler shade; for text; for large text and shapes (WCAG 2, AA).
    const LEAST_MAIN: f64 = 7.0;
    const LEAST_TEXT: f64 = 4.5;
    const LEAST_SHAPE: f64 = 3.0;

    /// Reports everything that cannot be read, and what would be.
    pub fn new(main: Color, highlight: Color) -> Result<Self, Vec<String>> {
        let mut unreadable = Vec::new();
        let mut require = |least: f64, contrast: f64, problem: String, remedy: &str| {
            if contrast < least {
                unreadable.push(format!("{problem} {contrast:.1}, and {least} is needed; take {remedy}"));
            }
        };
        let problem = format!("main = \"{main}\" is too light: pale text on it has a contrast of");
        require(Self::LEAST_MAIN, main.contrast(Color::PALE), problem, "a darker color");
        let problem = format!("highlight = \"{highlight}\" is too dark: dark text on it has a contrast of");
        require(Self::LEAST_TEXT, highlight.contrast(Color::INK), problem, "a lighter color");
        let problem = format!("highlight = \"{highlight}\" is too near to main = \"{main}\": their contrast is");
        require(Self::LEAST_SHAPE, highlight.contrast(main), problem, "colors further apart");
        if unreadable.is_empty() { Ok(Self { main, highlight }) } else { Err(unreadable) }
    }

    /// Links on a light page too.
    pub fn main(&self) -> Color {
        self.main
    }

    pub fn highlight(&self) -> Color {
        self.highlight
    }

    /// Links on a dark page: as much lighter as they must be.
    pub fn accent_on_dark(&self) -> Color {
        let lighter = (0..=100).step_by(5).map(|hundredths| self.main.with(Color::WHITE, hundredths));
        let mut readable = lighter.filter(|color| color.contrast(Color::DARK_CARD) >= Self::LEAST_MAIN);
        readable.next().unwrap_or(Color::WHITE)
    }

    /// Text on the highlight.
    pub fn on_highlight(&self) -> Color {
        Color::INK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn color(text: &str) -> Color {
        Color::parse(text).unwrap()
    }

    #[test]
    fn colors_are_read_and_compared_as_the_web_does() {
        assert_eq!(color("#0A4d3f").to_string(), "#0a4d3f");
        for bad in ["", "#fff", "0a4d3f", "#0a4d3", "#0a4d3g", "#0a4d3ff", "#ééé", "red", "#+1+2+3"] {
            assert_eq!(Color::parse(bad), None, "{bad}");
        }
        assert!((color("#000000").contrast(color("#ffffff")) - 21.0).abs() < 0.001);
        assert!((color("#777777").contrast(color("#ffffff")) - 4.478).abs() < 0.001, "as known calculators have it");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_would_be() {
        let default = Colors::default();
        assert!(Colors::new(default.main, default.highlight).is_ok(), "our own look holds to it");
        let wrong = Colors::new(color("#88aaff"), color("#203040")).unwrap_err();
        assert!(
            wrong[0].starts_with("main = \"#88aaff\" is too light") && wrong[0].contains("7 is needed"),
            "{wrong:?}"
        );
        assert!(wrong[1].starts_with("highlight = \"#203040\" is too dark"), "both at once: {wrong:?}");
        let near = Colors::new(color("#0a4d3f"), color("#7a7a7a")).unwrap_err();
        assert!(near.iter().any(|why| why.contains("is too near to main")), "{near:?}");
    }
}
