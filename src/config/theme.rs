//! The theme file: colors and logo of the public pages.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::domain::union::theme::{Color, Logo, Theme};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThemeFile {
    main: Option<String>,
    highlight: Option<String>,
    logo: Option<PathBuf>,
}

/// The look that a file describes; ours where there is none, and for what it leaves out.
pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Theme> {
    let Some(path) = path else { return Ok(Theme::default()) };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the theme {}, which --theme or UNIONHALL_THEME names", path.display()))?;
    parse(&text, path.parent().unwrap_or(Path::new("")))
        .with_context(|| format!("the theme {} has a mistake", path.display()))
}

fn parse(text: &str, folder: &Path) -> anyhow::Result<Theme> {
    let file: ThemeFile = toml::from_str(text).map_err(|error| anyhow::anyhow!(error.message().replace('\n', " ")))?;
    let default = Theme::default();
    let mut wrong = Vec::new();
    let mut color = |name: &str, given: Option<String>, default: Color| {
        let Some(given) = given else { return default };
        Color::parse(&given).unwrap_or_else(|| {
            wrong.push(format!("{name} = \"{given}\" is no colour; write six digits such as \"{default}\""));
            default
        })
    };
    let main = color("main", file.main, default.main);
    let highlight = color("highlight", file.highlight, default.highlight);
    let logo = match file.logo.map(|logo| read_logo(&folder.join(logo))).transpose() {
        Ok(logo) => logo,
        Err(error) => {
            wrong.push(format!("{error:#}"));
            None
        }
    };
    match Theme::new(main, highlight, logo) {
        Ok(theme) if wrong.is_empty() => Ok(theme),
        made => {
            wrong.extend(made.err().into_iter().flatten().map(|why| why.to_string()));
            bail!("{}", wrong.join("\n"))
        }
    }
}

fn read_logo(path: &Path) -> anyhow::Result<Logo> {
    let bytes = std::fs::read(path).with_context(|| format!("logo: cannot read {}", path.display()))?;
    if bytes.len() > Logo::LARGEST {
        bail!("logo: {} has {} KB; {} are the most", path.display(), bytes.len() >> 10, Logo::LARGEST >> 10);
    }
    Logo::new(bytes).with_context(|| format!("logo: {} is neither a PNG nor an SVG", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_mistakes_are_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let theme = parse("main = \"#202060\"\nhighlight = \"#ffd080\"", folder.path()).unwrap();
        assert!(theme.css().contains("--deep:#202060"));
        let text = "main = \"blue\"\nhighlight = \"#101010\"\nlogo = \"none.svg\"";
        let told = format!("{:#}", parse(text, folder.path()).unwrap_err());
        for part in ["main = \"blue\" is no colour", "too dark", "logo: cannot read"] {
            assert!(told.contains(part), "{part} in {told}");
        }
        std::fs::write(folder.path().join("logo.gif"), b"GIF89a").unwrap();
        let told = format!("{:#}", parse("logo = \"logo.gif\"", folder.path()).unwrap_err());
        assert!(told.contains("neither a PNG nor an SVG"), "{told}");
        assert!(format!("{:#}", parse("colour = 1", folder.path()).unwrap_err()).contains("colour"));
    }
}
