//! Names the revision that a release is built from, for `--version` and the metrics. Nothing is fetched, and without git, or
//! outside a checkout, the version stands alone.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let mut revision = String::new();
    // A debug build would be made anew after every commit.
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Named only where it is: what is missing counts as changed at every build.
        if std::path::Path::new(".git/logs/HEAD").exists() {
            println!("cargo:rerun-if-changed=.git/logs/HEAD");
        }
        let asked = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
        let said = asked.ok().filter(|output| output.status.success()).map(|output| output.stdout);
        revision = said.and_then(|said| String::from_utf8(said).ok()).unwrap_or_default().trim().to_owned();
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let named = if revision.is_empty() { version } else { format!("{version} (revision {revision})") };
    println!("cargo:rustc-env=UNIONHALL_VERSION={named}");
    println!("cargo:rustc-env=UNIONHALL_REVISION={revision}");
}
