//! What the project is built from: licenses, sources, duplicates and bans as deny.toml lists them, and no dependency that
//! needs a newer compiler than Cargo.toml promises. `cargo deny check` reads the same file; this needs no other program.

use crate::prelude::*;
use serde::Deserialize;

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

/// Whether a license expression (SPDX) can be met with those that are allowed.
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

fn unlicensed(packages: &[Value], allowed: &BTreeSet<String>) -> Vec<String> {
    let bad = packages.iter().filter(|package| !is_met(text(package, "license"), allowed));
    bad.map(|package| format!("{} is licensed under {:?}", text(package, "name"), text(package, "license"))).collect()
}

#[test]
fn licenses_are_ones_that_we_can_live_with() {
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
    let planted = [json!({ "name": "a", "license": "MIT" }), json!({ "name": "b", "license": null })];
    assert_eq!(unlicensed(&planted, &allowed), ["b is licensed under \"\""]);
    assert_eq!(unlicensed(&packages(), &allowed), Vec::<String>::new());
}

/// Packages from elsewhere than the registry, banned ones, those that are there twice unsaid, and exceptions that nobody needs.
fn unwanted(packages: &[Value], bans: &Bans) -> Vec<String> {
    let mut faults = Vec::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let (name, source) = (text(package, "name"), text(package, "source"));
        if !source.is_empty() && !source.starts_with("registry+") {
            faults.push(format!("{name} comes from {source}"));
        }
        if bans.deny.iter().any(|banned| banned == name) {
            faults.push(format!("{name} is banned"));
        }
        versions.entry(name).or_default().insert(text(package, "version"));
    }
    let mut unused: BTreeSet<_> = bans.skip.iter().collect();
    versions.retain(|_, versions| versions.len() > 1);
    for (name, mut versions) in versions {
        versions.retain(|version| {
            let skips = |skip: &&String| {
                let (of, prefix) = skip.split_once('@').unwrap_or((skip, ""));
                of == name && (prefix.is_empty() || *version == prefix || version.starts_with(&format!("{prefix}.")))
            };
            let said = bans.skip.iter().find(skips);
            if let Some(skip) = said {
                unused.remove(skip);
            }
            said.is_none()
        });
        if versions.len() > 1 {
            faults.push(format!("{name} is there in the versions {versions:?}: say why in deny.toml, or have one"));
        }
    }
    faults.extend(unused.iter().map(|skip| format!("{skip} is no longer there twice")));
    faults
}

#[test]
fn everything_comes_from_the_registry_and_nothing_is_banned_or_there_twice_unsaid() {
    let package = |name, version, source| json!({ "name": name, "version": version, "source": source });
    let planted = [
        package("a", "1.0.0", "git+https://example.com/a"),
        package("b", "1.0.0", "registry+https://example.com"),
        package("c", "1.0.0", "registry+https://example.com"),
        package("c", "2.1.0", "registry+https://example.com"),
        package("d", "0.1.5", "registry+https://example.com"),
        package("d", "0.2.0", "registry+https://example.com"),
    ];
    let bans = Bans { deny: vec!["b".into()], skip: vec!["d@0.1".into(), "e".into()] };
    let faults = [
        "a comes from git+https://example.com/a",
        "b is banned",
        "c is there in the versions {\"1.0.0\", \"2.1.0\"}: say why in deny.toml, or have one",
        "e is no longer there twice",
    ];
    assert_eq!(unwanted(&planted, &bans), faults);
    assert_eq!(unwanted(&packages(), &deny().bans), Vec::<String>::new());
}

fn too_new(packages: &[Value]) -> Vec<String> {
    let number = |text: &str| -> Vec<u32> { text.split('.').map(|part| part.parse().unwrap()).collect() };
    let own = packages.iter().find(|package| text(package, "name") == "unionhall").unwrap();
    let promised = number(text(own, "rust_version"));
    let needs = packages.iter().map(|package| (text(package, "name"), text(package, "rust_version")));
    let newer = needs.filter(|(_, needed)| !needed.is_empty() && number(needed)[..2] > promised[..2]);
    newer.map(|(name, needed)| format!("{name} needs Rust {needed}")).collect()
}

#[test]
fn no_dependency_needs_a_newer_compiler_than_we_promise() {
    let package = |name, needed| json!({ "name": name, "rust_version": needed });
    let planted = [package("unionhall", "1.85"), package("a", "1.85.1"), package("b", "1.86"), package("c", "")];
    assert_eq!(too_new(&planted), ["b needs Rust 1.86"]);
    assert_eq!(too_new(&packages()), Vec::<String>::new());
}
