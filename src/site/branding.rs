//! How an operator makes the site their own: a logo, a picture for shared links, texts on the pages of trust, and what two
//! colors make of the stylesheet.

use bytes::Bytes;

use super::own_text::OwnTexts;
use crate::domain::union::colors::{Color, Colors};

/// What the operator adds to the site; nothing unless they do.
#[derive(Default)]
pub struct Branding {
    pub logo: Option<Logo>,
    /// The picture for shared links, a PNG of [`Branding::CARD_SIZE`].
    pub card: Option<Bytes>,
    pub texts: OwnTexts,
}

impl Branding {
    /// What chats show whole, in pixels (Open Graph).
    pub const CARD_SIZE: (u32, u32) = (1200, 630);
    /// Some chats show no larger file.
    pub const LARGEST_CARD: usize = 300 << 10;
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

/// The page in light and in dark, as the stylesheet has them.
const PAPER: Color = Color([0xfa, 0xf6, 0xee]);
const DARK_PAPER: Color = Color([0x14, 0x18, 0x15]);

/// What the stylesheet says besides; nothing for the colors that it has anyway.
pub(super) fn css(colors: Colors) -> String {
    if colors == Colors::default() {
        return String::new();
    }
    let (main, highlight) = (colors.main(), colors.highlight());
    let (edge, deep_on_dark) = (highlight.with(Color::BLACK, 30), main.with(Color::BLACK, 25));
    format!(
        ":root{{--deep:{main};--accent:{main};--accent-soft:{};--on-deep-soft:{};--sun:{highlight};--sun-edge:{edge}}}\n\
         @media (prefers-color-scheme:dark){{:root{{--deep:{deep_on_dark};--accent:{};--accent-soft:{};\
         --on-deep-soft:{};--sun-edge:{edge}}}}}\n",
        PAPER.with(main, 10),
        Color::PALE.with(main, 15),
        colors.accent_on_dark(),
        DARK_PAPER.with(main, 35),
        Color::PALE.with(main, 15),
    )
}

/// A stylesheet as browsers need it: without comments, and without spaces that mean nothing.
pub(super) fn compact(css: &str) -> String {
    let without_comments: String =
        css.split("/*").map(|part| part.split_once("*/").map_or(part, |(_, rest)| rest)).collect();
    let mut compact = String::with_capacity(without_comments.len());
    for word in without_comments.split_whitespace() {
        // A space before a colon says that what follows is inside what stands before it.
        if !compact.is_empty() && !compact.ends_with(['{', '}', ':', ';', ',']) && !word.starts_with(['{', '}', ';']) {
            compact.push(' ');
        }
        compact.push_str(word);
    }
    compact
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever colors are taken, all that is made of them can be read.
    #[test]
    fn every_color_that_is_taken_gives_a_look_that_can_be_read() {
        let dark_card = Color::parse("#1c211e").unwrap();
        let steps = [0_u8, 40, 80, 120, 160, 200, 255];
        let color = |at: usize| Color([steps[at / 49], steps[at / 7 % 7], steps[at % 7]]);
        let every = || (0..343).map(color);
        let mut taken = 0;
        for main in every() {
            for highlight in every().step_by(7) {
                let Ok(colors) = Colors::new(main, highlight) else { continue };
                taken += 1;
                assert!(colors.main().contrast(PAPER) >= 4.5, "{main}");
                assert!(colors.accent_on_dark().contrast(dark_card) >= 4.5, "{main}");
                assert!(Color::PALE.with(main, 15).contrast(main) >= 4.5, "{main}");
                assert!(Color::PALE.contrast(main.with(Color::BLACK, 25)) >= 4.5, "{main}");
                assert!(colors.on_highlight().contrast(highlight) >= 4.5, "{highlight}");
            }
        }
        assert!(taken > 100, "{taken}");
    }

    #[test]
    fn a_stylesheet_loses_only_what_means_nothing() {
        let css = "/* One. */\na :is(b, c) > d {\n  margin: 0 auto; /* Two. */\n  width: calc(1rem + 2px);\n}\n\n@media (min-width: 2rem) { a { color: red; } }\n";
        let wanted = "a :is(b,c) > d{margin:0 auto;width:calc(1rem + 2px);}@media (min-width:2rem){a{color:red;}}";
        assert_eq!(compact(css), wanted);
    }

    #[test]
    fn a_logo_is_known_by_what_is_in_it() {
        assert_eq!(Logo::new(b"\x89PNG\r\n\x1a\n...".to_vec()).map(|logo| logo.content_type), Some("image/png"));
        assert_eq!(Logo::new(b"<?xml?><svg/>".to_vec()).map(|logo| logo.content_type), Some("image/svg+xml"));
        assert!(Logo::new(b"GIF89a".to_vec()).is_none() && Logo::new(Vec::new()).is_none());
    }
}
