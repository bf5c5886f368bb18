//! Text broken into lines, as large as its place allows.

use super::canvas::Ink;
use super::face::{CAPITAL, EM, Glyph, Typeface};

#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) glyphs: Vec<Glyph>,
    pub(super) ink: Ink,
}

/// How a kind of text is set.
pub(super) struct Style {
    /// In how many lines at the most, and at which size: the best first, and the last for whatever does not fit.
    pub(super) ways: &'static [(usize, f32)],
    /// From line to line, in sizes.
    pub(super) leading: f32,
}

pub(super) struct Setting {
    pub(super) size: f32,
    pub(super) leading: f32,
    pub(super) lines: Vec<Vec<Word>>,
}

impl Setting {
    /// From the capitals of the first line to the baseline of the last.
    pub(super) fn height(&self) -> f32 {
        let further = self.lines.iter().skip(1).map(|_| self.leading).sum::<f32>();
        if self.lines.is_empty() { 0. } else { self.size * (CAPITAL / EM + further) }
    }
}

impl Style {
    /// The text at the best size that it fits at; at the smallest it is cut.
    pub(super) fn set(&self, face: &Typeface<'_>, words: &[Word], (width, height): (f32, f32)) -> Setting {
        let mut set = Setting { size: 0., leading: self.leading, lines: Vec::new() };
        let mut most = 0;
        for way in self.ways {
            (most, set.size) = *way;
            let room = width * EM / set.size;
            set.lines = face.broken(words, room);
            let is_narrow = set.lines.iter().all(|line| face.width(line) <= room);
            if is_narrow && set.lines.len() <= most && set.height() <= height {
                set.lines = face.balanced(words, room);
                return set;
            }
        }
        let room = width * EM / set.size;
        let is_cut = set.lines.len() > most;
        set.lines.truncate(most);
        for (i, line) in set.lines.iter_mut().enumerate() {
            if is_cut && i + 1 == most || face.width(line) > room {
                face.cut(line, room);
            }
        }
        set
    }
}

/// Lengths are in the typeface's units.
impl Typeface<'_> {
    /// Control characters and whatever else the typeface lacks is left out, and a word of nothing else with it.
    pub(super) fn words(&self, text: &str, ink: Ink) -> Vec<Word> {
        // No more than could be seen, so that the time it takes has a bound.
        const LONGEST: usize = 300;
        let text: String = text.chars().take(LONGEST).collect();
        text.split_whitespace()
            .map(|word| Word { glyphs: word.chars().filter_map(|character| self.glyph(character)).collect(), ink })
            .filter(|word| !word.glyphs.is_empty())
            .collect()
    }

    /// A line's glyphs with where each begins, and where the last ends.
    pub(super) fn placed(&self, line: &[Word]) -> (Vec<(Glyph, Ink, f32)>, f32) {
        let mut placed: Vec<(Glyph, Ink, f32)> = Vec::new();
        let mut end = 0.;
        for word in line {
            let space = self.glyph(' ').filter(|_| !placed.is_empty());
            for glyph in space.iter().chain(&word.glyphs) {
                end += placed.last().map_or(0., |(before, ..)| self.kern(*before, *glyph));
                placed.push((*glyph, word.ink, end));
                end += self.advance(*glyph);
            }
        }
        (placed, end)
    }

    fn width(&self, line: &[Word]) -> f32 {
        self.placed(line).1
    }

    /// As many words to a line as fit; a word that is too wide has a line of its own.
    fn broken(&self, words: &[Word], room: f32) -> Vec<Vec<Word>> {
        let mut lines: Vec<Vec<Word>> = Vec::new();
        for word in words {
            if let Some(line) = lines.last_mut() {
                line.push(word.clone());
                if self.width(line) <= room {
                    continue;
                }
                line.pop();
            }
            lines.push(vec![word.clone()]);
        }
        lines
    }

    /// In no more lines than it takes, none much longer than the others: nobody wants one word on the last.
    fn balanced(&self, words: &[Word], room: f32) -> Vec<Vec<Word>> {
        let mut lines = self.broken(words, room);
        let mut narrower = room;
        while narrower > room / 4. {
            narrower *= 0.97;
            let next = self.broken(words, narrower);
            if next.len() > lines.len() || next.iter().any(|line| self.width(line) > narrower) {
                break;
            }
            lines = next;
        }
        lines
    }

    /// Takes glyphs off the end until there is room for the sign that there were more.
    fn cut(&self, line: &mut Vec<Word>, room: f32) {
        let Some(more) = self.glyph('…') else { return };
        while let Some(word) = line.last_mut() {
            word.glyphs.push(more);
            if self.width(line) <= room {
                return;
            }
            if let Some(word) = line.last_mut() {
                word.glyphs.truncate(word.glyphs.len().saturating_sub(2));
            }
            line.pop_if(|word| word.glyphs.is_empty());
        }
    }
}
