//! Rooms keep to themselves: one table says what each room may use and must not name; ARCHITECTURE.md says why. This fails
//! when a line is crossed, when rooms or files form a circle, and when one name stands for two things.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A room of `src`, the rooms it may use, and what else may not be named in its code.
struct Room {
    name: &'static str,
    uses: &'static [&'static str],
    never: &'static [&'static str],
}

const fn room(name: &'static str, uses: &'static [&'static str], never: &'static [&'static str]) -> Room {
    Room { name, uses, never }
}

/// No I/O of any kind.
const PURE: &[&str] = &[
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
];
const NO_DATABASE: &[&str] = &["rusqlite::", "tokio_postgres::", "redis::", "println!"];
const NO_HTTP_NO_DATABASE: &[&str] = &["hyper::", "rusqlite::", "tokio_postgres::", "redis::", "clap::", "println!"];

/// From the top down: a room may use only rooms that stand below it. What is not named here may not be used.
const ROOMS: &[Room] = &[
    room("main", &["cli"], NO_HTTP_NO_DATABASE),
    room(
        "cli",
        &[
            "app",
            "clock",
            "config",
            "documents",
            "domain",
            "http",
            "keys",
            "lease_queue",
            "limiter",
            "log",
            "mail",
            "mcp",
            "membership",
            "operations",
            "outbound",
            "partners",
            "reply",
            "sandbox",
            "server",
            "store",
            "supervise",
        ],
        &["rusqlite::", "tokio_postgres::", "hyper::"],
    ),
    room(
        "config",
        &["domain", "limiter", "log", "mail", "outbound", "store"],
        &["rusqlite::", "tokio_postgres::", "println!"],
    ),
    room(
        "server",
        &[
            "app",
            "clock",
            "documents",
            "domain",
            "error",
            "http",
            "limiter",
            "log",
            "mail",
            "mcp",
            "metrics",
            "operations",
            "reply",
            "site",
        ],
        NO_DATABASE,
    ),
    room(
        "site",
        &["app", "clock", "domain", "error", "http", "limiter", "loopback", "mail", "membership", "sandbox"],
        NO_DATABASE,
    ),
    room("mcp", &["clock", "documents", "domain", "error", "http", "limiter", "loopback", "operations"], NO_DATABASE),
    room("documents", &["domain", "error", "http", "operations"], NO_DATABASE),
    room(
        "operations",
        &["app", "clock", "domain", "error", "keys", "limiter", "membership", "reply", "sandbox"],
        NO_HTTP_NO_DATABASE,
    ),
    room(
        "app",
        &["domain", "keys", "limiter", "log", "mail", "membership", "partners", "sandbox", "store", "supervise"],
        NO_HTTP_NO_DATABASE,
    ),
    room("sandbox", &["clock", "domain", "mail", "membership", "reply", "store"], NO_HTTP_NO_DATABASE),
    room("membership", &["clock", "domain", "error", "log", "mail", "partners", "store"], NO_HTTP_NO_DATABASE),
    room("partners", &["clock", "domain", "lease_queue", "log", "mail", "outbound", "store"], NO_HTTP_NO_DATABASE),
    room("keys", &["domain", "error", "store"], NO_HTTP_NO_DATABASE),
    room("mail", &["domain", "lease_queue", "log", "loopback", "reply", "store"], NO_HTTP_NO_DATABASE),
    room("lease_queue", &["clock", "domain", "store"], NO_HTTP_NO_DATABASE),
    room("http", &["domain", "error", "loopback"], NO_DATABASE),
    // It must never know who asks.
    room(
        "outbound",
        &["domain", "loopback", "reply"],
        &["rusqlite::", "tokio_postgres::", "redis::", "clap::", "std::env", "println!"],
    ),
    room("store", &["domain", "loopback", "reply", "supervise"], &["hyper::", "redis::", "clap::", "println!"]),
    room("limiter", &["domain", "reply"], &["hyper::", "rusqlite::", "tokio_postgres::", "clap::", "println!"]),
    room("log", &["clock", "domain"], NO_HTTP_NO_DATABASE_BUT_CLAP),
    room("clock", &["domain"], NO_HTTP_NO_DATABASE),
    room("error", &["domain"], NO_HTTP_NO_DATABASE),
    room("metrics", &[], &["Mutex", "RwLock", "hyper::", "tokio::", "clap::", "println!"]),
    room("loopback", &[], PURE_BUT_ADDRESSES),
    room("reply", &[], NO_HTTP_NO_DATABASE),
    room("supervise", &[], NO_HTTP_NO_DATABASE),
    room("domain", &[], PURE),
];

const NO_HTTP_NO_DATABASE_BUT_CLAP: &[&str] = &["hyper::", "rusqlite::", "tokio_postgres::", "redis::", "println!"];
const PURE_BUT_ADDRESSES: &[&str] = &["async ", "tokio::", "hyper::", "std::fs", "std::env", "println!"];

/// Rooms beside those that hold the traits may not name a particular backend; only the wiring and the settings do.
const BACKENDS: &[&str] = &["store::sqlite", "store::postgres", "limiter::memory", "limiter::redis"];
const CHOOSES_BACKENDS: &[&str] = &["cli", "config", "store", "limiter"];

/// Names that both engines have for the same thing would be listed here with their reason; there are none.
const SAID_TWICE: &[&str] = &[];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let mut found: Vec<_> = std::fs::read_dir(place).unwrap().flat_map(|entry| files(&entry.unwrap().path())).collect();
    found.retain(|path| path.extension().is_some_and(|kind| kind == "rs"));
    found.sort();
    found
}

/// The code of a file without its comments and without the tests at its end.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every file of `src` with the room it stands in.
fn house() -> Vec<(String, PathBuf)> {
    let src = root().join("src");
    let room = |path: &Path| {
        let first = path.strip_prefix(&src).unwrap().components().next().unwrap();
        first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
    };
    files(&src).into_iter().map(|path| (room(&path), path)).filter(|(room, _)| room != "lib").collect()
}

/// The paths that a code names after `crate::`, those in braces included.
fn named(code: &str) -> BTreeSet<String> {
    let ends = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let path = rest.split(ends).next().unwrap();
        match path.strip_suffix("::") {
            Some(stem) if rest[path.len()..].starts_with('{') => {
                let inside = rest[path.len() + 1..].split('}').next().unwrap();
                let names = inside.split(',').map(|name| name.trim().split(ends).next().unwrap());
                found.extend(names.filter(|name| !name.is_empty()).map(|name| format!("{stem}::{name}")));
            }
            _ => {
                found.insert(path.to_owned());
            }
        }
    }
    found
}

