//! The fuzz targets' corpus as plain tests: every file through its target, and a few thousand mutations of the files that are
//! the same on every machine. `fuzz/` runs the same targets for as long as one likes, where cargo-fuzz is installed.

#[expect(unreachable_pub, reason = "the fuzz crate has them too")]
mod services;
#[expect(unreachable_pub, reason = "the fuzz crate has them too")]
mod targets;

mod once {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;
    use proptest::sample::Index;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    use super::{services, targets};

    /// Each target by its name, which its file in `fuzz_targets` and its folder in the corpus have too, and how many
    /// mutations of each file of the corpus are tried: as many as take about a second.
    macro_rules! targets {
        ($($name:ident in $place:ident, $mutations:literal;)*) => {
            const TARGETS: &[(&str, &str)] = &[$((stringify!($name), stringify!($place))),*];

            /// What is in the corpus, and what is near it.
            mod any_bytes_hold_for {
                $(#[test]
                fn $name() {
                    super::run(stringify!($name), super::$place::$name, $mutations);
                })*
            }
        };
    }

    targets! {
        invite_request in targets, 300;
        referral_link_request in targets, 300;
        email in targets, 800;
        api_key in targets, 800;
        referral_code in targets, 800;
        forwarded in targets, 300;
        catalog in targets, 300;
        link_token in targets, 300;
        people_text in targets, 300;
        mail_report in targets, 150;
        form_with_file in targets, 800;
        mcp in services, 200;
        smtp_reply in services, 30;
    }

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
    }

    fn names(folder: &Path) -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    }

    /// A target's files, in the same order everywhere.
    fn corpus(target: &str) -> Vec<Vec<u8>> {
        let folder = folder().join("corpus").join(target);
        let files: BTreeSet<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// A few changes: a byte replaced, a bit turned, a byte put in, some taken out or doubled, another file's end for one's own.
    fn mutated(file: &[u8], others: &[Vec<u8>], runner: &mut TestRunner) -> Vec<u8> {
        let change = (0..6_u8, any::<Index>(), any::<Index>(), any::<u8>());
        let changes = prop::collection::vec(change, 1..5).new_tree(runner).unwrap().current();
        changes.into_iter().fold(file.to_vec(), |mut bytes, (kind, one, two, byte)| {
            let (from, to) = (one.index(bytes.len() + 1), two.index(bytes.len() + 1));
            let (from, to) = (from.min(to), from.max(to));
            match kind {
                0 if from < bytes.len() => bytes[from] = byte,
                1 if from < bytes.len() => bytes[from] ^= 1 << (byte % 8),
                2 => bytes.insert(from, byte),
                3 => drop(bytes.drain(from..to)),
                4 if to - from < 200 => bytes.extend_from_within(from..to),
                _ => {
                    let other = &others[two.index(others.len())];
                    bytes.truncate(from);
                    bytes.extend_from_slice(&other[one.index(other.len() + 1)..]);
                }
            }
            bytes
        })
    }

    fn run(name: &str, target: fn(&[u8]), mutations: usize) {
        let files = corpus(name);
        let mut runner = TestRunner::deterministic();
        let hold = |bytes: &[u8]| {
            let held = std::panic::catch_unwind(|| target(bytes));
            assert!(held.is_ok(), "{name} does not hold for \"{}\"", bytes.escape_ascii());
        };
        for file in &files {
            hold(file);
            for _ in 0..mutations {
                hold(&mutated(file, &files, &mut runner));
            }
        }
    }

    #[test]
    fn every_target_has_its_file_its_line_and_its_corpus() {
        let listed: BTreeSet<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names(&folder().join("fuzz_targets")), listed);
        assert_eq!(names(&folder().join("corpus")), listed);
        let manifest: toml::Table = std::fs::read_to_string(folder().join("Cargo.toml")).unwrap().parse().unwrap();
        let bins = manifest["bin"].as_array().unwrap();
        assert_eq!(bins.iter().map(|bin| bin["name"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(), listed);
        for (name, place) in TARGETS {
            let file = std::fs::read_to_string(folder().join(format!("fuzz_targets/{name}.rs"))).unwrap();
            assert!(file.contains(&format!("unionhall_fuzz::{place}::{name}(data)")), "{name} calls another target");
            let files = corpus(name);
            assert!((5..=15).contains(&files.len()), "{name} has {} files", files.len());
            assert!(files.iter().all(|file| file.len() <= 2000), "the corpus of {name} is small");
        }
    }
}
