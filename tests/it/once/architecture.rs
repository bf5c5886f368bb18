//! Layers keep to themselves: one table says what each layer may use and must not name; ARCHITECTURE.md says why.
//!
//! Each guard is a function from a tree of files to the faults it finds there. The test beside it holds `src` to it, and shows
//! that it finds the faults of a small tree in memory.

use super::source::{Tree, absolute, module, paths, production, read_tree, tokens, tree};
use crate::prelude::*;

/// A layer of `src`, the layers it may use, and what else may not be named in its code.
struct Layer {
    name: &'static str,
    /// By their names, with spaces between.
    uses: &'static str,
    never: &'static [&'static str],
}

const fn layer(name: &'static str, uses: &'static str, never: &'static [&'static str]) -> Layer {
    Layer { name, uses, never }
}

impl Layer {
    fn uses(&self) -> impl Iterator<Item = &'static str> {
        self.uses.split_whitespace()
    }
}

/// No I/O of any kind.
const PURE: &[&str] = &[
    "async", ".await", "tokio::", "hyper::", "http_body_util", "rusqlite::", "tokio_postgres::", "redis::", "clap::",
    "std::fs", "std::net", "std::env", "std::process", "ring::rand", "println!",
];
const NO_DATABASE: &[&str] = &["rusqlite::", "tokio_postgres::", "redis::", "println!"];
const NO_HTTP_NO_DATABASE: &[&str] = &["hyper::", "rusqlite::", "tokio_postgres::", "redis::", "clap::", "println!"];

/// From the top down: a layer may use only layers below it. What is not named here may not be used.
const LAYERS: &[Layer] = &[
    layer("main", "cli", NO_HTTP_NO_DATABASE),
    layer(
        "cli",
        "app campaigns clock config demonstration documents domain figures http installation keys lease_queue limiter log \
         loopback mail mcp membership operations operator outbound partners people private_files random reply rewards \
         sandbox server store supervise",
        &["rusqlite::", "tokio_postgres::", "hyper::"],
    ),
    layer(
        "config",
        "domain limiter log mail outbound private_files site store",
        &["rusqlite::", "tokio_postgres::", "println!"],
    ),
    layer(
        "server",
        "app clock documents domain error http limiter log mail mcp metrics operations reply site",
        NO_DATABASE,
    ),
    layer(
        "site",
        "app campaigns clock domain error figures http installation keys limiter loopback mail membership \
         operator partners people rewards sandbox",
        NO_DATABASE,
    ),
    layer("mcp", "clock documents domain error http limiter loopback operations", NO_DATABASE),
    layer("documents", "domain error http operations", NO_DATABASE),
    layer(
        "operations",
        "app campaigns clock domain error keys limiter membership partners reply sandbox",
        NO_HTTP_NO_DATABASE,
    ),
    layer(
        "app",
        "campaigns demonstration domain figures installation keys limiter log mail membership outbound partners people \
         sandbox store supervise",
        NO_HTTP_NO_DATABASE,
    ),
    layer(
        "operator",
        "campaigns clock domain figures installation keys log mail membership outbound partners people random reply \
         rewards store supervise",
        NO_HTTP_NO_DATABASE,
    ),
    layer("sandbox", "clock domain mail membership people reply store", NO_HTTP_NO_DATABASE),
    layer("figures", "clock domain log mail membership store", NO_HTTP_NO_DATABASE),
    layer(
        "people",
        "campaigns clock domain log mail membership partners private_files random rewards store",
        NO_HTTP_NO_DATABASE,
    ),
    layer(
        "rewards",
        "campaigns clock domain installation log mail membership random store supervise",
        NO_HTTP_NO_DATABASE,
    ),
    layer("campaigns", "clock domain installation log mail membership random store supervise", NO_HTTP_NO_DATABASE),
    layer("membership", "clock domain error mail partners random store", NO_HTTP_NO_DATABASE),
    layer("partners", "clock domain keys lease_queue log mail outbound random store", NO_HTTP_NO_DATABASE),
    layer("keys", "domain error store", NO_HTTP_NO_DATABASE),
    layer("mail", "domain installation lease_queue log loopback private_files random reply store", NO_HTTP_NO_DATABASE),
    layer("installation", "domain store", NO_HTTP_NO_DATABASE),
    layer("demonstration", "clock domain store", NO_HTTP_NO_DATABASE),
    layer("lease_queue", "clock domain store", NO_HTTP_NO_DATABASE),
    layer("http", "certificates domain error loopback", NO_DATABASE),
    // It must never know who asks.
    layer(
        "outbound",
        "domain loopback reply",
        &["rusqlite::", "tokio_postgres::", "redis::", "clap::", "std::env", "println!"],
    ),
    layer(
        "store",
        "certificates domain loopback private_files random reply supervise",
        &["hyper::", "redis::", "clap::", "println!"],
    ),
    layer("limiter", "domain reply", &["hyper::", "rusqlite::", "tokio_postgres::", "clap::", "println!"]),
    layer("log", "clock domain", NO_HTTP_NO_DATABASE_BUT_CLAP),
    layer("clock", "domain", NO_HTTP_NO_DATABASE),
    layer("error", "domain", NO_HTTP_NO_DATABASE),
    layer("metrics", "", &["Mutex", "RwLock", "hyper::", "tokio::", "clap::", "println!"]),
    layer("certificates", "", NO_HTTP_NO_DATABASE),
    layer("loopback", "", PURE_BUT_ADDRESSES),
    layer("private_files", "", NO_HTTP_NO_DATABASE),
    layer("random", "", NO_HTTP_NO_DATABASE),
    layer("reply", "", NO_HTTP_NO_DATABASE),
    layer("supervise", "", NO_HTTP_NO_DATABASE),
    layer("domain", "", PURE),
];

