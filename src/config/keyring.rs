//! The file of the secret: one text before the first rotation, and then its generations (TOML).

use std::fmt::Write as _;

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::Concealed;
use crate::domain::secret::{CarriedKeys, Generation, Generations, Secret};
use crate::domain::time::Timestamp;

/// Numbers of generations have at most three digits, as tombstones have them.
pub const LAST_GENERATION: u32 = 999;

/// Every generation of a secret, as a file keeps them.
#[derive(Clone)]
pub struct Keyring {
    carried: CarriedKeys,
    kept: Vec<Kept>,
    retired: Vec<Retired>,
}

#[derive(Clone)]
struct Kept {
    text: Concealed,
    generation: Generation,
}

/// A generation that is kept no longer: the records still name it by its fingerprint.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Retired {
    number: u32,
    fingerprint: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    carried: Carried,
    generation: Vec<Written>,
    #[serde(default)]
    retired: Vec<Retired>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Carried {
    codes: String,
    messages: String,
    sandbox: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    number: u32,
    text: String,
    begins: Option<String>,
    leaked: Option<String>,
}

const BEGINNING: &str = "# The secret of a unionhall installation, in generations.";

const EXPLAINED: &str = "\
# The secret of a unionhall installation, in generations. `unionhall secret` writes this file: give every node the whole of it,
# and keep a copy in another place.
";

impl Keyring {
    /// A secret that was never rotated.
    pub fn plain(text: &str) -> anyhow::Result<Self> {
        Self::begin(1, text)
    }

    /// The first generation that there is.
    pub fn begin(number: u32, text: &str) -> anyhow::Result<Self> {
        let generation = Generation::new(number, text)?;
        let kept = Kept { text: text.trim().to_owned().into(), generation };
        Ok(Self { carried: kept.generation.carried(), kept: vec![kept], retired: Vec::new() })
    }

    pub fn parse(text: &str) -> anyhow::Result<Self> {
        // A plain secret is no table of this kind, and a part of a file is no plain secret.
        let is_table = toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key("generation"));
        if is_table || text.starts_with(BEGINNING) { Self::read(text) } else { Self::plain(text) }
    }

    fn read(text: &str) -> anyhow::Result<Self> {
        // What it says of a mistake would show a part of the file.
        let Ok(File { carried, generation, retired }) = toml::from_str(text) else {
            bail!("the generations in it are not as `unionhall secret` writes them; put back a copy");
        };
        let key = |text: &str| {
            let bytes = STANDARD.decode(text).ok().and_then(|bytes| bytes.try_into().ok());
            bytes.context("a key that is carried on has another length than 32 bytes; put back a copy")
        };
        let carried = CarriedKeys::of_bytes([key(&carried.codes)?, key(&carried.messages)?, key(&carried.sandbox)?]);
        let kept: Vec<_> = generation.into_iter().map(Kept::read).collect::<anyhow::Result<_>>()?;
        ensure!(!kept.is_empty(), "there is no generation in it; put back a copy");
        let in_order = kept.windows(2).all(|two| two[0].generation.number < two[1].generation.number);
        ensure!(in_order, "its generations are not in the order of their numbers; put back a copy");
        Ok(Self { carried, kept, retired })
    }

    /// What a file holds: the plain text before the first rotation.
    pub fn text(&self) -> Concealed {
        match &self.kept[..] {
            [first]
                if first.generation.number == 1 && first.generation.leaked_at.is_none() && self.retired.is_empty() =>
            {
                first.text.clone()
            }
            _ => self.toml().into(),
        }
    }

    fn toml(&self) -> String {
        let [codes, messages, sandbox] = self.carried.bytes().map(|bytes| STANDARD.encode(bytes));
        let mut text = format!(
            "{EXPLAINED}\n[carried]\ncodes = \"{codes}\"\nmessages = \"{messages}\"\nsandbox = \"{sandbox}\"\n"
        );
        for Kept { text: secret, generation } in &self.kept {
            // A string of JSON is one of TOML.
            let secret = serde_json::Value::from(secret.reveal());
            let _fits = write!(text, "\n[[generation]]\nnumber = {}\ntext = {secret}\n", generation.number);
            for (name, at) in [("begins", generation.begins_at), ("leaked", generation.leaked_at)] {
                if let Some(at) = at {
                    let _fits = writeln!(text, "{name} = \"{at}\"");
                }
            }
        }
        for Retired { number, fingerprint } in &self.retired {
            let _fits = write!(text, "\n[[retired]]\nnumber = {number}\nfingerprint = \"{fingerprint}\"\n");
        }
        text
    }

    /// Oldest first.
    pub fn generations(&self) -> impl DoubleEndedIterator<Item = &Generation> {
        self.kept.iter().map(|kept| &kept.generation)
    }

    pub fn newest(&self) -> &Generation {
        &self.kept[self.kept.len() - 1].generation
    }

    /// The number and fingerprint of every generation that it knows, also of those that were retired.
    pub fn fingerprints(&self) -> impl Iterator<Item = (u32, String)> {
        let kept = self.generations().map(|generation| (generation.number, generation.fingerprint()));
        kept.chain(self.retired.iter().map(|retired| (retired.number, retired.fingerprint.clone())))
    }

    /// Whether records that were made with the secret of that fingerprint are its own.
    pub fn knows(&self, fingerprint: &str) -> bool {
        self.fingerprints().any(|(_, known)| known == fingerprint)
    }

    /// The same with another generation, which begins at that time. With `leaked_at`, all that were there before leaked.
    pub fn rotated(&self, text: &str, begins_at: Timestamp, leaked_at: Option<Timestamp>) -> anyhow::Result<Self> {
        let number = self.newest().number + 1;
        ensure!(number <= LAST_GENERATION, "there are {LAST_GENERATION} generations already");
        let mut rotated = self.clone();
        if leaked_at.is_some() {
            for Kept { generation, .. } in &mut rotated.kept {
                generation.leaked_at = generation.leaked_at.or(leaked_at);
            }
        }
        let mut generation = Generation::new(number, text)?;
        generation.begins_at = Some(begins_at);
        rotated.kept.push(Kept { text: text.to_owned().into(), generation });
        Ok(rotated)
    }

    /// The same without the text of a generation; none if it is not there, or is the newest.
    pub fn without(&self, number: u32) -> Option<Self> {
        let mut rest = self.clone();
        let at = rest.kept.iter().position(|kept| kept.generation.number == number)?;
        if at + 1 == rest.kept.len() {
            return None;
        }
        let Kept { generation, .. } = rest.kept.remove(at);
        rest.retired.push(Retired { number, fingerprint: generation.fingerprint() });
        Some(rest)
    }

    pub fn at(&self, now: Timestamp) -> Generations {
        let kept = self.generations().cloned().collect();
        Generations::new(self.carried.clone(), kept, now).expect("there is a generation")
    }

    pub fn secret(&self, now: Timestamp) -> Secret {
        Secret::of(self.at(now))
    }
}

