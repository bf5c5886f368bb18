//! The pages of the project, held to its files: every path, name and link in them leads somewhere, and what people read is plain.

use unionhall::domain::webhook::EventKind;

use super::source::{Tree, read_tree, tokens, tree};
use crate::prelude::*;

/// Folders of the repository whose files the pages name.
const FOLDERS: &[&str] =
    &["bench", "build", "deploy", "docs", "examples", "fuzz", "languages", "migrations", "src", "templates", "tests"];

/// Pages for those who change the code: they name modules from `src` on, files by their name alone, and what is in the code.
const FOR_CONTRIBUTORS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Words in capitals that are SQL and no constants.
const SQL: &[&str] = &["WITH"];

/// The pages, and everything that they may name.
fn repository() -> (Tree, Tree) {
    let mut pages: Tree = ["README.md", "SECURITY.md", "deploy", "docs"].into_iter().flat_map(read_tree).collect();
    pages.extend(FOR_CONTRIBUTORS.iter().flat_map(|page| read_tree(page)));
    (pages, FOLDERS.iter().chain(&["build.rs"]).flat_map(|place| read_tree(place)).collect())
}

/// Whether there is such a file or folder.
fn is_there(files: &Tree, path: &str) -> bool {
    let folder = format!("{}/", path.trim_end_matches('/'));
    files.contains_key(path) || files.keys().any(|file| file.starts_with(&folder))
}

