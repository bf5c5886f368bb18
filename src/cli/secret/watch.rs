//! A running node takes a rotated secret by itself, or says that it must be given.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{Keyring, SecretSettings, StoreSettings, read_secret};
use crate::domain::secret::Secret;
use crate::domain::time::{DAY, Timestamp};
use crate::installation::{AddGeneration, KnownGeneration, ListGenerations, time_of_generations};
use crate::log::Log;
use crate::membership::mail_again::{MailPendingAgain, PendingPlace};
use crate::operator::Operator;
use crate::partners::endpoints::AskToRotate;

/// How often a node looks. A rotation begins later than this after it was made known.
pub(super) const LOOKS_EVERY: Duration = Duration::from_secs(5);

/// How long after a generation begins everything follows that it sets off: every node makes new things with it by then.
const FOLLOWS_AFTER: Duration = LOOKS_EVERY.saturating_mul(2);

/// How long partners have to rotate the secrets of their endpoints after a leak.
const PARTNERS_HAVE: Duration = DAY.saturating_mul(7);

/// Does what follows from a rotation once it began. Again after an interruption, and beside another node, it does nothing twice.
async fn follow_up(operator: &Operator, generation: &KnownGeneration, now: Timestamp) -> anyhow::Result<()> {
    if generation.leaked {
        let by = generation.begins_at.plus(PARTNERS_HAVE);
        operator.run_unaudited(AskToRotate { before: generation.number, by }).await?;
        let (mut after, mut step) = (Some(PendingPlace::default()), 0);
        while let Some(place) = after {
            let mailed_before = generation.begins_at.plus(FOLLOWS_AFTER);
            let again = MailPendingAgain { after: place, mailed_before, step, first_at: now, now };
            (after, _) = operator.run_unaudited(again).await?;
            step += 1;
        }
    }
    operator.run_unaudited(AddGeneration(KnownGeneration { is_done: true, ..generation.clone() })).await?;
    Ok(())
}

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
            // Records that cannot be read are reported where they are needed. Meanwhile everything stays: what leaked is not read again.
            let Ok(known) = self.operator.ask(ListGenerations).await else { continue };
            let now = time_of_generations(&known, clock.now().time);
            let changed_at = self.changed_at();
            if changed_at != seen || self.lacking(&known).is_some() {
                self.read_again(changed_at != seen);
                seen = changed_at;
            }
            let lacking = self.lacking(&known).map(|generation| (generation.clone(), generation.begins_at <= now));
            if let Some((generation, has_begun)) = &lacking
                && told != Some((generation.number, *has_begun))
            {
                told = Some((generation.number, *has_begun));
                self.tell(generation, *has_begun);
            }
            let before = self.secret.generations();
            let mut generations = self.ring.at(now);
            if lacking.is_some_and(|(generation, has_begun)| has_begun && generation.leaked) {
                generations = generations.replaced();
            }
            let number = generations.current().number;
            if number != before.current().number {
                self.log.note(&format!("generation {number} of the secret makes everything new from now on"));
            }
            if generations.all().len() > 1
                || before.all().len() > 1
                || generations.is_replaced() != before.is_replaced()
            {
                self.secret.replace(generations);
            }
            for generation in known.iter().filter(|known| !known.is_done && known.begins_at.plus(FOLLOWS_AFTER) <= now)
            {
                if let Err(error) = follow_up(&self.operator, generation, now).await {
                    self.log.problem(None, &format!("what the rotation of the secret sets off waits: {error}"));
                }
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

    /// Takes what lies in the file now, if it has all that this node has: anything else is for the next start to refuse.
    fn read_again(&mut self, is_new: bool) {
        let Some(file) = &self.file else { return };
        let problem = match read_secret(file) {
            Ok(ring) if self.ring.fingerprints().all(|(_, print)| ring.knows(&print)) => {
                self.ring = ring;
                return;
            }
            Ok(_) => "the file of the secret lacks a generation that this node has; the service goes on with those that it had".to_owned(),
            Err(error) => format!("the secret was changed and cannot be read: {error:#}"),
        };
        if is_new {
            self.log.problem(None, &problem);
        }
    }

    fn tell(&self, generation: &KnownGeneration, has_begun: bool) {
        let number = generation.number;
        let when = match has_begun {
            true if generation.leaked => "until then it is not ready, opens no link and sends no mail".to_owned(),
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
                "put the rotated secret file in the place of {}, and this node takes it by itself (if `unionhall secret rotate` was interrupted, \
                 run it again)",
                file.display()
            ),
            None => "give the rotated secret with UNIONHALL_SECRET_FILE, and start this node again".to_owned(),
        };
        self.log
            .problem(None, &format!("the secret was rotated, and this node lacks generation {number}: {give}; {when}"));
    }
}