const NO_HTTP_NO_DATABASE_BUT_CLAP: &[&str] = &["hyper::", "rusqlite::", "tokio_postgres::", "redis::", "println!"];
const PURE_BUT_ADDRESSES: &[&str] = &["async", "tokio::", "hyper::", "std::fs", "std::env", "println!"];

/// Layers beside those that hold the traits may not name a particular backend; only the wiring and the settings do.
const BACKENDS: &[&[&str]] =
    &[&["store", "sqlite"], &["store", "postgres"], &["limiter", "memory"], &["limiter", "redis"]];
const CHOOSES_BACKENDS: &[&str] = &["cli", "config", "store", "limiter"];

/// Units that PostgreSQL does many at a time, beside their rule.
const BATCHES: &[&str] = &["src/membership/confirm/batch.rs", "src/membership/sign_up/batch.rs"];

/// Who may name the store: whoever has a part of it for its own, and in `cli` the files that open it, close it, or work on a
/// database as a whole. Other commands ask the layer that owns the part.
const NAMES_STORE: &[&str] = &[
    "src/app.rs", "src/campaigns/", "src/cli/backup/", "src/cli/demo/", "src/cli/doctor/records.rs", "src/cli/mcp/",
    "src/cli/mod.rs", "src/cli/remedy.rs", "src/cli/sandbox_records.rs", "src/cli/serve/", "src/cli/transfer.rs",
    "src/config/", "src/demonstration.rs", "src/figures/", "src/installation.rs", "src/keys/", "src/lease_queue.rs",
    "src/mail/", "src/membership/", "src/operator/", "src/partners/", "src/people/", "src/rewards/", "src/sandbox/",
    "src/store/",
];

/// Files with a public field that is a store: what the wiring makes a part from.
const GIVEN_A_STORE: &[&str] = &["src/app.rs", "src/cli/demo/parts.rs", "src/mail/worker.rs", "src/partners/worker.rs"];

/// What a newcomer would search for, and the file that does it.
const SEARCHES: &[(&str, &str)] = &[
    ("throttle", "src/membership/form_throttle.rs"),
    ("quota", "src/domain/mail/budget.rs"),
    ("rate limit", "src/limiter/mod.rs"),
    ("idempotency", "src/partners/idempotency.rs"),
    ("tombstone", "src/domain/secret/mark.rs"),
    ("retention", "src/people/forget.rs"),
    ("backoff", "src/domain/backoff.rs"),
    ("jitter", "src/domain/backoff.rs"),
    ("lease", "src/mail/outbox/lease.rs"),
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
            if used[0] != own && !layer.uses().any(|layer| layer == used[0]) && layers.contains_key(used[0]) {
                faults.push(format!("{path} uses {}", used[0]));
            }
            let is_backend = BACKENDS.iter().any(|backend| used.starts_with(backend));
            if is_backend && !CHOOSES_BACKENDS.contains(&own) && !BATCHES.contains(&path) {
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
            "src/domain/a.rs says std::fs", "src/domain/b.rs says async", "src/metrics.rs says Mutex",
            "src/new.rs: the layer new is not in the table", "src/operations/a.rs uses http",
            "src/operations/a.rs uses store", "src/site/a.rs names limiter::memory::f",
        ],
    );
}

/// Commands named in a text below the layers that name them to operators: others carry a `Remedy`.
fn named_commands(tree: &Tree) -> Vec<String> {
    let line = unionhall::cli::command_line();
    let commands = Vec::from_iter(line.get_subcommands().map(clap::Command::get_name));
    let mut faults = Vec::new();
    for (path, text) in tree {
        if module(path).is_none_or(|module| ["cli", "config", "site"].contains(&module[0])) {
            continue;
        }
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().lines();
        let code = Vec::from_iter(code.filter(|line| !line.trim_start().starts_with("//"))).join("\n");
        let says =
            |command: &&&str| code.contains(&format!("unionhall {command}")) || code.contains(&format!("`{command} "));
        faults.extend(commands.iter().find(says).map(|command| format!("{path} names {command}")));
    }
    faults
}