/// Paths that a page names and nobody finds.
fn missing_paths(pages: &Tree, files: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for (page, text) in pages {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./*$".contains(c);
        let words = text.split(|c| !is_path(c)).map(|word| word.trim_end_matches('.'));
        for word in words.filter(|word| !word.contains(['*', '$'])) {
            let first = word.split_once('/').map(|(first, _)| first).filter(|first| !first.is_empty());
            let contributors = FOR_CONTRIBUTORS.contains(&page.as_str());
            let in_src = contributors && first.is_some_and(|first| is_there(files, &format!("src/{first}")));
            let missing = if first.is_some_and(|first| FOLDERS.contains(&first)) {
                !(is_there(files, word) || in_src && is_there(files, &format!("src/{word}")))
            } else if in_src {
                !is_there(files, &format!("src/{word}"))
            } else {
                let alone = contributors && first.is_none() && word.len() > 3 && word.ends_with(".rs");
                alone && !files.keys().any(|file| file.rsplit('/').next() == Some(word))
            };
            if missing {
                faults.push(format!("{page} names {word}"));
            }
        }
    }
    faults
}

#[test]
fn every_path_in_the_pages_exists() {
    let files = tree(&[("src/store/keys.rs", ""), ("src/app.rs", ""), ("tests/it/main.rs", ""), ("docs/mail.md", "")]);
    let planted = tree(&[
        (
            "CONTRIBUTING.md",
            "`src/store/keys.rs`, `members.rs`, `app.rs`; `store/mod.rs` and `src/stores/`; text/html.",
        ),
        (
            "README.md",
            "docs/mail.md, docs/post.md and https://union.example/docs/other; `tests/it`, `tests/that`. data/x, y.rs",
        ),
    ]);
    let faults = [
        "CONTRIBUTING.md names members.rs", "CONTRIBUTING.md names store/mod.rs", "CONTRIBUTING.md names src/stores/",
        "README.md names docs/post.md", "README.md names tests/that",
    ];
    assert_eq!(missing_paths(&planted, &files), faults);
    let (pages, files) = repository();
    assert_eq!(missing_paths(&pages, &files), Vec::<String>::new());
}

/// Types, constants and macros between backticks that are not in the code.
fn missing_names(pages: &Tree, files: &Tree) -> Vec<String> {
    let rust = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let code: BTreeSet<_> = rust.flat_map(|(_, text)| tokens(text)).collect();
    let mut faults = Vec::new();
    for (page, text) in pages.iter().filter(|(page, _)| FOR_CONTRIBUTORS.contains(&page.as_str())) {
        // Every second piece is between backticks; blocks of code have three.
        let quoted = text.replace("```", "").split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        for quoted in quoted.iter().filter(|quoted| quoted.chars().all(|c| c.is_alphanumeric() || "_:!.".contains(c))) {
            let is_macro = quoted.ends_with('!');
            for name in quoted.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
                let is_name = is_macro || quoted.contains("::") || name.starts_with(char::is_uppercase);
                let file = [".md", ".rs", ".sh", ".toml"].iter().any(|end| quoted.ends_with(end));
                if is_name && !file && !code.contains(name) && !SQL.contains(&name) {
                    faults.push(format!("{page} names {quoted}"));
                }
            }
        }
    }
    faults
}

#[test]
fn every_name_for_contributors_is_in_the_code() {
    let files = tree(&[("src/a.rs", "struct Union; macro_rules! area {} // Comment")]);
    let planted = tree(&[(
        "CONTRIBUTING.md",
        "`Union`, `area!`, `Comment`, `columns!`, `Union::facts`, `README.md` and `run it`",
    )]);
    let faults =
        ["CONTRIBUTING.md names Comment", "CONTRIBUTING.md names columns!", "CONTRIBUTING.md names Union::facts"];
    assert_eq!(missing_names(&planted, &files), faults);
    let (pages, files) = repository();
    assert_eq!(missing_names(&pages, &files), Vec::<String>::new());
}

/// The anchors that the headings of a page have.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let plain = |text: &str| text.replace(' ', "-").replace([',', '.', '?', '"', '\'', '`', ':', '/'], "");
    headings.map(|line| plain(&line.trim_start_matches('#').trim().to_lowercase())).collect()
}

/// The page or file that a link leads to, from the root.
fn target(page: &str, link: &str) -> String {
    let mut folders: Vec<_> = page.split('/').collect();
    folders.pop();
    for part in link.split('/') {
        match part {
            ".." => drop(folders.pop()),
            "." => {}
            part => folders.push(part),
        }
    }
    folders.join("/")
}

/// Links between pages to files that are not there, or to headings that are not in them.
fn dead_links(pages: &Tree, files: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for (page, text) in pages.iter().filter(|(page, _)| page.ends_with(".md")) {
        let links = text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        for link in links.filter(|link| !link.starts_with("http") && !link.starts_with("mailto:")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { target(page, file) };
            let there = pages.get(&target).or_else(|| files.get(&target));
            let leads = match there {
                Some(text) => anchor.is_empty() || anchors(text).contains(anchor),
                None => anchor.is_empty() && is_there(files, &target),
            };
            if !leads {
                faults.push(format!("{page} links to {link}"));
            }
        }
    }
    faults
}

#[test]
fn every_link_between_the_pages_leads_somewhere() {
    let planted = tree(&[
        (
            "README.md",
            "[a](docs/mail.md#held-mail) [b](docs/mail.md#lost) [c](#top) [d](docs/none.md) [e](https://x.example)",
        ),
        ("docs/mail.md", "## Held mail\n[f](../README.md) [g](../deploy) [h](mail.md#held-mail) [i](README.md)"),
    ]);
    let faults = [
        "README.md links to docs/mail.md#lost", "README.md links to #top", "README.md links to docs/none.md",
        "docs/mail.md links to README.md",
    ];
    assert_eq!(dead_links(&planted, &tree(&[("deploy/nginx.conf", "")])), faults);
    let (pages, mut files) = repository();
    let beside = ["BENCHMARKS.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "catalog.sample.toml"];
    files.extend(beside.into_iter().flat_map(read_tree));
    assert_eq!(dead_links(&pages, &files), Vec::<String>::new());
}

/// Words that readers in the US had to read twice or do not write, in lower case; for English, then for Spanish.
const ODD: &[&str] = &[
    "any, or none", "as often as we may", "e-mail", "hopefully you", "is forgotten after", "mend", "nought",
    "pass the code on", "stands at", "we hope you", "what stays is no", "works no more", "avalanchas", "factura",
    "facturas", "pulsa", "ti mismo",
];

/// What people read of a file, on one line. Of Rust that is all but comments; those of a command or a setting are its help.
fn read_by_people(path: &str, text: &str) -> String {
    let has_help = path.starts_with("src/cli/") || path.starts_with("src/config/");
    let is_read = |line: &&str| match line.trim_start() {
        line if path.ends_with(".rs") && line.starts_with("//") => has_help && line.starts_with("/// "),
        _ => true,
    };
    let lines = text.lines().filter(is_read).map(|line| line.trim().trim_start_matches("/// ").trim_end_matches('\\'));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Files in which people read an odd word.
fn odd_words(files: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files {
        let shown = read_by_people(path, text);
        let is_whole = |(at, word): (usize, &str)| {
            let ends = [shown[..at].chars().next_back(), shown[at + word.len()..].chars().next()];
            ends.iter().flatten().all(|c| !c.is_alphanumeric() && *c != '_')
        };
        let odd = ODD.iter().filter(|word| shown.match_indices(**word).any(is_whole));
        faults.extend(odd.map(|word| format!("{path} says {word}")));
    }
    faults
}

#[test]
fn what_people_read_is_said_plainly() {
    let planted = tree(&[
        ("docs/mail.md", "Your E-mail is\nforgotten after a week. Recommended."),
        ("languages/es.toml", "a = \"Tus facturas. Se pulsan.\""),
        ("src/cli/mail.rs", "//! What stands at.\n/// Mend it.\n// mend\nlet text = \"as often \\\n    as we may\";"),
        ("src/mail/mod.rs", "/// It stands at the end.\nlet amend = \"works no more\";"),
    ]);
    let faults = [
        "docs/mail.md says e-mail", "docs/mail.md says is forgotten after", "languages/es.toml says facturas",
        "src/cli/mail.rs says as often as we may", "src/cli/mail.rs says mend", "src/mail/mod.rs says works no more",
    ];
    assert_eq!(odd_words(&planted), faults);
    let (pages, files) = repository();
    let shown = ["docs/", "examples/", "languages/", "src/", "templates/"];
    let files = files.into_iter().filter(|(path, _)| shown.iter().any(|folder| path.starts_with(folder)));
    assert_eq!(odd_words(&files.chain(pages).collect()), Vec::<String>::new());
}

#[test]
fn the_reference_names_every_kind_of_event() {
    let page = include_str!("../../../templates/docs/webhooks.md");
    for kind in EventKind::ALL {
        assert!(page.contains(&format!("\n| `{}` | ", kind.name())), "{} has no line in webhooks.md", kind.name());
    }
}
