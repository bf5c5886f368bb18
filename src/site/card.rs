//! `/card.png`: the picture that a shared link shows in chats (Open Graph). The operator's own, or one of ours with the union's name on
//! it. templates/card says how these are made.

use bytes::Bytes;
use hyper::Request;
use hyper::header::{CACHE_CONTROL, HeaderValue};

use super::branding::Branding;
use super::{PageResult, Visit};
use crate::domain::language::Language;
use crate::http::request::body::SentBody;
use crate::http::response::etag::Document;

/// Chats keep it for everybody; who asks again an hour later sees a new one.
const CACHED: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// One picture for each language.
pub struct Cards([Document; Language::ALL.len()]);

/// Where the name stands in a picture of ours: rows that are empty in it, and from where to where in them.
const NAME_TOP: usize = 480;
const NAME_ROWS: usize = 60;
const NAME_LEFT: usize = 80;
const NAME_RIGHT: usize = 1120;
const WIDTH: usize = Branding::CARD_SIZE.0 as usize;
const HEIGHT: usize = Branding::CARD_SIZE.1 as usize;
/// Two pixels to a byte, and how the row is filtered: not at all.
const ROW_BYTES: usize = 1 + WIDTH / 2;

impl Cards {
    pub(super) fn new(branding: &Branding, name: &str) -> Self {
        let document = |language| {
            let ours = || {
                let plain = default_picture(language);
                named(plain, name).map_or(Bytes::from_static(plain), Bytes::from)
            };
            let picture = branding.card.clone().unwrap_or_else(ours);
            Document::new("image/png", picture).with(CACHE_CONTROL, CACHED)
        };
        Self(Language::ALL.map(document))
    }
}

fn default_picture(language: Language) -> &'static [u8] {
    match language {
        Language::English => include_bytes!("../../templates/card/en.png"),
        Language::Spanish => include_bytes!("../../templates/card/es.png"),
    }
}

/// A picture of ours with a name on it; none where the name is too long, or has a letter that we cannot draw.
fn named(picture: &[u8], name: &str) -> Option<Vec<u8>> {
    let band = name_rows(name)?;
    let (signature, mut rest) = picture.split_at_checked(8)?;
    let (mut made, mut pieces) = (signature.to_vec(), 0);
    while let Some((length, chunk)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let (kind, after) = chunk.split_at_checked(4)?;
        let (data, after) = after.split_at_checked(length)?;
        rest = after.get(4..)?;
        pieces += usize::from(kind == b"IDAT");
        let data = match (kind, pieces) {
            (b"IDAT", 2) => stored(&band)?,
            (b"IDAT", 3) => {
                let (packed, sum) = data.split_last_chunk()?;
                [packed, &checksum_with(u32::from_be_bytes(*sum), &band).to_be_bytes()].concat()
            }
            _ => data.to_vec(),
        };
        made.extend(u32::try_from(data.len()).ok()?.to_be_bytes());
        let body = [kind, &data].concat();
        made.extend_from_slice(&body);
        made.extend(crc32fast::hash(&body).to_be_bytes());
    }
    Some(made)
}

/// The rows with the name in them, as a PNG has them before it is packed.
fn name_rows(name: &str) -> Option<Vec<u8>> {
    let mut pixels = vec![0_u8; WIDTH * NAME_ROWS];
    let mut left = NAME_LEFT;
    for letter in name.chars() {
        let (width, runs) = drawn(letter)?;
        if left + width > NAME_RIGHT {
            return None;
        }
        let shades = runs.iter().flat_map(|run| std::iter::repeat_n(run >> 5, usize::from(run & 31) + 1));
        for (at, shade) in shades.enumerate() {
            if let Some(pixel) = pixels.get_mut(at / width * WIDTH + left + at % width) {
                *pixel = shade;
            }
        }
        left += width;
    }
    let packed = |row: &[u8]| {
        let pairs = row.chunks_exact(2).map(|pair| (pair[0] << 4) | pair[1]);
        std::iter::once(0).chain(pairs).collect::<Vec<_>>()
    };
    Some(pixels.chunks_exact(WIDTH).flat_map(packed).collect())
}

/// How wide a letter is, and its runs of one shade.
fn drawn(letter: char) -> Option<(usize, &'static [u8])> {
    let mut rest: &[u8] = include_bytes!("../../templates/card/letters.bin");
    while let Some(([high, low, width, length @ ..], after)) = rest.split_first_chunk::<5>() {
        let (runs, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
        if u32::from(letter) == u32::from(u16::from_be_bytes([*high, *low])) {
            return Some((usize::from(*width), runs));
        }
        rest = after;
    }
    None
}

/// As a block of a packed stream (deflate) that is not packed.
fn stored(data: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(data.len()).ok()?;
    Some([&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes(), data].concat())
}

/// The checksum of all rows (Adler-32) once the empty ones hold these bytes.
fn checksum_with(empty: u32, band: &[u8]) -> u32 {
    const PRIME: u64 = 65_521;
    let (mut sum, mut sums) = (u64::from(empty & 0xffff), u64::from(empty >> 16));
    for (byte, to_the_end) in band.iter().zip((0..=(HEIGHT - NAME_TOP) * ROW_BYTES).rev()) {
        sum += u64::from(*byte);
        sums += u64::from(*byte) * to_the_end as u64;
    }
    (((sums % PRIME) << 16) | (sum % PRIME)) as u32
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    // By its address alone, not by cookie or browser: shared caches keep it for everybody.
    let language = visit.reader.asked().unwrap_or_default();
    Ok(visit.site.cards.0[language as usize].answer(request.headers()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_drawn_where_it_fits_and_all_else_stays() {
        for language in Language::ALL {
            let plain = default_picture(language);
            let with = |name: &str| named(plain, name);
            let (ana, spanish) = (with("Ana & Co").unwrap(), with("¡Unión de Los Ángeles!").unwrap());
            assert!(ana != spanish && ana.len() == spanish.len() && ana.len() < Branding::LARGEST_CARD);
            let first_piece = plain.windows(4).rposition(|kind| kind == b"IDAT").unwrap() / 2;
            assert_eq!(ana[..first_piece], plain[..first_piece]);
            // Without a name, it is the same picture.
            assert!(name_rows("").unwrap().iter().all(|byte| *byte == 0));
            assert!(name_rows("a").unwrap().iter().any(|byte| *byte != 0));
            for left_out in ["Ψ", "Union 🦀", "a\u{0}b", &"W".repeat(40), &"i".repeat(10_000)] {
                assert!(with(left_out).is_none(), "{left_out}");
            }
            for letters in 1..200 {
                with(&"m".repeat(letters));
            }
        }
    }
}