#[test]
fn commands_are_named_at_the_surface() {
    finds(
        named_commands,
        &[
            ("src/cli/a.rs", "const A: &str = \"`unionhall doctor` says why\";"),
            ("src/mail/a.rs", "/// For `unionhall mail`.\nconst A: &str = \"a newer unionhall\";"),
            ("src/mail/b.rs", "const B: &str = \"`unionhall mail list` shows it\";"),
            ("src/store/c.rs", "const C: &str = \"as `keys list` shows it\";"),
        ],
        &["src/mail/b.rs names mail", "src/store/c.rs names keys"],
    );
}

fn upward_uses(layers: &[Layer]) -> Vec<String> {
    let mut faults = Vec::new();
    for (place, layer) in layers.iter().enumerate() {
        for used in layer.uses() {
            if !layers[place + 1..].iter().any(|below| below.name == used) {
                faults.push(format!("{} uses {used}, which is not below it", layer.name));
            }
        }
    }
    faults
}

#[test]
fn every_layer_is_above_all_that_it_uses() {
    let planted = [layer("a", "b", &[]), layer("b", "b a", &[])];
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
        for (at, _) in source.code.iter().enumerate().filter(|(_, token)| **token == "Store") {
            // What it is part of: everything since the last field, item or parameter.
            let begin = source.code[..at]
                .iter()
                .rposition(|token| [",", ";", "{", "}", "("].contains(token))
                .map_or(0, |at| at + 1);
            let part = &source.code[begin..at];
            if part.contains(&"use") {
            } else if part.contains(&"pub") && part.contains(&":") && !listed(GIVEN_A_STORE) {
                faults.push(format!("{path} has a store as a public field"));
            } else if part.windows(2).any(|two| two == ["-", ">"])
                && is_public(&source.code[..begin])
                && source.layer() != "cli"
            {
                faults.push(format!("{path} hands a store on"));
            }
        }
    }
    faults
}

/// Whether the function whose parameters these tokens end with is public.
fn is_public(code: &[&str]) -> bool {
    let function = code.iter().rposition(|token| *token == "fn").unwrap_or(0);
    let begin = code[..function].iter().rposition(|token| [";", "{", "}"].contains(token)).map_or(0, |at| at + 1);
    code[begin..function].contains(&"pub")
}

#[test]
fn the_store_is_private() {
    finds(
        exposed_stores,
        &[
            ("src/cli/mail.rs", "use crate::store::Store;"),
            ("src/cli/mod.rs", "use crate::store::Store; fn open() -> Store {}"),
            ("src/keys/mod.rs", "use crate::store::Store; pub struct K { pub store: Store }"),
            ("src/membership/mod.rs", "pub struct M { s: Store } impl M { pub fn s(&self) -> &Store {} }"),
            ("src/partners/mod.rs", "use crate::store::Store; pub fn new(store: Store) -> Self {}"),
        ],
        &[
            "src/cli/mail.rs names the store", "src/keys/mod.rs has a store as a public field",
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
            "a::batch_statement comes back to itself through a::batch", "b comes back to itself through f",
            "c::d comes back to itself through b", "f comes back to itself through c::d",
        ],
    );
}

/// Units outside the capabilities: no rule about the records stands in a command, a setting or a page.
fn misplaced_units(tree: &Tree) -> Vec<String> {
    let outside = ["app", "cli", "config", "documents", "mcp", "operations", "server", "site"];
    let sources =
        sources(tree).into_iter().filter(|source| outside.contains(&source.layer()) && source.says("impl Unit for"));
    sources.map(|source| format!("{} has a unit", source.path)).collect()
}

#[test]
fn rules_about_the_records_stand_in_the_capabilities() {
    finds(
        misplaced_units,
        &[
            ("src/cli/a.rs", "impl Unit for Suspend { type Done = (); }"),
            ("src/partners/b.rs", "impl Unit for Suspend { type Done = (); }"),
            ("src/site/c.rs", "fn f() { operator.run(Suspend) }"),
        ],
        &["src/cli/a.rs has a unit"],
    );
}

fn mute_files(tree: &Tree) -> Vec<String> {
    let files = tree
        .iter()
        .filter(|(path, text)| path.ends_with(".rs") && path.as_str() != "src/main.rs" && !text.starts_with("//! "));
    files.map(|(path, _)| format!("{path} does not begin with what it does")).collect()
}

#[test]
fn every_file_begins_with_its_job() {
    let planted = [("src/told.rs", "//! Told."), ("src/mute.rs", "use a::B;")];
    finds(mute_files, &planted, &["src/mute.rs does not begin with what it does"]);
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
}
