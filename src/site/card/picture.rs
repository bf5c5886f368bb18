//! The picture that a chat or a network shows beside a link to the union: Open Graph's image.
//!
//! Chats show it as small as a stamp and cut its edges off. So there is little on it, in large type, and nothing that
//! matters is nearer to an edge than 60 pixels.

use zeno::Transform;

use super::canvas::{Canvas, Ink, WIDTH};
use super::face::{CAPITAL, EM, Typeface};
use super::setting::{Setting, Style};

/// Made by `templates/font/subset.py`.
pub(super) static HEADING: &[u8] = include_bytes!("../../../templates/font/heading.ttf");

/// What a card says, and its colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Card<'a> {
    pub name: &'a str,
    pub headline: &'a str,
    /// Up to two figures, each with a line on what it is.
    pub figures: &'a [(String, String)],
    /// The ground.
    pub deep: [u8; 3],
    pub sun: [u8; 3],
    /// The text.
    pub on_deep: [u8; 3],
}

/// A PNG file of 1200 by 630 pixels. What the typeface lacks is left out, and what is too long is cut.
pub(super) fn card(card: &Card<'_>) -> Vec<u8> {
    // The file is part of the program: a test reads all of it.
    let Some(face) = Typeface::of(HEADING) else { return Vec::new() };
    let mut sheet = Sheet { face, canvas: Canvas::default() };
    sheet.compose(card);
    sheet.canvas.png(card.deep, card.on_deep, card.sun)
}

/// The mark at the head of every page, in a square of 48: templates/base.html.
const MARK: &str = "M3 20 24 5l21 15v4H3z\
    M7 31a4 4 0 0 1 8 0a4 4 0 0 1-8 0zM20 31a4 4 0 0 1 8 0a4 4 0 0 1-8 0zM33 31a4 4 0 0 1 8 0a4 4 0 0 1-8 0z\
    M4 45v-2a7 7 0 0 1 14 0v2zM17 45v-2a7 7 0 0 1 14 0v2zM30 45v-2a7 7 0 0 1 14 0v2z";
/// Where its ink begins, and how wide that is.
const MARK_AT: (f32, f32) = (3., 5.);
const MARK_WIDTH: f32 = 42.;

/// A roof again, as steep as the mark's, behind all.
const ROOF: &str = "M780 0H1200V300z";

const NAME: Style = Style { ways: &[(1, 44.), (1, 40.), (1, 36.), (2, 34.), (2, 31.), (2, 28.)], leading: 1.12 };
const HEADLINE: Style = Style {
    ways: &[(2, 110.), (2, 100.), (2, 92.), (2, 86.), (3, 80.), (3, 72.), (3, 64.), (3, 56.), (4, 50.), (4, 44.)],
    leading: 1.1,
};
const FIGURE: Style =
    Style { ways: &[(1, 66.), (1, 62.), (1, 58.), (1, 54.), (1, 50.), (1, 46.), (1, 42.)], leading: 1. };
const LABEL: Style = Style { ways: &[(1, 30.), (1, 28.), (2, 28.), (2, 26.)], leading: 1.2 };

const MARGIN: f32 = 80.;
const TOP: f32 = 64.;
/// Where the last line stands, with room for what hangs below it.
const LAST: f32 = 560.;
/// How wide the mark is, at the top.
const SIDE: f32 = 80.;
/// Between the mark and the name, and between two columns.
const GAP: f32 = 26.;
const GUTTER: f32 = 60.;
/// How thick a rule is, and what is free below it.
const RULE: f32 = 5.;
const BELOW_RULE: f32 = 32.;
/// What is free above and below the headline.
const AROUND: f32 = 55.;
/// How tall the figures may be, and what explains them.
const FIGURES: f32 = 70.;

struct Sheet<'a> {
    face: Typeface<'a>,
    canvas: Canvas,
}