#[test]
fn no_room_uses_what_it_must_not() {
    let rooms: BTreeMap<_, _> = ROOMS.iter().map(|room| (room.name, room)).collect();
    for (name, path) in house() {
        let room = rooms.get(name.as_str()).unwrap_or_else(|| panic!("the room {name} is not in the table"));
        let code = code(&path);
        for used in named(&code) {
            let other = used.split("::").next().unwrap();
            let allowed = other == name || room.uses.contains(&other) || !rooms.contains_key(other);
            assert!(allowed, "{} uses {other}: see ARCHITECTURE.md", path.display());
            let chooses = CHOOSES_BACKENDS.contains(&name.as_str());
            assert!(
                chooses || !BACKENDS.iter().any(|backend| used.starts_with(backend)),
                "{} names {used}",
                path.display()
            );
        }
        for word in room.never {
            assert!(!code.contains(word), "{} says {word}: see ARCHITECTURE.md", path.display());
        }
    }
}

/// A use case is called and not rebuilt: only these know the traits of the store.
#[test]
fn nobody_else_can_name_the_store() {
    let know = ["cli", "config", "app", "sandbox", "membership", "partners", "keys", "mail", "store"];
    for (name, path) in house() {
        let names_store = named(&code(&path)).iter().any(|used| used.starts_with("store"));
        assert!(!names_store || know.contains(&name.as_str()), "{} names the store", path.display());
    }
    let app = code(&root().join("src/app.rs"));
    for field in ["keys: Keys", "installation: Arc<dyn InstallationStore>"] {
        assert!(app.contains(&format!("\n    {field},")), "{field} is private to the app");
    }
    let membership = code(&root().join("src/membership/mod.rs"));
    assert!(membership.contains("\n    store: Arc<dyn MemberStore>,"), "and members to membership");
    let partners = code(&root().join("src/partners/mod.rs"));
    assert!(partners.contains("\n    store: Arc<dyn PartnerStore>,"), "and partners to partners");
}

