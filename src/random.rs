//! The one source of random bytes.

use ring::rand::{SecureRandom, SystemRandom};

/// The system gives no random numbers.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandom;

/// Bytes that nobody can guess.
pub fn bytes<const LENGTH: usize>() -> Result<[u8; LENGTH], NoRandom> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}
