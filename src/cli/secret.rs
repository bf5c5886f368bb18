//! Whose records these are: the secret that was given, kept or made, held against the one they were made with.

use anyhow::{anyhow, bail};

use super::files;
use crate::config::{Records, StoreSettings, read_secret};
use crate::domain::api_key::Mode;
use crate::domain::base32;
use crate::domain::secret::Secret;
use crate::installation::{ClaimSecret, CompareSecret};
use crate::operator::{Claim, Operator};
use crate::random;

/// The installation's secret, and where it came from.
pub(super) struct Claimed {
    pub secret: Secret,
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
fn find(settings: &StoreSettings, given: Option<Secret>) -> anyhow::Result<Option<Secret>> {
    let kept = settings.data.join("secret");
    if given.is_none() && matches!(settings.records()?, Records::Postgres(_)) {
        bail!(
            "with PostgreSQL every node is given the same secret: set UNIONHALL_SECRET_FILE to a file that holds it, 32 \
             characters or more (`openssl rand -base64 33` makes one; records that were moved keep the one they had)"
        );
    }
    match given {
        Some(secret) => Ok(Some(secret)),
        None if files::is_there(&kept)? => read_secret(&kept).map(Some),
        None => Ok(None),
    }
}

/// Holds what was found against the records, and changes neither.
pub(super) async fn compare(
    settings: &StoreSettings,
    given: Option<Secret>,
    operator: &Operator,
) -> anyhow::Result<Claim> {
    let secret = find(settings, given)?;
    // Nothing is made with no secret, so that none is another than any.
    let fingerprint = secret.as_ref().map(Secret::fingerprint).unwrap_or_default();
    match operator.ask(CompareSecret(fingerprint)).await? {
        Claim::Another if secret.is_none() => Err(missing(settings)?),
        Claim::Another => Err(another(settings)?),
        same_or_first => Ok(same_or_first),
    }
}

/// The secret that the records were made with; of the sandbox its own.
pub(super) async fn known(
    settings: &StoreSettings,
    mode: Mode,
    given: Option<Secret>,
    operator: &Operator,
) -> anyhow::Result<Secret> {
    let found = find(settings, given)?;
    let Some(secret) = found else {
        bail!("the records have no secret yet: start the service once, which makes it");
    };
    let secret = match mode {
        Mode::Live => secret,
        Mode::Test => secret.of_sandbox(),
    };
    match operator.ask(CompareSecret(secret.fingerprint())).await? {
        Claim::Another => Err(another(settings)?),
        Claim::First if mode == Mode::Live => {
            bail!("nothing was made with the secret yet: start the service once, then try again")
        }
        Claim::First | Claim::Same => Ok(secret),
    }
}

/// The installation's secret: the one given, the one kept in the data folder, or a new one on the first start.
pub(super) async fn claim(
    settings: &StoreSettings,
    given: Option<Secret>,
    operator: &Operator,
) -> anyhow::Result<Claimed> {
    let kept = settings.data.join("secret");
    let (secret, made) = match find(settings, given)? {
        Some(secret) => (secret, false),
        None => {
            let text = String::from_utf8_lossy(&base32::encode::<52>(&random::bytes::<33>()?)).into_owned();
            files::write_private_file(&kept, &format!("{text}\n"))?;
            (Secret::new(&text)?, true)
        }
    };
    match operator.run_unaudited(ClaimSecret(secret.fingerprint())).await? {
        Claim::First if made => Ok(Claimed { secret, origin: SecretOrigin::Made }),
        Claim::First => Ok(Claimed { secret, origin: SecretOrigin::Given }),
        Claim::Same => Ok(Claimed { secret, origin: SecretOrigin::Known }),
        Claim::Another if made => {
            std::fs::remove_file(&kept)?;
            Err(missing(settings)?)
        }
        Claim::Another => Err(another(settings)?),
    }
}

fn missing(settings: &StoreSettings) -> anyhow::Result<anyhow::Error> {
    let (records, kept) = (settings.records()?, settings.data.join("secret"));
    Ok(anyhow!(
        "the records in {records} belong to a secret that is not there: put it back into {}, or give it with UNIONHALL_SECRET",
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