impl Sheet<'_> {
    fn compose(&mut self, card: &Card<'_>) {
        let room = f32::from(WIDTH) - 2. * MARGIN;
        self.canvas.fill(Ink::Faint, ROOF, &Transform::IDENTITY);

        let scale = SIDE / MARK_WIDTH;
        let at = (MARGIN - MARK_AT.0 * scale, TOP - MARK_AT.1 * scale);
        self.canvas.fill(Ink::Sun, MARK, &Transform::new(scale, 0., 0., scale, at.0, at.1));
        let name = NAME.set(&self.face, &self.face.words(card.name, Ink::Text), (room - SIDE - GAP, SIDE));
        self.centred(&name, MARGIN + SIDE + GAP, TOP + SIDE / 2.);

        let bottom = self.figures(card.figures, room);
        let mut words = self.face.words(card.headline, Ink::Text);
        // What comes after its first sentence is what it is about.
        let stops = ['.', '!', '?'].map(|stop| self.face.glyph(stop));
        if let Some(end) = words.iter().position(|word| stops.contains(&word.glyphs.last().copied())) {
            words.iter_mut().skip(end + 1).for_each(|word| word.ink = Ink::Sun);
        }
        let top = TOP + SIDE;
        let headline = HEADLINE.set(&self.face, &words, (room, bottom - top - 2. * AROUND));
        // A little higher, for what hangs below the last line.
        self.centred(&headline, MARGIN, f32::midpoint(top, bottom) - headline.size * 0.09);
    }

    /// Side by side, each below a rule of its own; gives where the rules are. Without any there is one at the bottom.
    fn figures(&mut self, figures: &[(String, String)], room: f32) -> f32 {
        if figures.is_empty() {
            self.rule(MARGIN, LAST, room);
            return LAST;
        }
        let (columns, column) = if figures.len() > 1 { (2, (room - GUTTER) / 2.) } else { (1, room) };
        let place = (column, FIGURES);
        let set = |style: &Style, text, ink| style.set(&self.face, &self.face.words(text, ink), place);
        let mut pairs: Vec<_> = figures
            .iter()
            .take(columns)
            .map(|(figure, label)| (set(&FIGURE, figure, Ink::Text), set(&LABEL, label, Ink::Soft)))
            .collect();
        // Neighbours are of one size, and stand on the same lines.
        let size = pairs.iter().map(|(figure, _)| figure.size).fold(f32::MAX, f32::min);
        let small = pairs.iter().map(|(_, label)| label.size).fold(f32::MAX, f32::min);
        for (figure, label) in &mut pairs {
            (figure.size, label.size) = (size, small);
        }
        let capital = CAPITAL / EM;
        let height = pairs.iter().map(|(_, label)| label.height()).fold(small * capital, f32::max);
        let label_at = LAST - height + small * capital;
        let figure_at = label_at - small * 1.4;
        let rule_at = (figure_at - size * capital - BELOW_RULE - RULE).round();
        let mut x = MARGIN;
        for (figure, label) in &pairs {
            self.rule(x, rule_at, column);
            self.lines(figure, x, figure_at);
            self.lines(label, x, label_at);
            x += column + GUTTER;
        }
        rule_at
    }

    fn rule(&mut self, x: f32, y: f32, width: f32) {
        self.canvas.fill(Ink::Sun, "M0 0H1V1H0z", &Transform::new(width, 0., 0., RULE, x, y));
    }

    /// So that the text from its capitals to its last baseline has its middle at `y`.
    fn centred(&mut self, text: &Setting, x: f32, y: f32) {
        self.lines(text, x, y - text.height() / 2. + text.size * CAPITAL / EM);
    }

    /// With the first line standing at `y`.
    fn lines(&mut self, text: &Setting, x: f32, mut y: f32) {
        let scale = text.size / EM;
        for line in &text.lines {
            let (glyphs, _) = self.face.placed(line);
            // Ink begins at the margin: large letters would seem to be set in otherwise.
            let x = x - glyphs.first().map_or(0., |(glyph, ..)| self.face.bearing(*glyph)) * scale;
            for (glyph, ink, at) in glyphs {
                let outline = self.face.outline(glyph).unwrap_or_default();
                self.canvas.fill(ink, &outline, &Transform::new(scale, 0., 0., -scale, x + at * scale, y.round()));
            }
            y += text.size * text.leading;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::canvas::HEIGHT;
    use super::*;

    const PLAIN: Card<'_> = Card {
        name: "Consumer Union",
        headline: "Alone you ask. Together we bargain.",
        figures: &[],
        deep: [0x0a, 0x4d, 0x3f],
        sun: [0xf2, 0xb5, 0x3c],
        on_deep: [0xfd, 0xf8, 0xec],
    };

    fn figures() -> [(String, String); 2] {
        [("$9,350", "estimated savings a year"), ("12,345 members", "already in")].map(|(a, b)| (a.into(), b.into()))
    }

    /// Some that nobody would put on a card, and some that are only long.
    fn texts() -> Vec<String> {
        let mut texts = [
            "",
            "\0\n\r\n\t \u{a0}",
            "👩‍👩‍👧 消费者联盟 اتحاد المستهلكين",
            "\u{202e}noinU\u{202c} a\0b\nc\u{301}\u{200d}\u{ad}\u{feff}\u{10ffff}",
            "The United Consumers of the Greater Sacramento Valley and Bay",
            "Łódź · Õ → “Żółć”",
        ]
        .map(str::to_owned)
        .to_vec();
        let long = [("W", 200), ("W ", 100), ("i", 200), ("i ", 3000), ("É\n", 100), ("Wide words ", 18)];
        texts.extend(long.map(|(part, times)| part.repeat(times)));
        texts
    }

    #[test]
    fn every_text_makes_a_card_with_nothing_near_its_edges() {
        let check = |card: &Card<'_>| {
            let png = super::card(card);
            assert!(png.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x04\xb0\0\0\x02\x76\x04\x03"), "{card:?}");
            assert!(png.len() < 40_000, "{} bytes: {card:?}", png.len());
            let at = png.windows(4).position(|name| name == b"IDAT").unwrap();
            let rows = miniz_oxide::inflate::decompress_to_vec_zlib(&png[at + 4..]).unwrap();
            assert_eq!(rows.len(), (1 + usize::from(WIDTH) / 2) * usize::from(HEIGHT));
            for (y, row) in rows.chunks(1 + usize::from(WIDTH) / 2).enumerate() {
                let edges = if (60..570).contains(&y) { &[&row[1..=30], &row[571..]][..] } else { &[&row[1..]][..] };
                let mut pixels = edges.iter().copied().flatten().flat_map(|two| [two >> 4, two & 15]);
                assert!(pixels.all(|pixel| pixel <= 2), "in row {y}: {card:?}");
            }
        };
        let usual = figures();
        check(&Card { figures: &usual, ..PLAIN });
        for text in texts() {
            let odd = [(text.clone(), text.clone()), usual[1].clone(), usual[0].clone()];
            check(&Card { name: &text, headline: &text, figures: &odd, ..PLAIN });
        }
    }

    #[test]
    fn a_card_shows_what_it_is_given_and_nothing_else() {
        let (figures, plain) = (figures(), card(&PLAIN));
        assert_eq!(plain, card(&PLAIN));
        for other in [
            Card { name: "Consumers’ Union", ..PLAIN },
            Card { headline: "Alone you ask.", ..PLAIN },
            Card { figures: &figures, ..PLAIN },
            Card { figures: &figures[..1], ..PLAIN },
            Card { deep: [0; 3], ..PLAIN },
            Card { sun: [0; 3], ..PLAIN },
            Card { on_deep: [0; 3], ..PLAIN },
        ] {
            assert_ne!(plain, card(&other), "{other:?}");
        }
        let nameless = card(&Card { name: "", ..PLAIN });
        assert_eq!(nameless, card(&Card { name: "消费者 🙂\0", ..PLAIN }), "what the typeface lacks is left out");
        assert_eq!(plain, card(&Card { name: " Consumer\n🙂 Union\0", ..PLAIN }));
    }

    #[test]
    fn what_is_too_long_ends_in_a_sign_that_there_was_more() {
        let face = Typeface::of(HEADING).unwrap();
        let more = face.glyph('…');
        for (text, lines) in [("W".repeat(200), 1), ("Wide words ".repeat(18), 2)] {
            let name = NAME.set(&face, &face.words(&text, Ink::Text), (900., SIDE));
            assert_eq!(name.lines.len(), lines, "{text}");
            assert_eq!(name.lines.last().and_then(|line| line.last()?.glyphs.last().copied()), more, "{text}");
        }
        let headline = HEADLINE.set(&face, &face.words(PLAIN.headline, Ink::Text), (1040., 200.));
        let words: Vec<_> = headline.lines.iter().map(Vec::len).collect();
        assert_eq!(words, [3, 3], "lines are of much the same length");
    }
}
