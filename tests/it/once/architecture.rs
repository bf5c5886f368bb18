//! Layers keep to themselves: one table says what each layer may use and must not name; ARCHITECTURE.md says why.
//!
//! Each guard is a function from a tree of files to the faults it finds there. The test beside it holds `src` to it, and shows
//! that it finds the faults of a small tree in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{
    Tree, absolute, definitions, made_by_macros, module, paths, production, read_tree, tokens, tree, type_macros,
};

/// A layer of `src`, the layers it may use, and what else may not be named in its code.
struct Layer {
    name: &'static str,
    uses: &'static [&'static str],
    never: &'static [&'static str],
}

const fn layer(name: &'static str, uses: &'static [&'static str], never: &'static [&'static str]) -> Layer {
    Layer { name, uses, never }
}

/// No I/O of any kind.
const PURE: &[&str] = &[
    "async",
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

/// From the top down: a layer may use only layers below it. What is not named here may not be used.
const LAYERS: &[Layer] = &[
    layer("main", &["cli"], NO_HTTP_NO_DATABASE),
    layer(
        "cli",
        &[
            "app",
            "campaigns",
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
            "operator",
            "outbound",
            "partners",
            "private_files",
            "reply",
            "rewards",
            "sandbox",
            "server",
            "store",
            "supervise",
        ],
        &["rusqlite::", "tokio_postgres::", "hyper::"],
    ),
    layer(
        "config",
        &["domain", "limiter", "log", "mail", "outbound", "private_files", "site", "store"],
        &["rusqlite::", "tokio_postgres::", "println!"],
    ),
    layer(
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
            "operator",
            "reply",
            "site",
        ],
        NO_DATABASE,
    ),
    layer(
        "site",
        &[
            "app",
            "campaigns",
            "clock",
            "domain",
            "error",
            "http",
            "limiter",
            "loopback",
            "mail",
            "membership",
            "operator",
            "rewards",
            "sandbox",
        ],
        NO_DATABASE,
    ),
    layer("mcp", &["clock", "documents", "domain", "error", "http", "limiter", "loopback", "operations"], NO_DATABASE),
    layer("documents", &["domain", "error", "http", "operations"], NO_DATABASE),
    layer(
        "operations",
        &[
            "app",
            "campaigns",
            "clock",
            "domain",
            "error",
            "keys",
            "limiter",
            "membership",
            "partners",
            "reply",
            "sandbox",
        ],
        NO_HTTP_NO_DATABASE,
    ),
    layer(
        "app",
        &[
            "campaigns",
            "domain",
            "keys",
            "limiter",
            "log",
            "mail",
            "membership",
            "outbound",
            "partners",
            "sandbox",
            "store",
            "supervise",
        ],
        NO_HTTP_NO_DATABASE,
    ),
    layer(
        "operator",
        &["campaigns", "clock", "domain", "keys", "membership", "outbound", "partners", "rewards", "store"],
        NO_HTTP_NO_DATABASE,
    ),
    layer("sandbox", &["clock", "domain", "mail", "membership", "reply", "store"], NO_HTTP_NO_DATABASE),
    layer("rewards", &["clock", "domain", "log", "membership", "store", "supervise"], NO_HTTP_NO_DATABASE),
    layer(
        "membership",
        &["clock", "domain", "error", "log", "mail", "partners", "private_files", "store"],
        NO_HTTP_NO_DATABASE,
    ),
    layer("campaigns", &["clock", "domain", "log", "store", "supervise"], NO_HTTP_NO_DATABASE),
    layer(
        "partners",
        &["clock", "domain", "keys", "lease_queue", "log", "mail", "outbound", "store"],
        NO_HTTP_NO_DATABASE,
    ),
    layer("keys", &["domain", "error", "store"], NO_HTTP_NO_DATABASE),
    layer(
        "mail",
        &["domain", "lease_queue", "log", "loopback", "private_files", "reply", "store"],
        NO_HTTP_NO_DATABASE,
    ),
    layer("lease_queue", &["clock", "domain", "store"], NO_HTTP_NO_DATABASE),
    layer("http", &["domain", "error", "loopback"], NO_DATABASE),
    // It must never know who asks.
    layer(
        "outbound",
        &["domain", "loopback", "reply"],
        &["rusqlite::", "tokio_postgres::", "redis::", "clap::", "std::env", "println!"],
    ),
    layer(
        "store",
        &["domain", "loopback", "private_files", "reply", "supervise"],
        &["hyper::", "redis::", "clap::", "println!"],
    ),
    layer("limiter", &["domain", "reply"], &["hyper::", "rusqlite::", "tokio_postgres::", "clap::", "println!"]),
    layer("log", &["clock", "domain"], NO_HTTP_NO_DATABASE_BUT_CLAP),
    layer("clock", &["domain"], NO_HTTP_NO_DATABASE),
    layer("error", &["domain"], NO_HTTP_NO_DATABASE),
    layer("metrics", &[], &["Mutex", "RwLock", "hyper::", "tokio::", "clap::", "println!"]),
    layer("loopback", &[], PURE_BUT_ADDRESSES),
    layer("private_files", &[], NO_HTTP_NO_DATABASE),
    layer("reply", &[], NO_HTTP_NO_DATABASE),
    layer("supervise", &[], NO_HTTP_NO_DATABASE),
    layer("domain", &[], PURE),
];

const NO_HTTP_NO_DATABASE_BUT_CLAP: &[&str] = &["hyper::", "rusqlite::", "tokio_postgres::", "redis::", "println!"];
const PURE_BUT_ADDRESSES: &[&str] = &["async", "tokio::", "hyper::", "std::fs", "std::env", "println!"];

/// Layers beside those that hold the traits may not name a particular backend; only the wiring and the settings do.
const BACKENDS: &[&[&str]] =
    &[&["store", "sqlite"], &["store", "postgres"], &["limiter", "memory"], &["limiter", "redis"]];
const CHOOSES_BACKENDS: &[&str] = &["cli", "config", "store", "limiter"];

/// Who may name the store: whoever has a part of it for its own, and in `cli` the files that open it, close it, or work on a
/// database as a whole. Other commands ask the layer that owns the part.
const NAMES_STORE: &[&str] = &[
    "src/app.rs",
    "src/campaigns/",
    "src/cli/backup/",
    "src/cli/doctor/records.rs",
    "src/cli/mcp/",
    "src/cli/mod.rs",
    "src/cli/serve/",
    "src/cli/transfer.rs",
    "src/config/",
    "src/keys/",
    "src/lease_queue.rs",
    "src/mail/",
    "src/membership/",
    "src/operator/",
    "src/partners/",
    "src/rewards/",
    "src/sandbox/",
    "src/store/",
];

/// Files with a public field that is a store: what the wiring makes a part from.
const GIVEN_A_STORE: &[&str] = &["src/app.rs", "src/mail/outbox.rs", "src/partners/worker.rs"];

/// What a newcomer would search for, and the file that does it.
const SEARCHES: &[(&str, &str)] = &[
    ("throttle", "src/membership/form_throttle.rs"),
    ("quota", "src/domain/mail/budget.rs"),
    ("rate limit", "src/limiter/mod.rs"),
    ("idempotency", "src/store/partners/idempotency.rs"),
    ("tombstone", "src/domain/secret/mark.rs"),
    ("retention", "src/store/members/retention.rs"),
    ("backoff", "src/domain/backoff.rs"),
    ("jitter", "src/domain/backoff.rs"),
    ("lease", "src/store/outbox/lease.rs"),
    ("csrf", "src/site/own_page/mod.rs"),
];

/// A file of `src` that is a module: its path, its module and the tokens of its code.
struct Source<'t> {
    path: &'t str,
    module: Vec<&'t str>,
    code: Vec<&'t str>,
}

impl<'t> Source<'t> {
    fn layer(&self) -> &'t str {
        self.module[0]
    }

    /// What it uses of this crate, from the root.
    fn uses(&self) -> BTreeSet<Vec<&'t str>> {
        paths(&self.code)
            .iter()
            .filter_map(|path| absolute(&self.module, path))
            .filter(|path| !path.is_empty())
            .collect()
    }

    fn says(&self, words: &str) -> bool {
        let words = tokens(words);
        self.code.windows(words.len()).any(|window| window == words)
    }
}

