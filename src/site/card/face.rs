//! The typeface of the headings, as far as a card needs it: glyphs, widths, kerning and outlines.
//!
//! It reads one file, which `templates/font/subset.py` makes and keeps plain, and so it is shorter than it would be for others.
//! `ab_glyph` and `fontdue` stand on `ttf-parser`, which nobody maintains any more (RUSTSEC-2026-0192), and `skrifa`
//! takes more than a minute to build. Nothing here trusts the file: what is not where it should be is not there.

use zeno::{Command, Point};

/// How many units an em has: all lengths here are in them.
pub(super) const EM: f32 = 1000.;
/// How high a capital letter is.
pub(super) const CAPITAL: f32 = 650.;

/// A glyph's number in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glyph(u16);

pub(super) struct Typeface<'a> {
    /// Runs of characters with the number of the first one's glyph.
    characters: &'a [[u8; 12]],
    /// Pairs of glyphs in order, with what to add between the two.
    pairs: &'a [[u8; 6]],
    /// Widths with the space on the left.
    metrics: &'a [[u8; 4]],
    /// Where outlines begin, in steps of two bytes; each ends where the next begins.
    places: &'a [[u8; 2]],
    outlines: &'a [u8],
}

impl<'a> Typeface<'a> {
    pub(super) fn of(file: &'a [u8]) -> Option<Self> {
        let header_of_kern = 4 + 6 + 8;
        // One map alone, with its own header.
        let header_of_cmap = 12 + 16;
        let wide = usize::from(u16_at(table(file, b"hhea")?, 34)?);
        Some(Self {
            characters: table(file, b"cmap")?.get(header_of_cmap..)?.as_chunks().0,
            pairs: table(file, b"kern")?.get(header_of_kern..)?.as_chunks().0,
            metrics: table(file, b"hmtx")?.as_chunks().0.get(..wide)?,
            places: table(file, b"loca")?.as_chunks().0,
            outlines: table(file, b"glyf")?,
        })
    }

    /// None for a character that the typeface lacks.
    pub(super) fn glyph(&self, character: char) -> Option<Glyph> {
        let code = u32::from(character);
        self.characters.iter().find_map(|run| {
            let (first, last, glyph) = (u32_at(run, 0)?, u32_at(run, 4)?, u32_at(run, 8)?);
            let number = (first..=last).contains(&code).then(|| glyph + (code - first))?;
            u16::try_from(number).ok().map(Glyph)
        })
    }

    pub(super) fn advance(&self, glyph: Glyph) -> f32 {
        // Those at the end that are as wide as the last are left out.
        let metric = self.metrics.get(usize::from(glyph.0)).or(self.metrics.last());
        metric.and_then(|metric| u16_at(metric, 0)).map_or(0., f32::from)
    }

    /// What to add between the two for them to stand well together: mostly less than nothing.
    pub(super) fn kern(&self, first: Glyph, second: Glyph) -> f32 {
        let key = u32::from(first.0) << 16 | u32::from(second.0);
        let found = self.pairs.binary_search_by_key(&Some(key), |pair| u32_at(pair, 0));
        found.ok().and_then(|at| i16_at(self.pairs.get(at)?, 4)).map_or(0., f32::from)
    }

    /// How far right of its origin the ink of a glyph begins.
    pub(super) fn bearing(&self, glyph: Glyph) -> f32 {
        self.data(glyph).and_then(|data| i16_at(data, 2)).map_or(0., f32::from)
    }

    /// The outline with its origin on the baseline, where y grows upwards. None for a space.
    pub(super) fn outline(&self, glyph: Glyph) -> Option<Vec<Command>> {
        const ON_CURVE: u8 = 0x01;
        const REPEATED: u8 = 0x08;
        const X: (u8, u8) = (0x02, 0x10);
        const Y: (u8, u8) = (0x04, 0x20);
        let data = self.data(glyph)?;
        // One made of others would have fewer than none; the file has none such.
        let contours = usize::try_from(i16_at(data, 0)?).ok()?;
        let ends: Vec<_> = (0..contours).map(|i| u16_at(data, 10 + 2 * i).map(usize::from)).collect::<Option<_>>()?;
        let instructions = usize::from(u16_at(data, 10 + 2 * contours)?);
        let mut bytes = data.get(12 + 2 * contours + instructions..)?.iter().copied();
        let count = ends.last()? + 1;
        let mut flags = Vec::with_capacity(count);
        while flags.len() < count {
            let flag = bytes.next()?;
            let times = if flag & REPEATED == 0 { 0 } else { bytes.next()? };
            flags.extend(std::iter::repeat_n(flag, 1 + usize::from(times)));
        }
        let xs = coordinates(&flags, X, &mut bytes)?;
        let ys = coordinates(&flags, Y, &mut bytes)?;
        let points: Vec<_> = flags
            .iter()
            .zip(xs.into_iter().zip(ys))
            .map(|(flag, at)| (flag & ON_CURVE != 0, Point::from(at)))
            .collect();
        let mut path = Vec::with_capacity(count + 2 * contours);
        let mut start = 0;
        for end in ends {
            trace(points.get(start..=end)?, &mut path)?;
            start = end + 1;
        }
        Some(path)
    }

