//! Rooms keep to themselves: ARCHITECTURE.md says what each must never use, and this fails when one does.

use std::path::{Path, PathBuf};

/// A room, and what may not be named in its code.
const RULES: &[(&str, &[&str])] = &[
    (
        "domain",
        &[
            "crate::app",
            "crate::cli",
            "crate::clock",
            "crate::config",
            "crate::error",
            "crate::limiter",
            "crate::log",
            "crate::operations",
            "crate::reply",
            "crate::store",
            "crate::transport",
            "async ",
            ".await",
            "tokio::",
            "hyper::",
            "http_body_util",
            "rusqlite::",
            "tokio_postgres::",
            "redis::",
            "clap::",
            "std::fs",
            "std::net",
            "std::env",
            "std::process",
            "ring::rand",
            "println!",
        ],
    ),
    (
        "operations",
        &[
            "crate::transport",
            "crate::cli",
            "crate::config",
            "store::sqlite",
            "store::postgres",
            "limiter::memory",
            "limiter::redis",
            "hyper::",
            "rusqlite::",
            "tokio_postgres::",
            "redis::",
        ],
    ),
    (
        "store",
        &[
            "crate::app",
            "crate::cli",
            "crate::clock",
            "crate::config",
            "crate::error",
            "crate::limiter",
            "crate::log",
            "crate::operations",
            "crate::transport",
            "hyper::",
        ],
    ),
    (
        "limiter",
        &[
            "crate::app",
            "crate::cli",
            "crate::clock",
            "crate::config",
            "crate::error",
            "crate::log",
            "crate::operations",
            "crate::store",
            "crate::transport",
            "hyper::",
            "rusqlite::",
            "tokio_postgres::",
        ],
    ),
    (
        "mail",
        &[
            "crate::app",
            "crate::cli",
            "crate::config",
            "crate::error",
            "crate::limiter",
            "crate::operations",
            "crate::transport",
            "store::sqlite",
            "store::postgres",
            "hyper::",
            "rusqlite::",
            "tokio_postgres::",
        ],
    ),
    (
        "transport",
        &[
            "crate::cli",
            "crate::config",
            "crate::store",
            "limiter::memory",
            "limiter::redis",
            "rusqlite::",
            "tokio_postgres::",
            "redis::",
            "println!",
        ],
    ),
    (
        "app.rs",
        &[
            "crate::cli",
            "crate::config",
            "crate::transport",
            "store::sqlite",
            "store::postgres",
            "limiter::memory",
            "limiter::redis",
            "hyper::",
        ],
    ),
    ("metrics.rs", &["crate::", "Mutex", "RwLock", "hyper::", "tokio::", "clap::", "println!"]),
    ("error.rs", &["crate::app", "crate::cli", "crate::config", "crate::store", "crate::transport", "hyper::"]),
];

fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place).unwrap() {
        found.extend(files(&entry.unwrap().path()));
    }
    found
}

/// The code of a file without its comments and without the tests at its end.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn no_room_uses_what_it_must_not() {
    let house = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for (room, forbidden) in RULES {
        for path in files(&house.join(room)) {
            seen += 1;
            let code = code(&path);
            for name in *forbidden {
                assert!(!code.contains(name), "{} uses {name}: see ARCHITECTURE.md", path.display());
            }
        }
    }
    assert!(seen > 25, "the rules found their files");
}

#[test]
fn every_room_has_its_place_in_the_description() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for (room, _) in RULES {
        assert!(text.contains(&format!("`{room}")), "ARCHITECTURE.md says nothing of {room}");
    }
    assert!(text.lines().count() <= 150);
}