fn sources(tree: &Tree) -> Vec<Source<'_>> {
    let files = tree.iter().filter_map(|(path, text)| Some((path, module(path)?, text)));
    files.map(|(path, module, text)| Source { path, module, code: production(text) }).collect()
}

fn src() -> Tree {
    read_tree("src")
}

/// No faults in `src`, and exactly these in a planted tree.
#[track_caller]
fn finds(guard: impl Fn(&Tree) -> Vec<String>, planted: &[(&str, &str)], faults: &[&str]) {
    assert_eq!(guard(&tree(planted)), faults, "planted");
    let found = guard(&src());
    assert!(found.is_empty(), "{found:#?}");
}

/// Layers and names that a file uses and must not.
fn forbidden_uses(tree: &Tree) -> Vec<String> {
    let layers: BTreeMap<_, _> = LAYERS.iter().map(|layer| (layer.name, layer)).collect();
    let mut faults = Vec::new();
    for source in sources(tree) {
        let (path, own) = (source.path, source.layer());
        let Some(layer) = layers.get(own) else {
            faults.push(format!("{path}: the layer {own} is not in the table"));
            continue;
        };
        for used in source.uses() {
            if used[0] != own && !layer.uses.contains(&used[0]) && layers.contains_key(used[0]) {
                faults.push(format!("{path} uses {}", used[0]));
            }
            let is_backend = BACKENDS.iter().any(|backend| used.starts_with(backend));
            if is_backend && !CHOOSES_BACKENDS.contains(&own) {
                faults.push(format!("{path} names {}", used.join("::")));
            }
        }
        let named = paths(&source.code);
        for word in layer.never {
            let words: Vec<_> = tokens(word).into_iter().filter(|token| *token != "::").collect();
            let is_path = word.contains("::");
            if if is_path { named.iter().any(|path| path.starts_with(&words)) } else { source.says(word) } {
                faults.push(format!("{path} says {word}"));
            }
        }
    }
    faults
}

