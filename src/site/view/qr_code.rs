//! A QR code, as the path of an SVG.

use qrcode::canvas::{Canvas, MaskPattern};
use qrcode::{Color, EcLevel, QrResult, bits, ec};

/// Light squares that readers want around it.
const QUIET: usize = 4;

pub(in crate::site) struct QrCode {
    /// Squares on each side, those around it included.
    pub size: usize,
    /// The dark squares.
    pub path: String,
}

impl QrCode {
    /// The code of a link; none for one that is too long to be read off a screen.
    pub(in crate::site) fn of(link: &str) -> Option<Self> {
        let squares = squares(link).ok()?;
        let width = squares.len().isqrt();
        let mut path = String::new();
        for (y, row) in squares.chunks(width).enumerate() {
            let mut x = 0;
            while x < width {
                let run = row[x..].iter().take_while(|color| **color == row[x]).count();
                if row[x] == Color::Dark {
                    path.push_str(&format!("M{} {}h{run}v1h-{run}z", x + QUIET, y + QUIET));
                }
                x += run;
            }
        }
        Some(Self { size: width + 2 * QUIET, path })
    }
}

/// Light and dark, row by row. Always the same mask, which any reader takes: to choose the best of eight, as the crate does, costs
/// more than the rest of the page.
fn squares(link: &str) -> QrResult<Vec<Color>> {
    let bits = bits::encode_auto(link.as_bytes(), EcLevel::M)?;
    let version = bits.version();
    let (data, correction) = ec::construct_codewords(&bits.into_bytes(), version, EcLevel::M)?;
    let mut canvas = Canvas::new(version, EcLevel::M);
    canvas.draw_all_functional_patterns();
    canvas.draw_data(&data, &correction);
    canvas.apply_mask(MaskPattern::Checkerboard);
    Ok(canvas.into_colors())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_corners_and_room_around_it() {
        let code = QrCode::of("https://union.example/joinus0123456789ab").unwrap();
        assert_eq!(code.size, 29 + 8, "a link of 40 characters");
        assert!(code.path.starts_with("M4 4h7v1h-7z"), "{}", &code.path[..40]);
        assert!(QrCode::of(&"x".repeat(4000)).is_none());
    }
}
