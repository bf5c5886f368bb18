//! A running node takes a rotated secret by itself, or says that it must be given.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{Keyring, SecretSettings, StoreSettings, read_secret};
use crate::domain::secret::Secret;
use crate::installation::{KnownGeneration, ListGenerations};
use crate::log::Log;
use crate::operator::Operator;

/// How often a node looks. A rotation begins later than this after it was made known.
pub(super) const LOOKS_EVERY: Duration = Duration::from_secs(5);

pub(in crate::cli) struct SecretWatch {
    /// Where the secret lies; none where it was given as text, which never changes.
    pub file: Option<PathBuf>,
    pub ring: Keyring,
    pub secret: Secret,
    pub operator: Operator,
    pub log: Log,
}

impl SecretWatch {
    /// The file that a service with these settings reads its secret from.
    pub(in crate::cli) fn file(settings: &StoreSettings, given: &SecretSettings) -> Option<PathBuf> {
        match (&given.secret, &given.secret_file) {
            (Some(_), _) => None,
            (None, Some(file)) => Some(file.clone()),
            (None, None) => Some(settings.data.join("secret")),
        }
    }

    pub(in crate::cli) async fn run(mut self, clock: Clock, mut stop: watch::Receiver<bool>) {
        let mut seen = self.changed_at();
        // What the log said last: a generation that this node does not have, and whether that had begun.
        let mut told: Option<(u32, bool)> = None;
        while !*stop.borrow() {
            tokio::select! {
                () = tokio::time::sleep(LOOKS_EVERY) => {}
                _ = stop.changed() => return,
            }
            let now = clock.now().time;
            // Records that cannot be read are reported where they are needed.
            let known = self.operator.ask(ListGenerations).await.unwrap_or_default();
            let changed_at = self.changed_at();
            if changed_at != seen || self.lacking(&known).is_some() {
                seen = changed_at;
                self.read_again();
            }
            let lacking = self.lacking(&known).map(|generation| (generation.clone(), generation.begins_at <= now));
            if let Some((generation, has_begun)) = lacking.filter(|(lacks, begun)| told != Some((lacks.number, *begun)))
            {
                told = Some((generation.number, has_begun));
                self.tell(&generation, has_begun);
            }
            let before = self.secret.generations().current().number;
            let generations = self.ring.at(now);
            if generations.current().number != before {
                let number = generations.current().number;
                self.log.note(&format!("generation {number} of the secret makes everything new from now on"));
            }
            if generations.all().len() > 1 || before != generations.current().number {
                self.secret.replace(generations);
            }
        }
    }

    fn changed_at(&self) -> Option<SystemTime> {
        std::fs::metadata(self.file.as_ref()?).ok()?.modified().ok()
    }

    fn lacking<'k>(&self, known: &'k [KnownGeneration]) -> Option<&'k KnownGeneration> {
        let has = |known: &KnownGeneration| {
            self.ring.fingerprints().any(|(number, print)| number == known.number && print == known.fingerprint)
        };
        known.iter().find(|generation| !has(generation))
    }

    /// Takes what lies in the file now, if it is the same secret: another one is for the next start to refuse.
    fn read_again(&mut self) {
        let Some(file) = &self.file else { return };
        match read_secret(file) {
            Ok(ring) if ring.fingerprints().any(|(_, print)| self.ring.knows(&print)) => self.ring = ring,
            Ok(_) => {
                let text =
                    "the file of the secret holds another secret now; the service goes on with the one that it had";
                self.log.problem(None, text);
            }
            Err(error) => self.log.problem(None, &format!("the secret was changed and cannot be read: {error:#}")),
        }
    }

    fn tell(&self, generation: &KnownGeneration, has_begun: bool) {
        let number = generation.number;
        let when = match has_begun {
            true => "links that other nodes make do not work here until then".to_owned(),
            false => format!("it begins at {}", generation.begins_at),
        };
        // systemd copies a credential when the service starts.
        let is_copy = |file: &PathBuf| {
            std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|credentials| file.starts_with(credentials))
        };
        let give = match &self.file {
            Some(file) if is_copy(file) => {
                "put the rotated secret file in the place of the credential that it is loaded from, and start this node again".to_owned()
            }
            Some(file) => format!(
                "put the rotated secret file in the place of {}, and this node takes it by itself",
                file.display()
            ),
            None => "give the rotated secret with UNIONHALL_SECRET_FILE, and start this node again".to_owned(),
        };
        self.log
            .problem(None, &format!("the secret was rotated, and this node lacks generation {number}: {give}; {when}"));
    }
}
