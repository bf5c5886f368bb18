//! The look of a union: two colours, from which all others follow, and a logo. Colours that cannot be read are refused.

use std::fmt;

use bytes::Bytes;

/// A colour of the screen (sRGB).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Color(pub [u8; 3]);

impl Color {
    const WHITE: Self = Self([255; 3]);
    const BLACK: Self = Self([0; 3]);
    /// The page in light and a card in dark, as the stylesheet has them.
    const PAPER: Self = Self([0xfa, 0xf6, 0xee]);
    const DARK_CARD: Self = Self([0x1c, 0x21, 0x1e]);
    const DARK_PAPER: Self = Self([0x14, 0x18, 0x15]);
    /// Text on the main colour, and on the highlight.
    const PALE: Self = Self([0xfd, 0xf8, 0xec]);
    const INK: Self = Self([0x24, 0x1a, 0x02]);

    /// Reads `#0a4d3f`, as the web writes colours.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text
            .trim()
            .strip_prefix('#')
            .filter(|digits| digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).ok();
        Some(Self([part(0)?, part(2)?, part(4)?]))
    }

    /// How well two colours can be told apart, from 1 to 21 (WCAG 2).
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

    /// This colour with some hundredths of another in it.
    #[must_use]
    fn with(self, other: Self, hundredths: u16) -> Self {
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

/// A picture of the operator's, as it is served.
#[derive(Debug, Clone)]
pub struct Logo {
    pub content_type: &'static str,
    pub bytes: Bytes,
}

impl Logo {
    /// Weighs on every page.
    pub const LARGEST: usize = 64 << 10;

    /// None if it is neither a PNG nor an SVG.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let content_type = match &bytes {
            png if png.starts_with(b"\x89PNG\r\n\x1a\n") => "image/png",
            svg if String::from_utf8_lossy(svg).contains("<svg") => "image/svg+xml",
            _ => return None,
        };
        Some(Self { content_type, bytes: bytes.into() })
    }
}

#[derive(Debug, Clone)]
pub struct Theme {
    /// The band at the top, links, and the band of mails.
    pub main: Color,
    /// Buttons, and what stands out on the band.
    pub highlight: Color,
    pub logo: Option<Logo>,
    /// The operator's own picture for shared links, a PNG of [`Theme::CARD_SIZE`].
    pub card: Option<Bytes>,
    /// Whether it is the one that the stylesheet has anyway.
    is_default: bool,
}

impl Default for Theme {
    fn default() -> Self {
        let (main, highlight) = (Color([0x0a, 0x4d, 0x3f]), Color([0xf2, 0xb5, 0x3c]));
        Self { main, highlight, logo: None, card: None, is_default: true }
    }
}

/// What cannot be read, and what would be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unreadable {
    #[error(
        "main = \"{main}\" is too light: pale text on it has a contrast of {contrast:.1}, and {least} is needed; take a darker colour"
    )]
    Main { main: Color, contrast: f64, least: f64 },
    #[error(
        "highlight = \"{highlight}\" is too dark: dark text on it has a contrast of {contrast:.1}, and {least} is needed; take a lighter colour"
    )]
    Highlight { highlight: Color, contrast: f64, least: f64 },
    #[error(
        "highlight = \"{highlight}\" is too near to main = \"{main}\": their contrast is {contrast:.1}, and {least} is needed; take colours further apart"
    )]
    TooNear { main: Color, highlight: Color, contrast: f64, least: f64 },
}

impl Theme {
    /// For text, with room for its paler shade; for text; for large text and shapes (WCAG 2, AA).
    const LEAST_MAIN: f64 = 7.0;
    const LEAST_TEXT: f64 = 4.5;
    const LEAST_SHAPE: f64 = 3.0;

    /// What chats show whole, in pixels (Open Graph).
    pub const CARD_SIZE: (u32, u32) = (1200, 630);
    /// Some chats show no larger file.
    pub const LARGEST_CARD: usize = 300 << 10;

    /// Everything that cannot be read is told at once.
    pub fn new(
        main: Color,
        highlight: Color,
        logo: Option<Logo>,
        card: Option<Bytes>,
    ) -> Result<Self, Vec<Unreadable>> {
        let mut unreadable = Vec::new();
        let (least, contrast) = (Self::LEAST_MAIN, main.contrast(Color::PALE));
        if contrast < least {
            unreadable.push(Unreadable::Main { main, contrast, least });
        }
        let (least, contrast) = (Self::LEAST_TEXT, highlight.contrast(Color::INK));
        if contrast < least {
            unreadable.push(Unreadable::Highlight { highlight, contrast, least });
        }
        let (least, contrast) = (Self::LEAST_SHAPE, highlight.contrast(main));
        if contrast < least {
            unreadable.push(Unreadable::TooNear { main, highlight, contrast, least });
        }
        if unreadable.is_empty() {
            Ok(Self { main, highlight, logo, card, is_default: false })
        } else {
            Err(unreadable)
        }
    }

