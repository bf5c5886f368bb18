//! The folder with the operator's own texts for the public pages.

use std::path::Path;

use anyhow::{Context, bail};

use super::read_text;
use crate::domain::language::Language;
use crate::site::own_text::{OwnTexts, PolicyPage};

/// The texts of a folder; none where there is no folder. A file that no page would show is a mistake, and is named.
pub(super) fn own_texts(folder: Option<&Path>) -> anyhow::Result<OwnTexts> {
    let Some(folder) = folder else { return Ok(OwnTexts::default()) };
    let read = || -> anyhow::Result<OwnTexts> {
        let mut texts = OwnTexts::default();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        // English first: it is what is shown where there is no text in the reader's language.
        names.sort_by_key(|name| (named(name).is_none_or(|(_, language)| language != Language::English), name.clone()));
        for name in names.iter().filter(|name| name.ends_with(".md")) {
            let (page, language) = named(name).with_context(|| {
                let pages = PolicyPage::ALL.map(|page| format!("{}.md", page.name())).join(", ");
                let codes = Language::ALL.map(Language::code).join(", ");
                format!(
                    "{name} is shown nowhere; the texts are {pages}, or with a language ({codes}) as in about.es.md"
                )
            })?;
            let text = read_text(&folder.join(name)).with_context(|| format!("cannot read {name}"))?;
            if text.len() > OwnTexts::LARGEST {
                bail!("{name} has {} KB; {} are the most", text.len() >> 10, OwnTexts::LARGEST >> 10);
            }
            if texts.find(page, language).is_some_and(|(known, _)| known == language) {
                bail!("{name} is the second text of the same page and language; keep one of them");
            }
            texts.add(page, language, &text);
        }
        Ok(texts)
    };
    read().with_context(|| {
        format!("cannot read the texts in {}, which --pages or UNIONHALL_PAGES names", folder.display())
    })
}

/// `privacy.md` is the English text, `privacy.es.md` the Spanish one.
fn named(file: &str) -> Option<(PolicyPage, Language)> {
    let stem = file.strip_suffix(".md")?;
    let (name, language) = match stem.split_once('.') {
        Some((name, code)) => (name, Language::ALL.into_iter().find(|language| language.code() == code)?),
        None => (stem, Language::English),
    };
    PolicyPage::ALL.into_iter().find(|page| page.name() == name).map(|page| (page, language))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_texts_is_read_and_what_nobody_would_see_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("privacy.md", "Ours");
        write("privacy.es.md", "Lo nuestro");
        write("notes.txt", "not a text");
        let texts = own_texts(Some(folder.path())).unwrap();
        assert_eq!(texts.find(PolicyPage::Privacy, Language::Spanish).unwrap().1, "<p>Lo nuestro</p>\n");
        assert_eq!(texts.find(PolicyPage::Privacy, Language::English).unwrap().1, "<p>Ours</p>\n");
        assert!(texts.find(PolicyPage::Terms, Language::English).is_none());
        write("imprint.md", "x");
        let told = format!("{:#}", own_texts(Some(folder.path())).unwrap_err());
        assert!(told.contains("imprint.md is shown nowhere") && told.contains("about.md"), "{told}");
        assert!(own_texts(Some(&folder.path().join("none"))).is_err());
        assert!(own_texts(None).unwrap().find(PolicyPage::About, Language::English).is_none());
    }
}
