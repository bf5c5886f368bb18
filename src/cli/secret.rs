//! Whose records these are: the secret that was given, kept or made, held against the one they were made with.

use anyhow::bail;

use super::{files, random};
use crate::config::{Records, StoreSettings, read_secret};
use crate::domain::base32;
use crate::domain::secret::Secret;
use crate::store::{Claim, InstallationStore};

/// The installation's secret, and where it came from.
pub(super) struct Claimed {
    pub secret: Secret,
    pub origin: SecretOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretOrigin {
    /// The records were made with it before.
    Known,
    /// It was made just now.
    Made,
    /// It was given, and the records are new.
    Given,
}

/// The installation's secret: the one given, the one kept in the data folder, or a new one on the first start.
pub(super) async fn claim(
    settings: &StoreSettings,
    given: Option<Secret>,
    store: &dyn InstallationStore,
) -> anyhow::Result<Claimed> {
    let kept = settings.data.join("secret");
    let records = settings.records()?;
    if given.is_none() && matches!(records, Records::Postgres(_)) {
        bail!(
            "with PostgreSQL every node is given the same secret: set UNIONHALL_SECRET_FILE to a file that holds it, 32 \
             characters or more (`openssl rand -base64 33` makes one; records that were moved keep the one they had)"
        );
    }
    let (secret, made) = match given {
        Some(secret) => (secret, false),
        None if kept.exists() => (read_secret(&kept)?, false),
        None => {
            let text = String::from_utf8_lossy(&base32::encode::<52>(&random::<33>()?)).into_owned();
            files::write_private_file(&kept, &format!("{text}\n"))?;
            (Secret::new(&text)?, true)
        }
    };
    match store.claim_secret(secret.fingerprint()).await? {
        Claim::First if made => Ok(Claimed { secret, origin: SecretOrigin::Made }),
        Claim::First => Ok(Claimed { secret, origin: SecretOrigin::Given }),
        Claim::Same => Ok(Claimed { secret, origin: SecretOrigin::Known }),
        Claim::Another if made => {
            std::fs::remove_file(&kept)?;
            bail!(
                "the records in {records} belong to a secret that is not there: put it back into {}, or give it with \
                 UNIONHALL_SECRET",
                kept.display()
            );
        }
        Claim::Another => bail!(
            "the secret is not the one that the records in {records} were made with: referral links would change. Give \
             that installation's secret, or other records"
        ),
    }
}
