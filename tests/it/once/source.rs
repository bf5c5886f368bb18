//! Rust source as data for the guards: a tree of files, the tokens of their code, and the paths and types they name.

use crate::prelude::*;

/// The text of each file by its path from the root of the repository.
pub(super) type Tree = BTreeMap<String, String>;

/// A tree in memory, for planted faults.
pub(super) fn tree(files: &[(&str, &str)]) -> Tree {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

/// Every file below a folder of the repository; a file alone is a tree too.
pub(super) fn read_tree(place: &str) -> Tree {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(place);
    if path.is_file() {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        return BTreeMap::from([(place.to_owned(), text)]);
    }
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.flat_map(|name| read_tree(&format!("{place}/{name}"))).collect()
}

/// The module that a file of `src` is: `src/store/mod.rs` is `store`, `src/mail/smtp.rs` is `mail::smtp`. None for the root
/// and for what is no Rust.
pub(super) fn module(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    (path != "lib").then(|| path.split('/').collect())
}

/// The tokens of a file's code, without the unit tests at its end.
pub(super) fn production(text: &str) -> Vec<&str> {
    tokens(text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default())
}

/// Words, `::` and single characters. Comments are dropped, and a string is `""` whatever it holds.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(length) = raw_string(rest) {
            found.push("\"\"");
            length
        } else if first == '"' {
            found.push("\"\"");
            1 + quoted(&rest[1..], '"')
        } else if first == '\'' {
            let mut next = rest[1..].chars();
            match (next.next(), next.next()) {
                (Some('\\'), _) | (_, Some('\'')) => 1 + quoted(&rest[1..], '\''),
                _ => 1,
            }
        } else {
            let length = if rest.starts_with("::") { 2 } else { word.max(first.len_utf8()) };
            found.push(&rest[..length]);
            length
        };
        rest = &rest[length..];
    }
    found
}

/// How long a raw string is that the text begins with.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix('b').unwrap_or(text).strip_prefix('r')?;
    let hashes = after.find(|c| c != '#')?;
    let inside = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text.len() - inside.len() + inside.find(&end)? + end.len())
}

/// Where a quote that was opened before ends, the end included.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Every path of two segments or more, with the braces of a `use` spelled out.
pub(super) fn paths<'t>(tokens: &[&'t str]) -> BTreeSet<Vec<&'t str>> {
    let (mut found, mut at) = (BTreeSet::new(), 0);
    while at < tokens.len() {
        let begins = is_name(tokens[at]) && (at == 0 || !["::", "."].contains(&tokens[at - 1]));
        at = if begins && tokens.get(at + 1) == Some(&"::") { use_tree(tokens, at, &[], &mut found) } else { at + 1 };
    }
    found
}

/// Reads one tree of a `use`, or a path, and returns where it ends.
fn use_tree<'t>(tokens: &[&'t str], mut at: usize, stem: &[&'t str], found: &mut BTreeSet<Vec<&'t str>>) -> usize {
    let mut path = stem.to_vec();
    while let Some(token) = tokens.get(at) {
        match *token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = use_tree(tokens, at, &path, found).max(at + 1);
                }
                return at + 1;
            }
            "self" if !path.is_empty() => {}
            name if is_name(name) => path.push(name),
            "," => return at + 1,
            "*" => {
                found.insert(path);
                return at + 1;
            }
            _ => break,
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            // A new name for it: `as other`.
            at += if tokens.get(at) == Some(&"as") && !stem.is_empty() { 2 } else { 0 };
            break;
        }
        at += 1;
    }
    found.insert(path);
    at
}

/// A path from the root of the crate, as written in that module; none for a path of another crate.
pub(super) fn absolute<'t>(module: &[&'t str], path: &[&'t str]) -> Option<Vec<&'t str>> {
    let supers = path.iter().take_while(|segment| **segment == "super").count();
    match *path.first()? {
        "crate" | "unionhall" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().saturating_sub(supers)], &path[supers..]].concat()),
        _ => None,
    }
}

#[test]
fn tokens_are_of_code_alone() {
    let code = "let a = 'x'; // b\nlet d: &'c str = r#\"e \" f\"#; g('\\'', b\"h \\\" i\", \"j\");";
    let words: Vec<_> = tokens(code).into_iter().filter(|token| is_name(token)).collect();
    assert_eq!(words, ["let", "a", "let", "d", "c", "str", "g", "b"]);
}

#[test]
fn paths_are_read_whole_and_from_the_root() {
    let code =
        tokens("use crate::{a::{self, b as c}, d::*}; fn f() { super::g::h::<u8>(); self::i::J {}; k.l(); std::m!() }");
    let found: Vec<_> =
        paths(&code).iter().filter_map(|path| absolute(&["x", "y"], path)).map(|path| path.join("::")).collect();
    assert_eq!(found, ["a", "a::b", "d", "x::y::i::J", "x::g::h"]);
    assert!(paths(&code).contains(&vec!["std", "m"]));
}