impl Kept {
    fn read(written: Written) -> anyhow::Result<Self> {
        let Written { number, text, begins, leaked } = written;
        ensure!(
            (1..=LAST_GENERATION).contains(&number),
            "generation {number} has no number from 1 to {LAST_GENERATION}"
        );
        let time = |text: Option<String>| {
            let time = text.map(|text| text.parse::<Timestamp>()).transpose();
            time.ok().with_context(|| format!("a time of generation {number} is not one; put back a copy"))
        };
        let mut generation = Generation::new(number, &text).with_context(|| format!("generation {number}"))?;
        (generation.begins_at, generation.leaked_at) = (time(begins)?, time(leaked)?);
        Ok(Self { text: text.into(), generation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_plain_secret_stays_as_it_was_and_a_rotated_one_is_read_back() {
        let text = format!("a \"quoted\" = secret, \\ {}", "x".repeat(32));
        let plain = Keyring::parse(&format!("{text}\n")).unwrap();
        assert_eq!(plain.text().reveal(), text);
        let codes = |ring: &Keyring| ring.carried.bytes();
        let rotated = plain.rotated(&"y".repeat(40), at(1_800_000_000_000), None).unwrap();
        let leaked = rotated.rotated(&"z".repeat(40), at(1_800_000_100_000), Some(at(1_800_000_050_000))).unwrap();
        for ring in [&rotated, &leaked] {
            let read = Keyring::parse(ring.text().reveal()).unwrap();
            assert_eq!(read.text(), ring.text());
            assert_eq!(codes(&read), codes(&plain), "carried on");
            assert!(read.knows(&plain.newest().fingerprint()));
            assert_eq!(read.newest().begins_at, ring.newest().begins_at);
        }
        assert_eq!(leaked.generations().filter(|generation| generation.leaked_at.is_some()).count(), 2);
        let retired = leaked.without(1).unwrap();
        let read = Keyring::parse(retired.text().reveal()).unwrap();
        assert_eq!((codes(&read), read.generations().count()), (codes(&plain), 2));
        assert!(read.knows(&plain.newest().fingerprint()) && !retired.text().reveal().contains("quoted"));
        assert!(read.without(3).is_none() && read.without(1).is_none());
    }

    #[test]
    fn what_is_damaged_is_refused_and_shows_nothing() {
        let plain = Keyring::plain(&"x".repeat(32)).unwrap();
        let whole = plain.rotated(&"y".repeat(40), at(0), None).unwrap().text().reveal().to_owned();
        let codes = STANDARD.encode(plain.carried.bytes()[0]);
        for bad in [
            whole.replace("number = 2", "number = 1"),
            whole.replace("number = 2", "number = 1000"),
            whole.replace("begins = ", "begins = 7 #"),
            whole.replace("1970-", "soon-"),
            whole.replace(&codes, "AAAA"),
            whole.replace("[carried]", "[other]"),
            whole.replace(&"y".repeat(40), "short"),
            whole[..BEGINNING.len() + 1].to_owned(),
            whole[..whole.len() / 2].to_owned(),
        ] {
            let Err(error) = Keyring::parse(&bad) else { panic!("taken: {bad}") };
            let told = format!("{error:#}");
            assert!(!told.contains("yyyy") && !told.contains("xxxx") && !told.contains(&codes), "{told}");
        }
        assert!(Keyring::parse("short").is_err() && whole.starts_with(BEGINNING));
    }
}
