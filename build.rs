//! Makes static data of the texts in `languages/`, and names the revision that a release is built from, for `--version` and
//! the metrics. Nothing is fetched, and without git, or outside a checkout, the version stands alone.

#[path = "build/texts.rs"]
mod texts;

use std::path::Path;
use std::process::Command;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=languages");
    name_revision();
    pack_relocations();
    write_texts()
}

fn write_texts() -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir("languages")? {
        let path = entry?.path();
        let code = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        files.push((code, fs::read_to_string(path)?));
    }
    files.sort();
    match texts::generate(&files) {
        Ok(code) => fs::write(Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("words.rs"), code)?,
        // Each of these stops the build.
        Err(faults) => faults.iter().for_each(|fault| println!("cargo::error={fault}")),
    }
    Ok(())
}

/// An address that the loader adjusts takes 24 bytes; packed, most take a bit, and the program is 4 % smaller. glibc reads these
/// since 2.36: only a build on a system that does, and for this system, has them. Linkers know them on x86-64 first.
fn pack_relocations() {
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        return;
    }
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let said = asked.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let version = said.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    if version.is_some_and(|minor| minor >= 36) && env::var_os("HOST") == env::var_os("TARGET") {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn name_revision() {
    let mut revision = String::new();
    // A debug build would be made anew after every commit.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") {
        // Named only where it is: what is missing counts as changed at every build.
        if Path::new(".git/logs/HEAD").exists() {
            println!("cargo:rerun-if-changed=.git/logs/HEAD");
        }
        let asked = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
        let said = asked.ok().filter(|output| output.status.success()).map(|output| output.stdout);
        revision = said.and_then(|said| String::from_utf8(said).ok()).unwrap_or_default().trim().to_owned();
    }
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let named = if revision.is_empty() { version } else { format!("{version} (revision {revision})") };
    println!("cargo:rustc-env=UNIONHALL_VERSION={named}");
    println!("cargo:rustc-env=UNIONHALL_REVISION={revision}");
}