#[test]
fn no_layer_uses_what_it_must_not() {
    finds(
        forbidden_uses,
        &[
            ("src/domain/a.rs", "use std::{fmt, fs::File};\n// println! in a comment\nconst A: &str = \"println!\";"),
            ("src/domain/b.rs", "async fn f() {}"),
            ("src/limiter/redis/mod.rs", "use redis::Client; use crate::limiter::memory::M;"),
            ("src/metrics.rs", "use std::sync::{Arc, Mutex};"),
            ("src/new.rs", ""),
            ("src/operations/a.rs", "use crate::{app::App, store::Store}; use super::super::http::X;"),
            (
                "src/site/a.rs",
                "fn f() { crate::limiter::memory::f() }\n#[cfg(test)]\nmod tests {\nuse crate::store::X; }",
            ),
        ],
        &[
            "src/domain/a.rs says std::fs",
            "src/domain/b.rs says async",
            "src/metrics.rs says Mutex",
            "src/new.rs: the layer new is not in the table",
            "src/operations/a.rs uses http",
            "src/operations/a.rs uses store",
            "src/site/a.rs names limiter::memory::f",
        ],
    );
}

/// Layers that use one above them.
fn upward_uses(layers: &[Layer]) -> Vec<String> {
    let mut faults = Vec::new();
    for (place, layer) in layers.iter().enumerate() {
        for used in layer.uses {
            if !layers[place + 1..].iter().any(|below| below.name == *used) {
                faults.push(format!("{} uses {used}, which is not below it", layer.name));
            }
        }
    }
    faults
}

#[test]
fn every_layer_is_above_all_that_it_uses() {
    let planted = [layer("a", &["b"], &[]), layer("b", &["b", "a"], &[])];
    assert_eq!(upward_uses(&planted), ["b uses b, which is not below it", "b uses a, which is not below it"]);
    assert_eq!(upward_uses(LAYERS), Vec::<String>::new());
}

/// A use case is called and not rebuilt: few know the store, and none of them hands it on.
fn exposed_stores(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources(tree) {
        let path = source.path;
        let listed = |places: &[&str]| {
            places.iter().any(|place| path == *place || place.ends_with('/') && path.starts_with(place))
        };
        if !listed(NAMES_STORE) && source.uses().iter().any(|used| used[0] == "store") {
            faults.push(format!("{path} names the store"));
        }
        if source.layer() == "store" {
            continue;
        }
        for (at, _) in source.code.iter().enumerate().filter(|(_, token)| **token == "dyn") {
            let is_store = source.code.get(at + 1).is_some_and(|name| name.ends_with("Store"));
            // What it is part of: everything since the last field, item or parameter.
            let begin = source.code[..at]
                .iter()
                .rposition(|token| [",", ";", "{", "}", "("].contains(token))
                .map_or(0, |at| at + 1);
            let part = &source.code[begin..at];
            if !is_store {
            } else if part.contains(&"pub") && !listed(GIVEN_A_STORE) {
                faults.push(format!("{path} has a store as a public field"));
            } else if part.windows(2).any(|two| two == ["-", ">"]) && source.layer() != "cli" {
                faults.push(format!("{path} hands a store on"));
            }
        }
    }
    faults
}

