//! What both agent actions share: a new person needs a code that nobody else has.

use crate::app::App;
use crate::domain::email::EmailAddress;
use crate::domain::signup::NamedPerson;
use crate::error::Error;
use crate::store::{Answer, StoreError};

/// How many codes are tried for a new address before something else must be wrong: two in a row do not happen.
const CODE_ATTEMPTS: u8 = 8;

/// Runs a unit of work that may add a person, with the next code whenever the one offered is another's.
pub(super) async fn with_free_code<'a, T: Unpin>(
    app: &'a App,
    email: &EmailAddress,
    unit: impl Fn(NamedPerson) -> Answer<'a, T>,
) -> Result<T, Error> {
    app.require_sign_ups()?;
    for attempt in 0..CODE_ATTEMPTS {
        let person = NamedPerson { email: email.clone(), code: app.codes.code(email, attempt) };
        match unit(person).await {
            Err(StoreError::CodeTaken) => {}
            done => return done.map_err(refused),
        }
    }
    Err(Error::SaveFailed { cause: format!("{CODE_ATTEMPTS} referral codes in a row were taken") })
}

/// What the store's refusal means to a caller.
pub(super) fn refused(error: StoreError) -> Error {
    match error {
        StoreError::Paused => Error::BackendNotConfigured,
        StoreError::CodeTaken | StoreError::Unavailable(_) => Error::SaveFailed { cause: error.to_string() },
    }
}
