//! The theme file: colors and logo of the public pages.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bytes::Bytes;
use serde::Deserialize;

use super::read_text;
use crate::domain::text::toml_mistake;
use crate::domain::union::colors::{Color, Colors};
use crate::site::branding::{Branding, Logo};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    main: Option<String>,
    highlight: Option<String>,
    logo: Option<PathBuf>,
    card: Option<PathBuf>,
}

/// What the file says: the colors are of mails too, the pictures of the site alone.
#[derive(Debug, Default)]
pub(super) struct Theme {
    pub colors: Colors,
    pub logo: Option<Logo>,
    pub card: Option<Bytes>,
}

/// The look that a file describes; ours where there is none, and for what it leaves out.
pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Theme> {
    let Some(path) = path else { return Ok(Theme::default()) };
    let text = read_text(path)
        .with_context(|| format!("cannot read the theme {}, which --theme or UNIONHALL_THEME names", path.display()))?;
    parse(&text, path.parent().unwrap_or(Path::new("")))
        .with_context(|| format!("the theme {} has a mistake", path.display()))
}

fn parse(text: &str, folder: &Path) -> anyhow::Result<Theme> {
    let file: ThemeFile = toml::from_str(text).map_err(|error| anyhow::anyhow!(toml_mistake(text, &error)))?;
    let default = Colors::default();
    let mut wrong = Vec::new();
    let mut color = |name: &str, given: Option<String>, default: Color| {
        let Some(given) = given else { return default };
        Color::parse(&given).unwrap_or_else(|| {
            wrong.push(format!("{name} = \"{given}\" is not a color; write six digits such as \"{default}\""));
            default
        })
    };
    let main = color("main", file.main, default.main());
    let highlight = color("highlight", file.highlight, default.highlight());
    let logo = file.logo.and_then(|logo| kept(read_logo(&folder.join(logo)), &mut wrong));
    let card = file.card.and_then(|card| kept(read_card(&folder.join(card)), &mut wrong));
    match Colors::new(main, highlight) {
        Ok(colors) if wrong.is_empty() => Ok(Theme { colors, logo, card }),
        made => {
            wrong.extend(made.err().into_iter().flatten());
            bail!("{}", wrong.join("\n"))
        }
    }
}

/// What was read; a mistake is added to the others.
fn kept<T>(read: anyhow::Result<T>, wrong: &mut Vec<String>) -> Option<T> {
    read.map_err(|error| wrong.push(format!("{error:#}"))).ok()
}

fn read_card(path: &Path) -> anyhow::Result<Bytes> {
    let bytes = read_picture("card", path, Branding::LARGEST_CARD)?;
    let (width, height) = png_size(&bytes).with_context(|| format!("card: {} is not a PNG", path.display()))?;
    if (width, height) != Branding::CARD_SIZE {
        let (wanted_width, wanted_height) = Branding::CARD_SIZE;
        bail!("card: {} is {width} by {height} pixels; make it {wanted_width} by {wanted_height}", path.display());
    }
    Ok(bytes.into())
}

/// Width and height, as the first chunk of every PNG has them.
fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")?;
    let [[width, height], ..] = header.as_chunks::<4>().0.as_chunks::<2>().0 else { return None };
    Some((u32::from_be_bytes(*width), u32::from_be_bytes(*height)))
}

fn read_picture(name: &str, path: &Path, largest: usize) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("{name}: cannot read {}", path.display()))?;
    if bytes.len() > largest {
        bail!("{name}: {} has {} KB; {} are the most", path.display(), bytes.len() >> 10, largest >> 10);
    }
    Ok(bytes)
}

fn read_logo(path: &Path) -> anyhow::Result<Logo> {
    let bytes = read_picture("logo", path, Logo::LARGEST)?;
    Logo::new(bytes).with_context(|| format!("logo: {} is neither a PNG nor an SVG", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let theme = parse("main = \"#202060\"\nhighlight = \"#ffd080\"", folder.path()).unwrap();
        assert_eq!(theme.colors.main().to_string(), "#202060");
        let text = "main = \"blue\"\nhighlight = \"#101010\"\nlogo = \"none.svg\"";
        let told = format!("{:#}", parse(text, folder.path()).unwrap_err());
        for part in ["main = \"blue\" is not a color", "too dark", "logo: cannot read"] {
            assert!(told.contains(part), "{part} in {told}");
        }
        std::fs::write(folder.path().join("logo.gif"), b"GIF89a").unwrap();
        let told = format!("{:#}", parse("logo = \"logo.gif\"", folder.path()).unwrap_err());
        assert!(told.contains("neither a PNG nor an SVG"), "{told}");
        let png =
            |size: [u32; 2]| [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &size.map(u32::to_be_bytes).concat()].concat();
        for (picture, wrong) in [
            (b"GIF89a".to_vec(), "card.png is not a PNG"),
            (b"\x89PNG\r\n\x1a\n".to_vec(), "card.png is not a PNG"),
            (png([630, 1200]), "is 630 by 1200 pixels; make it 1200 by 630"),
            (vec![0; Branding::LARGEST_CARD + 1], "300 are the most"),
        ] {
            std::fs::write(folder.path().join("card.png"), picture).unwrap();
            let told = format!("{:#}", parse("card = \"card.png\"", folder.path()).unwrap_err());
            assert!(told.contains(wrong), "{wrong} in {told}");
        }
        std::fs::write(folder.path().join("card.png"), png([1200, 630])).unwrap();
        assert!(parse("card = \"card.png\"", folder.path()).unwrap().card.is_some());
        assert!(format!("{:#}", parse("paint = 1", folder.path()).unwrap_err()).contains("paint"));
    }
}