#[test]
fn the_store_is_private() {
    finds(
        exposed_stores,
        &[
            ("src/cli/mail.rs", "use crate::store::Store;"),
            ("src/cli/mod.rs", "use crate::store::Store; fn open() -> Store {}"),
            ("src/keys/mod.rs", "use crate::store::KeyStore; pub struct K { pub store: Store }"),
            ("src/membership/mod.rs", "pub struct M { s: Store } impl M { pub fn s(&self) -> &Store {} }"),
            ("src/partners/mod.rs", "use crate::store::PartnerStore; pub fn new(store: Store) -> Self {}"),
        ],
        &[
            "src/cli/mail.rs names the store",
            "src/keys/mod.rs has a store as a public field",
            "src/membership/mod.rs hands a store on",
        ],
    );
}

/// What a negotiator's tool reaches of the service's parts beside those that are made for it.
fn reaching_negotiators(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources(tree).iter().filter(|source| source.path.starts_with("src/operations/negotiator/")) {
        for reached in source.code.windows(3).filter(|tokens| tokens[..2] == ["app", "."]) {
            if !["negotiator", "union"].contains(&reached[2]) {
                faults.push(format!("{} reaches {}", source.path, reached[2]));
            }
        }
        let layers = ["app", "campaigns", "domain", "error", "operations"];
        let others = source.uses().into_iter().filter(|used| !layers.contains(&used[0]));
        faults.extend(others.map(|used| format!("{} uses {}", source.path, used[0])));
    }
    faults
}

#[test]
fn the_negotiators_tools_read_no_person() {
    finds(
        reaching_negotiators,
        &[
            (
                "src/operations/negotiator/a.rs",
                "fn run(app: &App) { app.negotiator.list(); app.union.catalog; app.membership.count() }",
            ),
            ("src/operations/negotiator/b.rs", "use crate::membership::Membership;"),
            ("src/operations/c.rs", "fn run(app: &App) { app.membership.count() }"),
        ],
        &["src/operations/negotiator/a.rs reaches membership", "src/operations/negotiator/b.rs uses membership"],
    );
}

/// Files that use each other in a loop. A folder's `mod.rs` names its files, and they may name what it holds: that is one
/// module and no circle.
fn circles(tree: &Tree) -> Vec<String> {
    let sources = sources(tree);
    let modules: BTreeSet<_> = sources.iter().map(|source| source.module.clone()).collect();
    let mut uses: BTreeMap<&[&str], BTreeSet<Vec<&str>>> = BTreeMap::new();
    for source in &sources {
        let used = source.uses().into_iter().filter_map(|mut used| {
            while !modules.contains(&used) {
                used.pop()?;
            }
            let related = source.module.starts_with(&used) || used.starts_with(&source.module);
            (!related).then_some(used)
        });
        uses.insert(&source.module, used.collect());
    }
    let mut faults = Vec::new();
    for start in uses.keys() {
        let (mut seen, mut next) = (BTreeSet::new(), vec![start.to_vec()]);
        while let Some(module) = next.pop() {
            for used in &uses[&*module] {
                if used == start {
                    faults.push(format!("{} comes back to itself through {}", start.join("::"), module.join("::")));
                } else if seen.insert(used) {
                    next.push(used.clone());
                }
            }
        }
    }
    faults
}

#[test]
fn no_files_form_a_circle() {
    finds(
        circles,
        &[
            ("src/a/batch.rs", "use super::batch_statement::Statement;"),
            ("src/a/batch_statement.rs", "use super::batch::Job;"),
            ("src/a/mod.rs", "mod batch; mod batch_statement; pub use self::batch::Batch;"),
            ("src/b/mod.rs", "use crate::c::d::E;"),
            ("src/c/d.rs", "use crate::f;"),
            ("src/f.rs", "fn f() { super::b::g() }"),
            ("src/h.rs", "use crate::b::g;"),
        ],
        &[
            "a::batch comes back to itself through a::batch_statement",
            "a::batch_statement comes back to itself through a::batch",
            "b comes back to itself through f",
            "c::d comes back to itself through b",
            "f comes back to itself through c::d",
        ],
    );
}

/// Files that are too long, or do not begin with what they do; folders with too many.
fn misshapen_files(tree: &Tree) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for (path, text) in tree.iter().filter(|(path, _)| path.ends_with(".rs")) {
        if text.lines().count() >= 400 {
            faults.push(format!("{path} is past 400 lines"));
        }
        if !text.starts_with("//! ") && path != "src/main.rs" {
            faults.push(format!("{path} does not begin with what it does"));
        }
        if !["src/lib.rs", "src/main.rs"].contains(&path.as_str()) {
            *folders.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
        }
    }
    let full = folders.iter().filter(|(_, files)| **files > 15);
    faults.extend(full.map(|(folder, files)| format!("{folder} has {files} files")));
    faults
}

