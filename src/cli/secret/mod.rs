//! Whose records these are: the secret that was given, kept or made, held against the one they were made with.

pub(super) mod command;
pub(super) mod watch;

use anyhow::{anyhow, bail};

use super::files;
use crate::clock::Clock;
use crate::config::{Keyring, Records, StoreSettings, read_secret};
use crate::domain::api_key::Mode;
use crate::domain::base32;
use crate::domain::secret::Secret;
use crate::installation::{
    ClaimSecret, CompareSecret, HeldSecret, KnownGeneration, ListGenerations, time_of_generations,
};
use crate::operator::{Claim, Operator};
use crate::random;

pub(super) use self::command::is_unknown;

/// The installation's secret, and where it came from.
pub(super) struct Claimed {
    pub secret: Secret,
    pub ring: Keyring,
    pub origin: SecretOrigin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretOrigin {
    /// The records were made with it before.
    Known,
    /// It was made just now.
    Made,
    /// It was given, and the records are new.
    Given,
}

/// The secret that was given, or the one kept in the data folder; none before the first start.
pub(super) fn find(settings: &StoreSettings, given: Option<Keyring>) -> anyhow::Result<Option<Keyring>> {
    let kept = settings.data.join("secret");
    if given.is_none() && matches!(settings.records()?, Records::Postgres(_)) {
        bail!(
            "with PostgreSQL every node is given the same secret: set UNIONHALL_SECRET_FILE to a file that holds it, 32 \
             characters or more (`openssl rand -base64 33` makes one; records that were moved keep the one they had)"
        );
    }
    match given {
        Some(ring) => Ok(Some(ring)),
        None if files::is_there(&kept)? => read_secret(&kept).map(Some),
        None => Ok(None),
    }
}

/// What the records are told of a secret.
pub(super) fn held(ring: &Keyring) -> HeldSecret {
    let first = ring.generations().next().map(|generation| generation.fingerprint()).unwrap_or_default();
    HeldSecret { first, fingerprints: ring.fingerprints().collect() }
}

/// How the secret and the records are with each other.
pub(super) struct SecretState {
    pub says: String,
    /// Whether the records do not know a rotation.
    pub is_unfinished: bool,
}

/// Holds what was found against the records, changes neither, and says how it is.
pub(super) async fn examine(
    settings: &StoreSettings,
    given: Option<Keyring>,
    operator: &Operator,
) -> anyhow::Result<SecretState> {
    let ring = find(settings, given)?;
    // Nothing is made with no secret, so that none is another than any.
    match operator.ask(CompareSecret(ring.as_ref().map(held).unwrap_or_default())).await? {
        Claim::Another if ring.is_none() => Err(missing(settings)?),
        Claim::Another => Err(another(settings)?),
        Claim::Lacks(generation) => Err(lacks(&generation)),
        Claim::First => {
            let says = "the records have no secret yet; the first start makes one".to_owned();
            Ok(SecretState { says, is_unfinished: false })
        }
        Claim::Same => {
            let mut says = "it is the one that the records were made with".to_owned();
            let (Some(ring), now) = (ring, Clock::start().now().time) else {
                return Ok(SecretState { says, is_unfinished: false });
            };
            for generation in ring.generations().filter(|_| ring.generations().nth(1).is_some()) {
                let needs = command::needs(operator, &ring, generation.number, now).await?;
                let why = if needs.is_empty() {
                    "nothing needs it, so it can be retired".to_owned()
                } else {
                    needs.join(", and ")
                };
                says.push_str(&format!("; generation {}: {why}", generation.number));
            }
            let known = operator.ask(ListGenerations).await?;
            let is_unfinished = ring.generations().any(|generation| is_unknown(generation.number, &known));
            Ok(SecretState { says, is_unfinished })
        }
    }
}

/// The secret that the records were made with; of the sandbox its own.
pub(super) async fn known(
    settings: &StoreSettings,
    mode: Mode,
    given: Option<Keyring>,
    operator: &Operator,
) -> anyhow::Result<Secret> {
    let found = find(settings, given)?;
    let Some(ring) = found else { return Err(none_found(settings, operator).await?) };
    let known = operator.ask(ListGenerations).await?;
    let secret = ring.secret(time_of_generations(&known, Clock::start().now().time));
    let (secret, held) = match mode {
        Mode::Live => (secret, held(&ring)),
        Mode::Test => {
            let secret = secret.of_sandbox();
            let held = HeldSecret::of_sandbox(&secret);
            (secret, held)
        }
    };
    match operator.ask(CompareSecret(held)).await? {
        Claim::Another => Err(another(settings)?),
        Claim::Lacks(generation) => Err(lacks(&generation)),
        Claim::First if mode == Mode::Live => {
            bail!("nothing was made with the secret yet: start the service once, then try again")
        }
        Claim::First | Claim::Same => Ok(secret),
    }
}

/// The installation's secret: the one given, the one kept in the data folder, or a new one on the first start.
pub(super) async fn claim(
    settings: &StoreSettings,
    given: Option<Keyring>,
    operator: &Operator,
) -> anyhow::Result<Claimed> {
    let kept = settings.data.join("secret");
    let (ring, made) = match find(settings, given)? {
        Some(ring) => (ring, false),
        None => {
            let text = new_text()?;
            files::write_private_file(&kept, &format!("{text}\n"))?;
            (Keyring::plain(&text)?, true)
        }
    };
    let known = operator.ask(ListGenerations).await?;
    let secret = ring.secret(time_of_generations(&known, Clock::start().now().time));
    match operator.run_unaudited(ClaimSecret(held(&ring))).await? {
        Claim::First if made => Ok(Claimed { secret, ring, origin: SecretOrigin::Made }),
        Claim::First => Ok(Claimed { secret, ring, origin: SecretOrigin::Given }),
        Claim::Same => Ok(Claimed { secret, ring, origin: SecretOrigin::Known }),
        Claim::Another if made => {
            std::fs::remove_file(&kept)?;
            Err(missing(settings)?)
        }
        Claim::Another => Err(another(settings)?),
        Claim::Lacks(generation) => Err(lacks(&generation)),
    }
}

/// A new secret as text.
fn new_text() -> anyhow::Result<String> {
    Ok(String::from_utf8_lossy(&base32::encode::<52>(&random::bytes::<33>()?)).into_owned())
}

fn lacks(generation: &KnownGeneration) -> anyhow::Error {
    anyhow!(
        "the secret was rotated, and generation {} of it, which begins at {}, is not in this one: put the secret file that `unionhall secret \
         rotate` wrote in the place of this one; if that command was interrupted, run it again as it was",
        generation.number,
        generation.begins_at
    )
}

/// Why a command that needs the secret has none.
async fn none_found(settings: &StoreSettings, operator: &Operator) -> anyhow::Result<anyhow::Error> {
    match operator.ask(CompareSecret(HeldSecret::default())).await? {
        Claim::First => Ok(anyhow!("the records have no secret yet: start the service once, which makes it")),
        _ => missing(settings),
    }
}

fn missing(settings: &StoreSettings) -> anyhow::Result<anyhow::Error> {
    let (records, kept) = (settings.records()?, settings.data.join("secret"));
    Ok(anyhow!(
        "the records in {records} belong to a secret that is not there: put it back into {}, or give it with UNIONHALL_SECRET. If no \
         copy of it is left: `unionhall secret replace --lost`, whose --help says what that costs",
        kept.display()
    ))
}

fn another(settings: &StoreSettings) -> anyhow::Result<anyhow::Error> {
    let records = settings.records()?;
    Ok(anyhow!(
        "the secret is not the one that the records in {records} were made with: referral links would change. Give that \
         installation's secret, or other records"
    ))
}