#[test]
fn every_room_stands_above_all_that_it_uses() {
    let floor: BTreeMap<_, _> = ROOMS.iter().enumerate().map(|(floor, room)| (room.name, floor)).collect();
    for room in ROOMS {
        for used in room.uses {
            assert!(floor[used] > floor[room.name], "{} uses {used}, which stands above it", room.name);
        }
    }
}

/// No files that use each other in a loop. A folder's `mod.rs` names its files, and they may name what it holds: that is one
/// room and no circle.
#[test]
fn no_files_form_a_circle() {
    let src = root().join("src");
    let module = |path: &Path| {
        let path = path.strip_prefix(&src).unwrap().with_extension("");
        path.to_str().unwrap().trim_end_matches("/mod").replace('/', "::")
    };
    let modules: BTreeSet<_> = house().iter().map(|(_, path)| module(path)).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, path) in house() {
        let own = module(&path);
        let mut code = code(&path);
        // `super::` and `self::` are paths too.
        let parent = own.rsplit_once("::").map_or("", |(parent, _)| parent);
        code = code.replace("super::super::", "crate::").replace("super::", &format!("crate::{parent}::"));
        for used in named(&code) {
            let mut target = used.as_str();
            while !modules.contains(target) {
                let Some((stem, _)) = target.rsplit_once("::") else { break };
                target = stem;
            }
            let related = own.starts_with(target) || target.starts_with(&own);
            if modules.contains(target) && !related {
                uses.entry(own.clone()).or_default().insert(target.to_owned());
            }
        }
    }
    for start in uses.keys() {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start.clone()]);
        while let Some(module) = next.pop() {
            for used in uses.get(&module).into_iter().flatten() {
                assert_ne!(used, start, "{start} and {module} use each other");
                if seen.insert(used.clone()) {
                    next.push(used.clone());
                }
            }
        }
    }
}

#[test]
fn every_file_has_its_size_and_says_what_it_is() {
    let mut tops: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (_, path) in house() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().count() < 400, "{} is past 400 lines", path.display());
        let says = text.starts_with("//! ") || path.ends_with("main.rs");
        assert!(says, "{} does not begin by saying what it is", path.display());
        *tops.entry(path.parent().unwrap().to_owned()).or_default() += 1;
    }
    for (folder, files) in tops {
        assert!(files <= 15, "{} has {files} files at its top", folder.display());
    }
}

/// One name, one thing: a type's name is defined once in the whole program, and every time-out has its own.
#[test]
fn no_name_stands_for_two_things() {
    let mut defined: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (_, path) in house() {
        for line in code(&path).lines() {
            let line =
                ["pub(crate) ", "pub(super) ", "pub "].iter().fold(line, |line, word| line.trim_start_matches(word));
            let words: Vec<_> = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
            let timeout = words.len() > 1 && words[0] == "const" && words[1].ends_with("_TIMEOUT");
            if timeout || matches!(words[0], "struct" | "enum" | "trait" | "type") && words.len() > 1 {
                defined.entry(words[1].to_owned()).or_default().push(path.clone());
            }
            assert!(!line.contains("const PATIENCE"), "{}: a time-out says what it is for", path.display());
        }
    }
    defined.retain(|name, places| places.len() > 1 && !SAID_TWICE.contains(&name.as_str()));
    assert!(defined.is_empty(), "{defined:#?}");
}

/// The words that an engineer would search for lead somewhere.
#[test]
fn standard_words_are_found() {
    let all: String = house().iter().map(|(_, path)| std::fs::read_to_string(path).unwrap().to_lowercase()).collect();
    for word in [
        "backoff",
        "jitter",
        "slowloris",
        "csrf",
        "backpressure",
        "group commit",
        "retention",
        "cors",
        "etag",
        "double opt-in",
        "idle time-out",
        "graceful shutdown",
        "advisory lock",
        "migrations",
        "coalescing",
        "dns rebinding",
        "content negotiation",
        "connection pool",
        "rate limit",
    ] {
        assert!(all.contains(word), "{word} is not found in src");
    }
}

#[test]
fn every_room_has_its_place_in_the_description() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for room in ROOMS.iter().filter(|room| room.name != "main") {
        assert!(text.contains(&format!("`{}", room.name)), "ARCHITECTURE.md says nothing of {}", room.name);
    }
    assert!(text.lines().count() <= 150);
}