#[test]
fn every_file_is_short_and_begins_with_its_job() {
    let long = format!("//! Long.{}", "\n".repeat(400));
    let many: Vec<_> = (0..16).map(|n| format!("src/many/{n:02}.rs")).collect();
    let mut planted = vec![("src/long.rs", long.as_str()), ("src/mute.rs", "use a::B;")];
    planted.extend(many.iter().map(|path| (path.as_str(), "//! One.")));
    let faults =
        ["src/long.rs is past 400 lines", "src/mute.rs does not begin with what it does", "src/many has 16 files"];
    finds(misshapen_files, &planted, &faults);
}

/// Names that two types have, or two time-outs.
fn ambiguous_names(tree: &Tree) -> Vec<String> {
    let sources = sources(tree);
    let macros = sources.iter().flat_map(|source| type_macros(&source.code)).collect();
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in &sources {
        for name in [definitions(&source.code), made_by_macros(&source.code, &macros)].concat() {
            places.entry(name).or_default().push(source.path);
        }
    }
    places.retain(|_, places| places.len() > 1);
    places.iter().map(|(name, places)| format!("{name} is in {}", places.join(" and "))).collect()
}

#[test]
fn no_name_stands_for_two_things() {
    finds(
        ambiguous_names,
        &[
            (
                "src/a.rs",
                "pub struct One; const SEND_TIMEOUT: u8 = 1; macro_rules! make { ($n:ident) => { struct $n; }; }",
            ),
            ("src/b.rs", "pub(in crate::b) enum One {} const SEND_TIMEOUT: u8 = 2; make!(Two);"),
            ("src/c.rs", "fn f() { struct Two; } impl D for E { type Error = u8; } impl F for E { type Error = u8; }"),
        ],
        &[
            "One is in src/a.rs and src/b.rs",
            "SEND_TIMEOUT is in src/a.rs and src/b.rs",
            "Two is in src/b.rs and src/c.rs",
        ],
    );
}

/// Words whose file is not among the first three by the lines that have the word, as `git grep -ic WORD -- src` counts them.
fn missed_searches(tree: &Tree) -> Vec<String> {
    let mut faults = Vec::new();
    for (word, file) in SEARCHES {
        let count = |text: &String| text.lines().filter(|line| line.to_lowercase().contains(word)).count();
        let mut found: Vec<_> =
            tree.iter().map(|(path, text)| (path, count(text))).filter(|found| found.1 > 0).collect();
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found.truncate(3);
        if !found.iter().any(|(path, _)| path == file) {
            faults.push(format!("{word} does not lead to {file} but to {found:?}"));
        }
    }
    faults
}

#[test]
fn the_words_engineers_search_for_lead_to_the_code() {
    let mut planted: Tree = SEARCHES.iter().map(|(_, file)| ((*file).to_owned(), String::new())).collect();
    for (word, file) in SEARCHES {
        planted.get_mut(*file).unwrap().push_str(&format!("{word}\n"));
    }
    assert_eq!(missed_searches(&planted), Vec::<String>::new());
    for other in ["src/a.rs", "src/b.rs", "src/c.rs"] {
        planted.insert(other.to_owned(), "Quota and\nquota".to_owned());
    }
    assert_eq!(missed_searches(&planted).len(), 1, "others have more of it");
    let found = missed_searches(&src());
    assert!(found.is_empty(), "{found:#?}");
}

/// Layers that the table of ARCHITECTURE.md has no row for.
fn undescribed_layers(text: &str) -> Vec<&'static str> {
    let cells: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    let has = |name: &str| {
        cells.iter().any(|cell| cell.contains(&format!("`{name}`")) || cell.contains(&format!("`{name}.rs`")))
    };
    LAYERS.iter().map(|layer| layer.name).filter(|name| *name != "main" && !has(name)).collect()
}

#[test]
fn every_layer_is_described() {
    let text = read_tree("ARCHITECTURE.md").remove("ARCHITECTURE.md").unwrap();
    assert_eq!(undescribed_layers(&text), Vec::<&str>::new());
    assert_eq!(undescribed_layers(&text.replace("| `http`", "| `httpd`")), ["http"]);
    assert!(text.lines().count() <= 150);
}
