//! Rust source as data for the guards: a tree of files, the tokens of their code, and the paths and types they name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

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

/// The words that define a type.
const DEFINES: &[&str] = &["struct", "enum", "trait", "type"];

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

/// The names of types that a code defines, and of constants that are time-outs; not those that a macro is given.
pub(super) fn definitions<'t>(tokens: &[&'t str]) -> Vec<&'t str> {
    // Of each open brace, whether it is of an `impl` or a trait: a `type` in there is an associated one.
    let (mut found, mut open, mut item) = (Vec::new(), vec![false], 0);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => {
                let head = &tokens[item..at];
                let has = |word| head.contains(&word);
                open.push(!has("fn") && (has("impl") || has("trait")));
            }
            "}" => {
                open.pop();
            }
            _ => {}
        }
        if ["{", "}", ";"].contains(token) {
            item = at + 1;
        }
        let Some(name) = tokens.get(at + 1).filter(|name| is_name(name)) else { continue };
        if at > 0 && tokens[at - 1] == "$" {
            continue;
        }
        let associated = open.last().is_some_and(|associated| *associated);
        let defines = match *token {
            "struct" | "enum" | "trait" => true,
            "type" => !associated,
            "const" => name.ends_with("_TIMEOUT"),
            _ => false,
        };
        if defines {
            found.push(*name);
        }
    }
    found
}

/// Macros that define types by a name that they are given, and whether they take many such names.
pub(super) fn type_macros<'t>(tokens: &[&'t str]) -> BTreeMap<&'t str, bool> {
    let mut found = BTreeMap::new();
    for at in 0..tokens.len() {
        if tokens[at..].starts_with(&["macro_rules", "!"]) && at + 3 < tokens.len() {
            let body = &tokens[at + 3..at + 3 + group(&tokens[at + 3..])];
            let defined = body.windows(3).find(|three| DEFINES.contains(&three[0]) && three[1] == "$");
            if let Some(defined) = defined {
                found.insert(tokens[at + 2], is_repeated(body, defined[2]));
            }
        }
    }
    found
}

/// Whether a macro takes its `$name` inside of a `$( … )`.
fn is_repeated(body: &[&str], name: &str) -> bool {
    let mut open = Vec::new();
    for (at, token) in body.iter().enumerate() {
        match *token {
            "(" => open.push(at > 0 && body[at - 1] == "$"),
            ")" => {
                open.pop();
            }
            _ if *token == name && body[at - 1] == "$" && body.get(at + 1) == Some(&":") => {
                return open.contains(&true);
            }
            _ => {}
        }
    }
    false
}

/// How many tokens the group has that the tokens begin with, its brackets included.
fn group(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The types that a code defines by calling such macros. A call that spells the definition out (`enum Name`) is none of them:
/// [`definitions`] sees it.
pub(super) fn made_by_macros<'t>(tokens: &[&'t str], macros: &BTreeMap<&str, bool>) -> Vec<&'t str> {
    let mut found = Vec::new();
    for at in 0..tokens.len().saturating_sub(2) {
        let Some(many) = macros.get(tokens[at]).filter(|_| tokens[at + 1] == "!") else { continue };
        let call = &tokens[at + 2..at + 2 + group(&tokens[at + 2..])];
        let (mut names, mut place) = (Vec::new(), 1);
        while place + 1 < call.len() {
            let token = call[place];
            if token.starts_with(char::is_uppercase) && !DEFINES.contains(&call[place - 1]) {
                names.push(token);
            }
            place += if ["(", "[", "{"].contains(&token) { group(&call[place..]) } else { 1 };
        }
        names.truncate(if *many { names.len() } else { 1 });
        found.extend(names);
    }
    found
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

#[test]
fn definitions_are_seen_wherever_they_are_made() {
    let code = tokens(
        "pub(in crate::x) struct A; fn f() { struct B { c: u8 } } impl D for E { type F = u8; } pub type G = u8;
         pub trait H { type I; } const J_TIMEOUT: u8 = 1; const K: u8 = 1;
         macro_rules! one { ($(#[$doc:meta])* $name:ident($of:ty)) => { pub struct $name($of); }; }
         macro_rules! many { ($($at:ident $type:ident { $($t:ident)* })*) => { $(struct $type {})* }; }
         macro_rules! none { ($name:ident) => { fn $name() {} }; }
         macro_rules! named { (pub enum $kind:ident {}) => { pub enum $kind {} }; }
         named! { pub enum S { T } } one!(/// Doc. \n L(M)); many! { n N { o P } q Q {} } none!(R);",
    );
    assert_eq!(definitions(&code), ["A", "B", "G", "H", "J_TIMEOUT", "S"]);
    assert_eq!(made_by_macros(&code, &type_macros(&code)), ["L", "N", "Q"]);
}