    fn data(&self, glyph: Glyph) -> Option<&'a [u8]> {
        let place = |at: usize| self.places.get(at).map(|place| 2 * usize::from(u16::from_be_bytes(*place)));
        let at = usize::from(glyph.0);
        self.outlines.get(place(at)?..place(at + 1)?)
    }
}

/// Each is told as its distance from the one before: in a byte whose sign is in the flag, in two bytes, or, where
/// there is none, not at all.
fn coordinates(flags: &[u8], (short, other): (u8, u8), bytes: &mut impl Iterator<Item = u8>) -> Option<Vec<f32>> {
    let mut at = 0.;
    let step = |flag: &u8| {
        at += match (flag & short != 0, flag & other != 0) {
            (true, true) => f32::from(bytes.next()?),
            (true, false) => -f32::from(bytes.next()?),
            (false, true) => 0.,
            (false, false) => f32::from(i16::from_be_bytes([bytes.next()?, bytes.next()?])),
        };
        Some(at)
    };
    flags.iter().map(step).collect()
}

/// Adds a closed contour. Between two points off the curve there is one on it, midway, that the file leaves out.
fn trace(points: &[(bool, Point)], path: &mut Vec<Command>) -> Option<()> {
    // Every contour of the file begins on the curve.
    let (first, rest) = points.split_first()?;
    path.push(Command::MoveTo(first.1));
    let mut control: Option<Point> = None;
    for &(on_curve, point) in rest.iter().chain([first]) {
        match (control, on_curve) {
            (None, true) => path.push(Command::LineTo(point)),
            (Some(bend), true) => path.push(Command::QuadTo(bend, point)),
            (Some(bend), false) => path.push(Command::QuadTo(bend, (bend + point) * 0.5)),
            (None, false) => {}
        }
        control = (!on_curve).then_some(point);
    }
    path.push(Command::Close);
    Some(())
}

fn table<'a>(file: &'a [u8], tag: &[u8; 4]) -> Option<&'a [u8]> {
    let (entries, _) = file.get(12..)?.as_chunks::<16>();
    let entry = entries.iter().take(u16_at(file, 4)?.into()).find(|entry| entry.starts_with(tag))?;
    let at = |place| usize::try_from(u32_at(entry, place)?).ok();
    file.get(at(8)?..)?.get(..at(12)?)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

fn i16_at(bytes: &[u8], at: usize) -> Option<i16> {
    bytes.get(at..)?.first_chunk().copied().map(i16::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::picture::HEADING;
    use super::*;

    #[test]
    fn every_outline_is_as_large_as_the_file_says() {
        let face = Typeface::of(HEADING).unwrap();
        let mut seen = 0;
        for glyph in
            ('!'..='\u{ffff}').filter(|character| *character != '\u{a0}').filter_map(|character| face.glyph(character))
        {
            let points = face.outline(glyph).unwrap().into_iter().flat_map(|command| match command {
                Command::MoveTo(end) | Command::LineTo(end) => vec![end],
                Command::QuadTo(bend, end) => vec![bend, end],
                Command::CurveTo(..) | Command::Close => Vec::new(),
            });
            let start = (f32::MAX, f32::MAX, f32::MIN, f32::MIN);
            let bounds = points.fold(start, |b, p| (b.0.min(p.x), b.1.min(p.y), b.2.max(p.x), b.3.max(p.y)));
            let told = |at| i16_at(face.data(glyph).unwrap(), at).map_or(0., f32::from);
            assert_eq!(bounds, (told(2), told(4), told(6), told(8)), "{glyph:?}");
            assert!(face.advance(glyph) > 0., "{glyph:?}");
            seen += 1;
        }
        assert!(seen > 320, "{seen}");
    }

    #[test]
    fn letters_are_kerned_and_what_is_lacking_is_told() {
        let face = Typeface::of(HEADING).unwrap();
        let [a, v, n] = ['A', 'V', 'n'].map(|letter| face.glyph(letter).unwrap());
        assert_eq!(face.kern(a, v), -86.);
        assert_eq!(face.kern(n, n), 0.);
        assert!("ñÑ¿¡«»·áÉőŁžŸ‘’“”–—•…€→←$0123456789".chars().all(|character| face.glyph(character).is_some()));
        assert!("\0\n\u{ad}\u{301}消א🙂".chars().all(|character| face.glyph(character).is_none()));
    }

    #[test]
    fn a_broken_file_is_no_face_or_a_poor_one() {
        for length in 0..HEADING.len().min(400) {
            assert!(Typeface::of(&HEADING[..length]).is_none(), "{length}");
        }
        let mut file = HEADING.to_vec();
        for at in (0..file.len()).step_by(97) {
            file[at] = !file[at];
        }
        file[..300].copy_from_slice(&HEADING[..300]);
        let face = Typeface::of(&file);
        for character in 'A'..='ÿ' {
            let _ = face.as_ref().and_then(|face| face.outline(face.glyph(character)?));
        }
    }
}
