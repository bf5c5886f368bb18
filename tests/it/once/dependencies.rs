//! What the project is built from: licences, sources, duplicates and bans as deny.toml lists them, and no dependency that
//! needs a newer compiler than Cargo.toml promises. `cargo deny check` reads the same file; this needs no other program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<String>,
    skip: Vec<String>,
}

fn deny() -> Deny {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml")).unwrap();
    toml::from_str(&text).unwrap()
}

/// Every package of the lock file, as cargo describes it.
fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["metadata", "--locked", "--format-version", "1"];
    let output = Command::new(cargo).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().clone();
    assert!(packages.len() > 100);
    packages
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// Whether a licence expression (SPDX) can be met with those that are allowed.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.trim();
    // The outermost OR, then AND, outside of any parentheses.
    for (operator, any) in [(" OR ", true), ("/", true), (" AND ", false)] {
        let (mut depth, mut parts, mut start) = (0, Vec::new(), 0);
        for (at, character) in expression.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ if depth == 0 && at >= start && expression[at..].starts_with(operator) => {
                    parts.push(&expression[start..at]);
                    start = at + operator.len();
                }
                _ => {}
            }
        }
        if !parts.is_empty() {
            parts.push(&expression[start..]);
            let met = |part: &&str| is_met(part, allowed);
            return if any { parts.iter().any(met) } else { parts.iter().all(met) };
        }
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_met(inner, allowed),
        None => allowed.contains(expression),
    }
}

#[test]
fn licences_are_ones_that_we_can_live_with() {
    let allowed = deny().licenses.allow;
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT/Apache-2.0", true),
        ("", false),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
    for package in packages() {
        let license = text(&package, "license");
        assert!(is_met(license, &allowed), "{} is licensed under {license:?}", text(&package, "name"));
    }
}

#[test]
fn everything_comes_from_the_registry_and_nothing_is_banned_or_there_twice_unsaid() {
    let bans = deny().bans;
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let (name, source) = (text(&package, "name"), text(&package, "source"));
        assert!(source.is_empty() || source.starts_with("registry+"), "{name} comes from {source}");
        assert!(!bans.deny.iter().any(|banned| banned == name), "{name} is banned");
        versions.entry(name.to_owned()).or_default().insert(text(&package, "version").to_owned());
    }
    let mut unused: BTreeSet<_> = bans.skip.iter().cloned().collect();
    for (name, mut versions) in versions {
        if versions.len() == 1 {
            continue;
        }
        versions.retain(|version| {
            let skips = |skip: &&String| {
                let (of, prefix) = skip.split_once('@').unwrap_or((skip, ""));
                of == name && (prefix.is_empty() || version == prefix || version.starts_with(&format!("{prefix}.")))
            };
            let said = bans.skip.iter().find(skips);
            if let Some(skip) = said {
                unused.remove(skip);
            }
            said.is_none()
        });
        assert!(versions.len() <= 1, "{name} is there in the versions {versions:?}: say why in deny.toml, or have one");
    }
    assert!(unused.is_empty(), "no longer there twice: {unused:?}");
}

#[test]
fn no_dependency_needs_a_newer_compiler_than_we_promise() {
    let number = |text: &str| -> Vec<u32> { text.split('.').map(|part| part.parse().unwrap()).collect() };
    let packages = packages();
    let own = packages.iter().find(|package| text(package, "name") == "unionhall").unwrap();
    let promised = number(text(own, "rust_version"));
    for package in &packages {
        let needed = text(package, "rust_version");
        let newer = !needed.is_empty() && number(needed)[..2] > promised[..2];
        assert!(!newer, "{} needs Rust {needed}", text(package, "name"));
    }
}
