//! What a card is drawn on: shapes in a few inks, and the file that they end in.

use zeno::{Command, Mask, PathData, Transform};

pub(super) const WIDTH: u16 = 1200;
pub(super) const HEIGHT: u16 = 630;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// Hardly lighter than the ground, and behind all.
    Faint,
    /// The text's colour, dimmed.
    Soft,
    Text,
    Sun,
}

/// In how many steps an edge goes from the ground to a colour. With two colours, two steps for what is faint, and the
/// ground there are no more than 16, so that a pixel takes half a byte. Nobody sees a finer edge.
const STEPS: u8 = 6;
const FAINT_STEPS: u8 = 2;
/// How much of the text's colour each of the faint steps has, in 255ths.
const FAINT: u8 = 9;

/// Shapes by ink: they are filled all at once, at the end.
#[derive(Default)]
pub(super) struct Canvas {
    faint: Vec<Command>,
    soft: Vec<Command>,
    text: Vec<Command>,
    sun: Vec<Command>,
}

impl Canvas {
    pub(super) fn fill(&mut self, ink: Ink, shape: impl PathData, placed: &Transform) {
        let path = match ink {
            Ink::Faint => &mut self.faint,
            Ink::Soft => &mut self.soft,
            Ink::Text => &mut self.text,
            Ink::Sun => &mut self.sun,
        };
        path.extend(shape.commands().map(|command| command.transform(placed)));
    }

    pub(super) fn png(&self, ground: [u8; 3], text: [u8; 3], sun: [u8; 3]) -> Vec<u8> {
        const BITS: u8 = 4;
        const PALETTE: u8 = 3;
        let mut colours = ground.to_vec();
        colours.extend((1..=FAINT_STEPS).flat_map(|step| mixed(ground, text, step * FAINT)));
        for ink in [text, sun] {
            colours.extend((1..=STEPS).flat_map(|step| mixed(ground, ink, scaled(step, STEPS, u8::MAX))));
        }
        let mut header = [u32::from(WIDTH).to_be_bytes(), u32::from(HEIGHT).to_be_bytes()].concat();
        header.extend([BITS, PALETTE, 0, 0, 0]);
        // A harder try makes the file smaller by a fiftieth and takes half as long again.
        let pixels = miniz_oxide::deflate::compress_to_vec_zlib(&self.rows(), 9);
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (name, data) in [(b"IHDR", header), (b"PLTE", colours), (b"IDAT", pixels), (b"IEND", Vec::new())] {
            chunk(&mut file, name, &data);
        }
        file
    }

    /// Each pixel's colour, by its place among the colours: row by row, as PNG wants them before they are compressed.
    fn rows(&self) -> Vec<u8> {
        // No filter: of a picture with few colours each of them makes the file larger.
        const FILTER: u8 = 0;
        let width = usize::from(WIDTH);
        let [faint, soft, text, sun] = [&self.faint, &self.soft, &self.text, &self.sun].map(covered);
        let inks = faint.iter().zip(soft).zip(text).zip(sun);
        let pixels: Vec<u8> = inks
            .map(|(((faint, soft), text), sun)| {
                // Most of a card is its ground.
                if faint | soft | text | sun == 0 {
                    return 0;
                }
                let text = scaled(text, u8::MAX, STEPS).max(scaled(soft, u8::MAX, STEPS - 1));
                match (scaled(sun, u8::MAX, STEPS), text) {
                    (0, 0) => scaled(*faint, u8::MAX, FAINT_STEPS),
                    (0, text) => FAINT_STEPS + text,
                    (sun, _) => FAINT_STEPS + STEPS + sun,
                }
            })
            .collect();
        let mut rows = Vec::with_capacity((1 + width / 2) * usize::from(HEIGHT));
        for row in pixels.chunks_exact(width) {
            rows.push(FILTER);
            rows.extend(row.as_chunks().0.iter().map(|[left, right]| left << 4 | right));
        }
        rows
    }
}

/// How much of each pixel a shape covers, in 255ths.
fn covered(path: &Vec<Command>) -> Vec<u8> {
    Mask::new(path).size(WIDTH.into(), HEIGHT.into()).render().0
}

/// A value from none to `of`, as one from none to `to`.
fn scaled(value: u8, of: u8, to: u8) -> u8 {
    let [low, _] = ((u16::from(value) * u16::from(to) + u16::from(of / 2)) / u16::from(of)).to_le_bytes();
    low
}

/// So many 255ths of the way from one colour to another.
fn mixed(from: [u8; 3], to: [u8; 3], part: u8) -> [u8; 3] {
    std::array::from_fn(|i| {
        let sum = u16::from(from[i]) * u16::from(u8::MAX - part) + u16::from(to[i]) * u16::from(part);
        let [low, _] = (sum / u16::from(u8::MAX)).to_le_bytes();
        low
    })
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) {
    // A picture of this size cannot be as long as that number allows.
    file.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    let start = file.len();
    file.extend_from_slice(name);
    file.extend_from_slice(data);
    file.extend(crc32fast::hash(&file[start..]).to_be_bytes());
}