    /// Links on a light page.
    pub fn accent(&self) -> Color {
        self.main
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

    /// What the stylesheet has to say besides; nothing for the look that it has anyway.
    pub fn css(&self) -> String {
        if self.is_default {
            return String::new();
        }
        let Self { main, highlight, .. } = self;
        let (edge, deep_on_dark) = (highlight.with(Color::BLACK, 30), main.with(Color::BLACK, 25));
        format!(
            ":root{{--deep:{main};--accent:{main};--accent-soft:{};--on-deep-soft:{};--sun:{highlight};--sun-edge:{edge}}}\n\
             @media (prefers-color-scheme:dark){{:root{{--deep:{deep_on_dark};--accent:{};--accent-soft:{};\
             --on-deep-soft:{};--sun-edge:{edge}}}}}\n",
            Color::PAPER.with(*main, 10),
            Color::PALE.with(*main, 15),
            self.accent_on_dark(),
            Color::DARK_PAPER.with(*main, 35),
            Color::PALE.with(*main, 15),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn color(text: &str) -> Color {
        Color::parse(text).unwrap()
    }

    #[test]
    fn colours_are_read_and_compared_as_the_web_does() {
        assert_eq!(color("#0A4d3f").to_string(), "#0a4d3f");
        for bad in ["", "#fff", "0a4d3f", "#0a4d3", "#0a4d3g", "#0a4d3ff", "#ééé", "red", "#+1+2+3"] {
            assert_eq!(Color::parse(bad), None, "{bad}");
        }
        assert!((color("#000000").contrast(color("#ffffff")) - 21.0).abs() < 0.001);
        assert!((color("#777777").contrast(color("#ffffff")) - 4.478).abs() < 0.001, "as known calculators have it");
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_would_be() {
        let default = Theme::default();
        assert!(Theme::new(default.main, default.highlight, None, None).is_ok(), "our own look holds to it");
        let wrong = Theme::new(color("#88aaff"), color("#203040"), None, None).unwrap_err();
        let told = wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        assert!(told.contains("main = \"#88aaff\" is too light") && told.contains("7 is needed"), "{told}");
        assert!(told.contains("highlight = \"#203040\" is too dark"), "both at once: {told}");
        let near = Theme::new(color("#0a4d3f"), color("#7a7a7a"), None, None).unwrap_err();
        assert!(near.iter().any(|why| matches!(why, Unreadable::TooNear { .. })), "{near:?}");
    }

    /// Whatever colours are taken, all that is made of them can be read.
    #[test]
    fn every_colour_that_is_taken_gives_a_look_that_can_be_read() {
        let steps = [0_u8, 40, 80, 120, 160, 200, 255];
        let color = |at: usize| Color([steps[at / 49], steps[at / 7 % 7], steps[at % 7]]);
        let colors = || (0..343).map(color);
        let mut taken = 0;
        for main in colors() {
            for highlight in colors().step_by(7) {
                let Ok(theme) = Theme::new(main, highlight, None, None) else { continue };
                taken += 1;
                assert!(theme.accent().contrast(Color::PAPER) >= 4.5, "{main}");
                assert!(theme.accent_on_dark().contrast(Color::DARK_CARD) >= 4.5, "{main}");
                assert!(Color::PALE.with(main, 15).contrast(main) >= 4.5, "{main}");
                assert!(Color::PALE.contrast(main.with(Color::BLACK, 25)) >= 4.5, "{main}");
                assert!(theme.on_highlight().contrast(highlight) >= 4.5, "{highlight}");
            }
        }
        assert!(taken > 100, "{taken}");
    }

    #[test]
    fn a_logo_is_known_by_what_is_in_it() {
        assert_eq!(Logo::new(b"\x89PNG\r\n\x1a\n...".to_vec()).map(|logo| logo.content_type), Some("image/png"));
        assert_eq!(Logo::new(b"<?xml?><svg/>".to_vec()).map(|logo| logo.content_type), Some("image/svg+xml"));
        assert!(Logo::new(b"GIF89a".to_vec()).is_none() && Logo::new(Vec::new()).is_none());
    }
}
